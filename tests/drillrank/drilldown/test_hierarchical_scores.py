"""The language model with levels against its formulas, written out word by word in float64."""

from __future__ import annotations

import math
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.contracts import contracts, found, rankers
from drillrank import D3, parse_document
from drillrank.drilldown.hierarchical_scores import score_index
from drillrank.drilldown.question_terms import IndexedParagraph, LevelIndex
from drillrank.likelihood import EmbeddingModel
from drillrank.likelihood.unigram import CollectionModel
from drillrank.text import terms
from tests.drillrank.helpers import paragraph_d3
from tests.examples import examples

WORDS = ["margin", "revenue", "2022", "fox", "owl", "dividend", "lease"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
sections = st.lists(st.tuples(st.sampled_from(["", "Revenue", "Notes 2022"]), st.lists(texts, min_size=1, max_size=4)))
documents = st.lists(st.tuples(st.booleans(), texts, texts, sections.filter(len)), min_size=1, max_size=4)


@settings(max_examples=examples(150), deadline=None)
@given(
    documents, st.lists(st.sampled_from([*WORDS, "unseen", "Owl", "Dividend"]), min_size=1, max_size=5).map(" ".join)
)
def test_scores_are_those_of_the_formulas(given_documents, question):
    read, names, beginnings = [], {}, {}
    for number, (paged, name, beginning, parts) in enumerate(given_documents):
        names[number], beginnings[number] = name, beginning
        for place, (heading, paragraphs) in enumerate(parts):
            read += [IndexedParagraph(text, [heading], (number, place), number, paged) for text in paragraphs]
    found = score_index(LevelIndex(read, names, beginnings), question)

    def counted(of):
        return [word for text in of for word in terms(text.text)]

    asked = terms(question)
    frequencies = {word: counted(read).count(word) for word in {*counted(read)}.intersection(asked)}
    frequencies["\0"] = len(counted(read)) - sum(frequencies.values())  # all that is not asked about
    collection = CollectionModel(frequencies, "english")
    named = {word for token in question.split()[1:] if token[0].isupper() for word in terms(token)}
    sizes = {number: len({text.section for text in read if text.document == number}) for number in names}
    size = math.exp(fmean(math.log(n) for n in sizes.values()))

    def speaks(word, number):
        of = {text.section: [] for text in read if text.document == number}
        for text in read:
            if text.document == number:
                of[text.section].append(text)
        share = sum(word in counted(some) for some in of.values()) / sizes[number]
        return share + (word in terms(beginnings[number])) + (word in terms(names[number]))

    for at, text in enumerate(read):
        own = counted([other for other in read if other.document == text.document])
        around = counted([other for other in read if other.section == text.section])
        words = terms(text.text) + terms(" ".join(text.headings))
        total = 0.0
        for word, of_collection in zip(asked, collection.probability(asked).tolist(), strict=True):
            of_document = 0.6 * own.count(word) / len(own) + 0.4 * of_collection
            of_section = (around.count(word) + 1000 * of_document) / (len(around) + 1000)
            mu, above = (100, of_section) if any(paged for paged, *_ in given_documents) else (1000, of_collection)
            total += math.log((words.count(word) + mu * above) / (len(words) + mu))
        for word in {*asked}:
            mean = fmean(speaks(word, number) for number in names)
            names_weight = 3 if word in named else 1
            total += (
                names_weight * 6 * size / (size + 150) * math.log((speaks(word, text.document) + 0.05) / (mean + 0.05))
            )
        if not found.matched.any():
            total = math.fsum(map(math.log, collection.probability(asked).tolist()))
        assert found.totals[at] == pytest.approx(total, abs=1e-9)
        assert math.fsum(term.value for term in found.explain(at)) == pytest.approx(total, abs=1e-9)


REPORT = """# Annual report of {company}

{company} makes things. This is the annual report for the year {year}.

## Results

The operating margin was {margin} percent, as the table of {company} shows.

## Risks

Demand may fall, and the margin with it.
"""


@pytest.mark.parametrize("named", [True, False])
def test_the_document_that_the_question_means(named):
    companies = ["Acme", "Borealis", "Cygnus", "Dorado"]
    folder = [(company, year) for company in companies for year in (2021, 2022)]
    texts = [REPORT.format(company=company, year=year, margin=n + 10) for n, (company, year) in enumerate(folder)]
    names = [
        f"{company}_{year}_annual_report.pdf" if named else f"{n:x}.pdf" for n, (company, year) in enumerate(folder)
    ]
    d3 = D3(settings={"max_documents": 3})
    ready = d3.prepare([parse_document(text) for text in texts], names)
    for n, (company, year) in enumerate(folder):
        best = d3.retrieve(f"What was {company}'s FY{year % 100} operating margin?", ready, 1)[0]
        assert f"margin was {n + 10} percent" in best.passage.text
        [step] = [step for step in d3.retrieve(f"{company} {year}", ready, 1).steps if step.kind == "documents"]
        assert str(n) in step.chosen
        assert len(step.chosen) == 3


def test_metadata_of_hosts_say_which_document_is_meant():
    from langchain_core.documents import Document as HostDocument

    from langchain_ext import D3Retriever

    clause = "# Lease\n\nThe tenant shall pay rent.\n\n## Notice\n\nThe notice period is {} months."
    documents = [
        HostDocument(
            page_content=clause.format(n), metadata={"source": f"/leases/{n}.md", "tenant": name, "year": year}
        )
        for n, (name, year) in enumerate([("Meyer", 2020), ("Meyer", 2023), ("Rossi", 2020), ("Rossi", 2023)])
    ]
    retriever = D3Retriever(documents=documents, top_n=1)
    for n, question in enumerate(["Meyer in 2020", "Meyer in 2023", "Rossi in 2020", "Rossi in 2023"]):
        [found] = retriever.invoke(f"What notice period was agreed with {question}?")
        assert f"{n} months" in found.page_content


@pytest.mark.parametrize("kappa", [20.0, "fit"])
def test_what_a_model_of_meaning_did_not_read_is_explained_too(kappa):
    text = "\n\n".join(f"The rent of house {n} is due. It is paid in month {n % 12}." for n in range(70))
    d3 = paragraph_d3(model=EmbeddingModel(lambda texts: [[len(t), t.count("1") + 1] for t in texts], kappa=kappa))
    found = d3.retrieve("When is the rent of house 61 due?", [text], 70)
    assert [item.details["read"] for item in found] == [True] * 50 + [False] * 20
    assert [entry.total for entry in found.explain()] == pytest.approx([item.score for item in found], abs=1e-9)


# Twelve contracts that differ in parties, dates and figures only: which one a question means decides


def test_the_clause_of_the_right_contract_is_found_first_where_chunks_cannot_tell_them_apart():
    texts, questions = contracts()
    methods = rankers([parse_document(text, "markdown") for text in texts])
    hits = {name: sum(found(ranker, asked, 1200) for asked in questions) for name, ranker in methods.items()}
    assert hits["D3, paragraphs"] == len(questions) == 30
    assert hits["D3, passages"] >= 26  # a passage of 1,200 characters has several clauses
    assert max(hits["UPR over chunks of 100 tokens"], hits["BM25 over chunks of 100 tokens"]) <= 10
