"""The corpus: what is added, changed and removed is found as an index in memory over the same passages finds it."""

from __future__ import annotations

import pickle
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from drillrank import Corpus, Passage
from drillrank.corpus import bm25, documents, file_keys, store
from drillrank.errors import InvalidInput
from drillrank.likelihood import UnigramModel
from drillrank.structure import file_key, parse_document, read_document
from drillrank.text import terms
from drillrank.vectors import BM25Index, top
from tests.counting import statistics_of
from tests.examples import examples
from tests.linked_passages import linked_passages, questions

WORDS = ["fox", "foxes", "the", "the", "the", "Rhine", "red", "a_b", "é", "狐"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
TITLES = st.lists(st.sampled_from(["Silent", "pier", "THE", "Straße", "_x", "(film)", "'s"]), max_size=4).map(" ".join)
QUERIES = ["fox", "The red foxes of the Rhine", "a_b é 狐 owl", "the the the"]
METADATA = {"page": 3, "of": ["a", "é"]}


def in_memory(passages: list[Passage], query: str, n: int | None = None) -> list[tuple[str, float]]:
    """Ids and scores of the passages that hold a word of the query, best first; ties keep the order."""
    scores = BM25Index([passage.titled_text for passage in passages]).scores(query)
    return [(passages[at].id, float(scores[at])) for at in top(scores, n or len(scores)) if scores[at] > 0]


def found(corpus: Corpus, query: str, n: int | None = None) -> list[tuple[str, float]]:
    return [(item.passage.id, item.score) for item in corpus.search(query, n)]


def agrees(corpus: Corpus, queries: list[str] = QUERIES) -> None:
    """The corpus ranks, scores and counts as memory does over what it holds."""
    passages = list(corpus)
    assert len(corpus) == len(passages)
    for query in queries:
        assert found(corpus, query) == in_memory(passages, query)
        assert found(corpus, query, 2) == in_memory(passages, query, 2)
    assert corpus.statistics() == statistics_of(passages)


class Changes(RuleBasedStateMachine):
    """Documents that come, change and go, some thrice and with equal texts."""

    @initialize(path=st.sampled_from(["memory", "file"]))
    def start(self, path):
        self.folder = TemporaryDirectory()
        path = None if path == "memory" else Path(self.folder.name, "corpus.db")
        self.corpus = Corpus(path, unit="paragraph")
        self.expected: dict[str, list[Passage]] = {}

    def teardown(self):
        if hasattr(self, "folder"):
            self.folder.cleanup()

    @rule(number=st.integers(0, 4), texts=st.lists(TEXTS, max_size=4), title=TITLES)
    def add_document(self, number, texts, title):
        text = "\n\n".join([f"# {title}", *texts])
        name = f"d{number}"
        self.corpus.add([(name, parse_document(text, "markdown"))])
        document = parse_document(text, "markdown")
        self.expected[name] = [
            Passage(document.readable(block), id=f"{name}:{block.start}", title=" > ".join(section.path))
            for section, block in document.paragraphs()
        ]

    @rule(numbers=st.lists(st.integers(0, 5), max_size=3), text=TEXTS, title=TITLES)
    def add_passages(self, numbers, text, title):
        passages = [Passage(text, id=f"p{number}", title=title, links=("x",), metadata=METADATA) for number in numbers]
        self.corpus.add(passages)
        self.expected |= {passage.id: [passage] for passage in passages}

    @rule(numbers=st.lists(st.integers(0, 5), max_size=4))
    def remove(self, numbers):
        names = [name for number in numbers for name in (f"d{number}", f"p{number}")]
        self.corpus.remove(names)
        for name in names:
            self.expected.pop(name, None)

    @invariant()
    def as_made_anew(self):
        if not hasattr(self, "corpus"):
            return
        agrees(self.corpus)
        held = {passage.id: (" ".join(passage.title.split()), passage.text) for passage in self.corpus}
        expected = [passage for passages in self.expected.values() for passage in passages]
        assert held == {passage.id: (" ".join(passage.title.split()), passage.text) for passage in expected}
        fresh = Corpus()
        fresh.add(self.corpus)
        assert [found(fresh, query) for query in QUERIES] == [found(self.corpus, query) for query in QUERIES]


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=examples(25), stateful_step_count=12)


