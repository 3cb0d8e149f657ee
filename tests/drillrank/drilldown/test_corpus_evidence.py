"""Evidence from a corpus on disk is that of the same documents in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import D3, Corpus, Passage, parse_document
from drillrank.drilldown.versions import find_dates
from drillrank.likelihood import EmbeddingModel
from drillrank.structure import Pages
from tests.drillrank.helpers import Says, refuses
from tests.examples import examples

WORDS = ["margin", "revenue", "2022", "fox", "owl", "dividend", "lease", "the"]
PARAGRAPHS = {"unit": "paragraph"}
line = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
block = st.one_of(line, line.map("# {}".format), line.map("## {}".format), line.map(lambda text: f"{text} " * 400))
bodies = st.lists(block, max_size=9).map("\n\n".join)
names = st.builds("{} {}".format, st.sampled_from(["lease", "report", "fox"]), st.sampled_from(["2021", "2022", "v3"]))


def with_pages(text):
    starts = (0, len(text) // 2)
    return replace(parse_document(text, "text"), pages=Pages(starts, (1, 2), ("1", "2")))


documents = st.one_of(bodies.map(parse_document), bodies.filter(lambda text: len(text) > 3).map(with_pages))


def places(ranking):
    """Where evidence stands, its score, and what is said of it."""
    return [
        (
            str(item.passage.metadata["document"]),
            item.passage.metadata["start"],
            item.passage.metadata.get("pages"),
            item.passage.metadata.get("part"),
            round(item.score, 8),
            {key: item.details[key] for key in ("matched", "version", "other_versions") if key in item.details},
            round(item.details["section_score"], 8),
            [(str(at["document"]), at["start"]) for at in item.details.get("also_at", ())],
        )
        for item in ranking
    ]


@settings(max_examples=examples(80))
@given(
    st.lists(st.tuples(names, documents), min_size=1, max_size=5),
    line,
    st.sampled_from([None, 1, 4]),
    st.booleans(),
    st.sampled_from([None, "2021"]),
    st.booleans(),
    st.sampled_from(["passage", "paragraph"]),
)
def test_evidence_is_that_of_the_documents_in_memory(
    given_documents, question, top_n, whole_paths, as_of, changed, unit
):
    corpus = Corpus(unit=unit)
    if changed:  # what was there before leaves no trace
        corpus.add([("other", Passage("margin fox")), ("1", parse_document("# Owl\n\nIt was another text."))])
        corpus.remove(["other"])
    corpus.add((str(at), document) for at, (_, document) in enumerate(given_documents))
    corpus.add([("foreign", parse_document("# Margin\n\nNobody asks this one for its margin."))])
    order = sorted(range(len(given_documents)), key=lambda at: corpus.ids().index(str(at)))
    d3 = D3(settings={"whole_paths": whole_paths, "as_of": as_of, "unit": unit})
    by_id = {str(at): given_documents[at][0] for at in order}
    memory = d3.prepare([given_documents[at][1] for at in order], list(by_id.values()))
    expected = d3.retrieve(question, memory, top_n)
    found = d3.retrieve(question, d3.prepare_corpus(corpus, by_id), top_n)
    renamed = {str(place): str(at) for place, at in enumerate(order)}
    assert places(found) == [
        (renamed[id_], *rest, [(renamed[a], b) for a, b in also]) for id_, *rest, also in places(expected)
    ]
    assert found.confidence == pytest.approx(expected.confidence)
    assert found.found is expected.found
    totals = [entry.total for entry in found.explain()]
    assert totals == pytest.approx([entry.total for entry in expected.explain()], abs=1e-9)


def test_a_model_of_meaning_reads_the_best_of_the_corpus():
    texts = [f"The rent of house {n} is due. It is paid in month {n % 12}." for n in range(70)]
    corpus = Corpus(unit="paragraph")
    corpus.add((str(n), parse_document(text)) for n, text in enumerate(texts))
    d3 = D3(model=EmbeddingModel(lambda texts: [[len(t), t.count("1") + 1] for t in texts]), settings=PARAGRAPHS)
    found = d3.retrieve("When is the rent of house 61 due?", corpus, 5)
    memory = d3.retrieve("When is the rent of house 61 due?", d3.prepare(texts, list(map(str, range(70)))), 5)
    assert [item.passage.text for item in found] == [item.passage.text for item in memory]
    assert [item.score for item in found] == pytest.approx([item.score for item in memory], abs=1e-3)


def test_an_llm_drills_into_the_likeliest_documents():
    corpus, llm = Corpus(unit="paragraph"), Says("House 7 > Notice", "1")
    corpus.add((f"{n}.md", parse_document(f"# House {n}\n\nRent.\n\n## Notice\n\nIt is {n} weeks.")) for n in range(30))
    found = D3(llm, settings={"max_documents": 2, **PARAGRAPHS}).retrieve("What is the notice of house 7?", corpus)
    assert [item.passage.text for item in found] == ["It is 7 weeks."]
    assert sum(f"House {n} >" in llm.prompts[0] for n in range(30)) == 2


def test_dates_of_documents_say_which_version_is_read():
    corpus = Corpus(unit="paragraph")
    texts = [f"# Lease\n\nThe rent is {n} euros.\n\nNo dogs.\n\nNo cats.\n\nNo owls." for n in (5, 6)]
    corpus.add(zip("ab", map(parse_document, texts), strict=True))
    [new, old] = find_dates("2023 2021")
    ready = D3(settings=PARAGRAPHS).prepare_corpus(corpus, {"a": "lease.md", "b": "lease.md"}, {"a": new, "b": old})
    [found] = D3(settings=PARAGRAPHS).retrieve("What is the rent?", ready, 1)
    assert (found.passage.metadata["document"], found.details["version"]) == ("a", "2023")
    assert (
        len(
            {
                item.passage.metadata["document"]
                for item in D3(settings=PARAGRAPHS).retrieve("What was the rent in 2021?", ready, 4)
            }
        )
        == 2
    )


test_the_corpus_speaks_the_language_of_the_model = refuses(
    (lambda: D3(settings=PARAGRAPHS).retrieve("fox", Corpus(language="german")), "'english', the corpus in 'german'")
)


class Embedder:
    """Counts what it embeds: lengths and vowels."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts):
        self.texts += texts
        return [[len(text), text.count("a") + 1, text.count("e") + 1] for text in texts]

    def questions(self, texts):
        return [[40, 1, 9] for _ in texts]