def test_another_scorer_is_passed_in():
    corpus = Corpus()
    corpus.add(linked_passages(300))
    passages = list(corpus)
    [question] = questions(passages, 1)
    model = UnigramModel().fit(corpus.statistics())
    mean = corpus.statistics()

    def likelihood(blocks):
        """The unigram model's sum, from what a scorer is told."""
        for counts in blocks:
            assert len(counts.collection) == len(passages)
            assert all(
                counts.collection.document_frequencies[word] == mean.document_frequencies[word]
                for word in counts.collection.document_frequencies
            )
            scores = np.zeros(len(counts.numbers))
            for word in counts.words:
                [share] = model.collection.probability([word])
                scores += np.log((counts.tf(word) + 300 * share) / (counts.lengths + 300))
            yield counts.numbers, scores

    ranking = corpus.search(question, 20, scorer=likelihood)
    expected = model.document_log_probs(question, [item.passage.titled_text for item in ranking]).sum(axis=1)
    assert [item.score for item in ranking] == pytest.approx(expected.tolist(), abs=1e-9)
    assert [item.rank for item in ranking] == list(range(1, 21))
    assert found(corpus, question) == [(item.passage.id, item.score) for item in corpus.search(question, scorer=bm25)]


# Documents and files


def test_a_passage_is_a_paragraph_under_its_headings():
    text = "Intro.\n\n# Sea\n\n## Fish\n\nCod.\n\n- one\n- two\n\n# Land\n"
    corpus = Corpus(unit="paragraph")
    corpus.add([("sea", parse_document(text))])
    assert [(one.title, one.text, one.metadata["section_path"]) for one in corpus] == [
        ("", "Intro.", []),
        ("Sea > Fish", "Cod.", ["Sea", "Fish"]),
        ("Sea > Fish", "- one\n- two", ["Sea", "Fish"]),
        ("Land", "# Land", ["Land"]),
    ]
    for one in corpus:
        assert text[one.metadata["start"] : one.metadata["end"]] == one.text
        assert (one.id, one.metadata["document"]) == (f"sea:{one.metadata['start']}", "sea")
    page = parse_document("<h1>A</h1><p>The <b>red</b> fox.</p>")
    corpus.add([page, page])
    assert [one.text for one in corpus][-1] == "The red fox."
    assert len(corpus) == 5
    assert corpus.document("sea") == parse_document(text)
    for missing in ("land", corpus.search("fox")[0].passage.id):
        with pytest.raises(InvalidInput, match="no parsed document"):
            corpus.document(missing)


def test_files_are_parsed_when_they_are_new_or_changed(tmp_path, monkeypatch):
    parsed: list[Path] = []

    def reading(path):
        parsed.append(path)
        return read_document(path)

    monkeypatch.setattr(documents, "read_document", reading)
    one, two = tmp_path / "one.md", tmp_path / "two.md"
    one.write_text("# Fox\n\nIt hunts.")
    two.write_text("# Owl\n\nIt flies.")
    corpus = Corpus(tmp_path / "corpus.db", unit="paragraph")
    corpus.add([one, two])
    corpus.add([one, two])
    assert parsed == [one, two]
    assert corpus.document(str(one)) == read_document(one)
    two.write_text("# Owl\n\nIt sleeps.")
    corpus.add([one, two])
    assert parsed == [one, two, two]
    assert [passage.text for passage in corpus] == ["It hunts.", "It sleeps."]
    assert corpus.mark_used([(str(one), file_key(one)), (str(two), b"other"), ("three", b"")]) == {str(one)}
    monkeypatch.setattr("drillrank.structure.read.PARSER_VERSION", -1)
    corpus.add([one])
    assert parsed == [one, two, two, one]


def test_a_file_that_changes_while_it_is_read_is_told(tmp_path, monkeypatch):
    def reading(path):
        document = read_document(path)
        path.write_text("An owl.")
        return document

    monkeypatch.setattr(documents, "read_document", reading)
    file, corpus = tmp_path / "one.md", Corpus()
    file.write_text("A fox.")
    with pytest.raises(InvalidInput, match="changed while it was read"):
        corpus.add([file])
    assert len(corpus) == 0