def test_vectors_of_a_corpus_are_kept_and_evidence_is_that_of_the_documents_in_memory(tmp_path):
    texts = [f"# House {n}\n\nThe rent of house {n} is due.\n\nMonth {n}." for n in range(70)]
    question = "When is the rent of house 61 due?"
    corpus = Corpus(tmp_path / "corpus.db", unit="paragraph")
    corpus.add((str(n), parse_document(text)) for n, text in enumerate(texts))
    first = Embedder()
    d3 = D3(embed=first, settings=PARAGRAPHS)
    ready = d3.prepare_corpus(corpus, embedded_by="lengths")
    found = d3.retrieve(question, ready, 5)
    n_texts = len(first.texts)
    assert sum(text.startswith(("The rent of house", "Month")) for text in first.texts) == 140  # 70 times two
    assert n_texts == len(set(first.texts))  # those that the encoder's cosines are compared with, too
    assert [item.passage.id for item in d3.retrieve(question, ready, 5)] == [item.passage.id for item in found]
    assert len(first.texts) == n_texts
    again = Embedder()
    other = D3(embed=again, settings=PARAGRAPHS)
    kept = other.retrieve(
        question, other.prepare_corpus(Corpus(tmp_path / "corpus.db", unit="paragraph"), embedded_by="lengths"), 5
    )
    assert [(item.passage.id, item.score) for item in kept] == [(item.passage.id, item.score) for item in found]
    assert not any(text.startswith(("The rent of house", "Month")) for text in again.texts)
    memory = d3.prepare(texts, list(map(str, range(70))))
    expected = d3.retrieve(question, memory, 5)
    assert [item.passage.text for item in found] == [item.passage.text for item in expected]
    assert [entry.total for entry in found.explain()] == pytest.approx([item.score for item in found], abs=1e-9)
    every = d3.retrieve(question, ready, 400)
    assert [item.details.get("read", True) for item in every] == [True] * 140
    corpus.remove(["61"])
    left = D3(embed=Embedder(), settings=PARAGRAPHS).retrieve(question, corpus, 5)
    assert all(item.passage.metadata["document"] != "61" for item in left)


def test_a_passage_of_a_corpus_has_the_spans_of_its_paragraphs():
    text = "# Oak\n\nOld.\n\n## Bark\n\nIt is thick.\n\n- grey\n- rough\n\n## Wood\n\nHard.\n"
    corpus = Corpus(unit="passage")
    corpus.add([("oak", parse_document(text))])
    [passage] = corpus.passages("oak")
    paragraphs = ["Old.", "It is thick.", "- grey\n- rough", "Hard."]
    spans = passage.metadata["paragraph_spans"]
    assert [text[span.start : span.end] for span in spans] == paragraphs
    assert [passage.text[span.text_start : span.text_end] for span in spans] == paragraphs
    assert passage.title == "Oak > Bark > Wood"
    assert passage.metadata["section_paths"] == (("Oak",), ("Oak", "Bark"), ("Oak", "Wood"))
    [item] = D3(settings={"unit": "passage"}).retrieve("Which oak is hard?", corpus)
    assert item.passage.metadata["paragraph_spans"] == spans


def test_every_heading_of_a_passage_counts_in_a_corpus():
    corpus = Corpus(unit="passage")
    corpus.add([("trees", parse_document("# Oak\n\n" + "Old. " * 200 + "\n\n# Elm\n\nTall.\n\n# Yew\n\nSlow.\n"))])
    [item] = D3(settings={"unit": "passage"}).retrieve("yew", corpus, 1)
    assert item.details["matched"]
    assert item.passage.title == "Elm > Yew"


def test_the_number_of_passages_does_not_depend_on_the_complement():
    """A complement gains up to the score of the best passage; its gain is no evidence for the number of passages."""
    texts = ["beta lease", "rent kettle lease beta clean", "stove lease kettle rent"]
    question = "beta stove lease tenant"
    corpus = Corpus()
    corpus.add((str(index), parse_document(text)) for index, text in enumerate(texts))
    in_memory, stored = D3().retrieve(question, texts), D3().retrieve(question, corpus)
    assert [item.passage.text for item in in_memory] == [item.passage.text for item in stored]