def test_a_bad_file_costs_nothing_but_itself(tmp_path):
    files = [tmp_path / f"{number}.md" for number in range(5)]
    for number, file in enumerate(files):
        file.write_bytes(b"\0\1" if number == 2 else b"fox %d" % number)
    corpus, waiting = Corpus(), iter(files)
    with pytest.raises(InvalidInput, match=r"2\.md is not text"):
        corpus.add(waiting)
    assert len(corpus) == 2
    corpus.add(waiting)
    assert [passage.text for passage in corpus] == ["fox 0", "fox 1", "fox 3", "fox 4"]
    with pytest.raises(InvalidInput, match=r"gone\.md cannot be read"):
        corpus.add([tmp_path / "gone.md"])


def test_what_is_used_stays_and_the_rest_expires(monkeypatch):
    now = [1_000.0]
    monkeypatch.setattr(store.time, "time", lambda: now[0])
    corpus = Corpus()
    corpus.add([Passage("fox", id="a"), Passage("owl", id="b")])
    now[0] = 2_000.0
    corpus.add([Passage("fox", id="a")])
    corpus.expire(500)
    assert [passage.id for passage in corpus] == ["a"]
    agrees(corpus)


# What cannot be added


def test_what_cannot_be_added_changes_nothing(tmp_path):
    corpus = Corpus(tmp_path / "corpus.db")
    corpus.add([("doc", parse_document("fox"))])
    endless: dict = {}
    endless["of"] = endless
    for given_, message in (
        ([("other", Passage("owl", id="doc:0"))], "'other' has a passage with the id of another"),
        ([Passage("a", id="one", metadata={"of": {1}})], "metadata of passage 'one'"),
        ([Passage("a", id="one", metadata=endless)], "metadata of passage 'one'"),
        ([Passage("a", id="o\ud800")], "half a character"),
        ([3], "not 3"),
        (["a text"], "not 'a text'"),
        ("a text", "not 'a'"),
    ):
        with pytest.raises(InvalidInput, match=message):
            corpus.add(given_)
    assert [passage.id for passage in corpus] == ["doc:0"]
    agrees(corpus)


# Versions, and other processes


def test_an_index_of_another_analyzer_is_made_anew_from_the_texts(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "BATCH", 7)
    file = tmp_path / "corpus.db"
    Corpus(file).add(linked_passages(50))
    other = Corpus(file, language="none")
    passages = list(other)
    assert other.statistics().document_frequencies.keys() == {
        word for one in passages for word in terms(one.titled_text, "none")
    }
    assert len(other.statistics()) == len(other) == 50
    with monkeypatch.context() as patch:
        patch.setattr("drillrank.text.ANALYZER", -1)
        patch.setattr(store, "terms", lambda text, language: text.split())
        newer = Corpus(file)
        assert newer.statistics().document_frequencies.keys() == {
            word for one in passages for word in one.titled_text.split()
        }
    again = Corpus(file)
    agrees(again, questions(passages, 3))
    other.search("fox")  # whoever asks has it made again
    agrees(again, questions(passages, 3))


def test_a_corpus_in_a_file_is_sent_and_one_in_memory_is_not(tmp_path):
    corpus = Corpus(tmp_path / "corpus.db")
    sent = pickle.loads(pickle.dumps(corpus))
    sent.add([Passage("a fox", id="a")])
    assert found(corpus, "fox") == found(sent, "fox") != []
    with pytest.raises(TypeError):
        pickle.dumps(Corpus())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux")
def test_no_file_stays_open(tmp_path):
    corpus = Corpus(tmp_path / "corpus.db")
    corpus.add([Passage("a fox"), Passage("an owl")])
    assert corpus.search("fox")
    assert next(iter(corpus))
    opened = [str(path.resolve()) for path in Path("/proc/self/fd").iterdir()]
    assert not [path for path in opened if path.startswith(str(tmp_path))]
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.db"]


def test_files_whose_size_and_times_are_as_before_are_not_read_again(tmp_path, monkeypatch):
    one, other, gone = tmp_path / "one.md", tmp_path / "other.md", tmp_path / "gone.md"
    one.write_text("A fox.", encoding="utf-8")
    other.write_text("An owl.", encoding="utf-8")
    corpus = Corpus(tmp_path / "corpus.db")
    first = list(corpus.file_keys([one, other, gone]))
    assert first[:2] == [file_key(one), file_key(other)]
    assert isinstance(first[2], InvalidInput)
    read = []
    monkeypatch.setattr(file_keys, "file_key", lambda path: read.append(path) or file_key(path))
    assert list(corpus.file_keys([one, other])) == first[:2]
    assert read == [one, other]  # they have changed just now
    now = time.time_ns()
    monkeypatch.setattr(file_keys.time, "time_ns", lambda: now + 10**10)
    assert list(corpus.file_keys([one, other])) == first[:2]
    read.clear()
    assert list(corpus.file_keys([other, one])) == first[1::-1]
    assert not read
    other.write_text("An elk.", encoding="utf-8")  # of the same length
    assert list(corpus.file_keys([one, other])) == [first[0], file_key(other)]
    assert read == [other]


# Units

SEA = "# Sea\n\nDeep.\n\n## Fish\n\nCod.\n\nHake.\n\n# Land\n\nOwls.\n"


def contents(corpus):
    return [(one.id, one.title, one.text, one.metadata) for one in corpus]


@pytest.mark.parametrize(("unit", "other"), [("passage", "paragraph"), ("paragraph", "passage")])
def test_documents_of_another_unit_are_cut_again_from_their_stored_parses(tmp_path, monkeypatch, unit, other):
    monkeypatch.setattr(store, "_CUT_BATCH", 2)
    documents_by_id = [(f"d{n}", parse_document(SEA.replace("Deep", f"Deep {n}"))) for n in range(5)]
    file, fresh = tmp_path / "corpus.db", Corpus(unit=unit)
    Corpus(file, unit=other).add(documents_by_id)
    fresh.add(documents_by_id)
    corpus = Corpus(file, unit=unit)
    assert contents(corpus) == contents(fresh)
    assert len({len(corpus), len(Corpus(file, unit=other))}) == 2
    assert contents(corpus) == contents(fresh)  # cut again for each of them
    agrees(corpus, ["deep fish", "owls on land"])
    assert corpus.document("d3") == documents_by_id[3][1]


def test_passages_that_were_added_as_such_stay_in_any_unit(tmp_path):
    file = tmp_path / "corpus.db"
    Corpus(file, unit="paragraph").add([Passage("a fox", id="fox"), ("sea", parse_document(SEA))])
    corpus = Corpus(file, unit="passage")
    assert [one.id for one in corpus] == ["fox", "sea:0"]
    corpus.remove(["fox"])
    assert [one.id for one in corpus] == ["sea:0"]
    agrees(corpus, ["fox", "fish"])


def test_a_unit_of_an_older_version_is_cut_again(tmp_path, monkeypatch):
    file = tmp_path / "corpus.db"
    with monkeypatch.context() as patch:
        patch.setattr(store, "CUT_VERSION", 0)
        Corpus(file, unit="passage").add([("sea", parse_document(SEA))])
    cut = []
    monkeypatch.setattr(
        store, "prepare_document", lambda *args: cut.append(args[1]) or documents.prepare_document(*args)
    )
    assert len(Corpus(file, unit="passage")) == 1
    assert cut == ["sea"]


def test_a_damaged_parse_cannot_be_cut_again_and_the_error_says_what_to_do(tmp_path):
    file = tmp_path / "corpus.db"
    Corpus(file, unit="paragraph").add([("sea", parse_document(SEA))])
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE documents SET parse = X'00'")
    with pytest.raises(InvalidInput, match=r"parse of 'sea' is damaged, .* delete the file and add the"):
        Corpus(file, unit="passage")


def test_an_unknown_unit_is_refused():
    with pytest.raises(InvalidInput, match="unit"):
        Corpus(unit="page")
