"""`preset="paper"` against the text of the papers: each prompt, count and cut, by every way in.

The ways are the core, both frameworks, and the commands `compare`, `tune` and `ask`. The quotations at the top name the
section of the paper. Blanks and line breaks do not matter, since the papers print none.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from drillrank import BRMGR, D3, UPR, Passage, Path, PathSearch, PromptRank, parse_document
from drillrank.__main__ import main
from drillrank.errors import DrillrankWarning
from drillrank.generation import generated_passages
from drillrank.llm import run
from drillrank.prompts import prompt_text
from drillrank.views import MultiViewChunker, MultiViewIndex
from tests.conformance.frameworks import LangChain, LlamaIndex
from tests.drillrank.chat_server import serving
from tests.drillrank.conftest import HashModel
from tests.drillrank.helpers import write_rows

# Sachan et al. (2022), as quoted by Du et al. (2024), section III: title and text, then the instruction.
UPR_PROMPT = "Passage: {title} {text}. Please write a question based on this passage."
# Du et al. (2024), section IV.A: "the verbalizer is set as Please write a question based on this passage", "title and
# text of each passage are concatenated with a verbalizer head as follows: passage:", "10 retrieved and/or
# LLM-generated passages for each question".
BRMGR_PROMPT = "passage: {title} {text}. Please write a question based on this passage."
BRMGR_RETRIEVED = BRMGR_GENERATED = 10
# Khalifa et al. (2023), table A1 (the first five are the ensemble, section 3), and section 3 for the numbers.
PROMPTRANK_PROMPTS = (
    "{path} Review previous documents and ask some question. Question:",
    "{path} Review the previous documents and answer question. Question:",
    "{path} Read the previous documents and write the following question. Question:",
    "{path} Search previous documents and ask the question. Question:",
    "To analyze the documents and ask question. {path} Question:",
)
TEMPERATURE, HOPS, K1, L = 1.4, 2, 5, 3
DOCUMENT_TOKENS = 230
# Dong et al. (2024), figures 8 and 9, appendix G (summaries above 200 tokens), appendix E (3 of each view at k = 5).
SUMMARY_PROMPT = (
    "You are a helpful summarization assistant. Please help me summarize the following section into no more than 10 "
    "sentences or 200 words. Section Name: {name} Section Text: {text}"
)
KEYWORD_PROMPT = (
    "You are a helpful keyword extractor. You need to extract keywords from the following section. The keywords should "
    "consist of concepts, entities, or important descriptions that are related to the section text, which could be "
    "used to answer any questions from users. Section Name: {name} Section Text: **Beginning of text** {text} **End of "
    "text** Please output format in list format: [...]. Do not output anything else aside from this list."
)
RAW_UP_TO, PER_VIEW = 200, {1: 1, 3: 2, 5: 3, 10: 7}
# Nair et al. (2023), experiment settings, section 3.3.1 for the lines of the outline, footnote 3 for nested names.
SECTION_PROMPT = (
    "Document section structure: {outline} Question: {question} List all section names that may be relevant for "
    "answering the question. Respond with comma-separated section name list. Provide an empty response if none of the "
    "sections are relevant."
)
PARAGRAPH_PROMPT = (
    "{paragraphs} Question: {question} Find paragraph ids that contains relevant information for answering the "
    "question. Respond with comma-separated id list. Provide an empty response if none of the paragraphs are relevant."
)
SUMMARIZER = "facebook/bart-large-cnn"  # section 3.2

QUESTION = "Which river flows past the castle where the painter was born?"
FRAMEWORKS = {"LlamaIndex": LlamaIndex, "LangChain": LangChain}


def plain(text: str) -> str:
    return " ".join(text.split())


class WordModel(HashModel):
    """Model whose tokens are words. It records requests and temperatures."""

    def __init__(self) -> None:
        super().__init__()
        self.temperatures: set[float] = set()

    def first_tokens(self, text: str, count: int) -> str:
        return " ".join(text.split(" ")[:count])

    def log_likelihood_batch(self, requests: Any, temperature: float, include_eos: bool) -> Any:
        self.temperatures.add(temperature)
        return super().log_likelihood_batch(requests, temperature, include_eos)

    @property
    def prompts(self) -> list[str]:
        return [plain(prompt_text(request.prompt)) for request in self.requests]


@dataclass
class Way:
    """A way in, with the models that it uses.

    Attributes:
        name: "core", a framework, or a command.
        model: Model for likelihoods.
        say: Function that answers prompts of an LLM.
        prompts: Prompts that the LLM was sent.
    """

    name: str
    model: WordModel = field(default_factory=WordModel)
    say: Any = None
    prompts: list[str] = field(default_factory=list)

    def __call__(self, prompt: str) -> str:
        self.prompts.append(plain(prompt))
        return self.say(prompt)

    @property
    def framework(self) -> Any:
        return FRAMEWORKS[self.name]

    def framework_llm(self) -> Any:
        return self.framework.reader(self)

    @contextmanager
    def serving(self):
        with serving(self) as server:
            yield server.address


@pytest.fixture
def command(monkeypatch, tmp_path, capsys):
    """Runs a command on files in a folder, with a model `recorded:` of one's own; returns what it prints as JSON."""
    monkeypatch.chdir(tmp_path)

    def run_command(way: Way, *words: str) -> Any:
        entry_point = SimpleNamespace(
            name="recorded", value="tests:recorded", dist=None, load=lambda: lambda *_, **__: way.model
        )
        monkeypatch.setattr("drillrank.likelihood.load._entry_points", lambda: [entry_point])
        capsys.readouterr()
        assert main([*words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run_command


PASSAGES = [
    Passage(
        f"The castle of river {n} has a painter", id=f"p{n}", title=f"Town {n}", links=(f"p{(n + 1) % 12}",) * (n < 6)
    )
    for n in range(12)
]


def rows():
    return [{"id": p.id, "title": p.title, "text": p.text, "links": list(p.links)} for p in PASSAGES]


def records(framework):
    return [framework.record(p.text, p.id, title=p.title, links=list(p.links)) for p in PASSAGES]


def titled_records(framework):
    return [framework.record(p.text, p.id, title=p.title) for p in PASSAGES]


@pytest.mark.parametrize("way", ["core", "LlamaIndex", "LangChain", "compare", "tune"])
def test_upr(way, command):
    way = Way(way)
    if way.name == "core":
        UPR(way.model, preset="paper").rank(QUESTION, PASSAGES)
    elif way.name in FRAMEWORKS:
        framework = way.framework
        reranker = framework.ext.UPRRerank(way.model, preset="paper")
        framework.rerank(reranker, QUESTION, *titled_records(framework))
    else:
        _run_reranker(way, command, "UPR", "prior=[null]")
    assert set(way.model.prompts) >= {UPR_PROMPT.format(title=p.title, text=p.text) for p in PASSAGES}
    assert {prompt[:9] for prompt in way.model.prompts} == {"Passage: "}
    assert {request.target for request in way.model.requests} == {QUESTION}
    assert way.model.temperatures == {1.0}


def _run_reranker(way, command, component, tried):
    """Compare or tune a component on one question, or on two, over all passages."""
    asked = [
        {"id": str(n), "question": QUESTION, "gold": ["p1"], "candidates": [p.id for p in PASSAGES]} for n in (1, 2)
    ]
    write_rows("questions.jsonl", asked)
    write_rows("corpus.jsonl", rows())
    specification = json.dumps({"component": component, "model": "recorded:x"})
    words = [way.name, "questions.jsonl", "corpus.jsonl", "--component", specification, "--preset", "paper"]
    if way.name == "tune":
        names = ["prior", "prior_weight"] + ["temperature", "instructions"] * (component == "PromptRank")
        fixed = [word for name in names for word in ("--try", f"{name}=[]")]
        words += [*fixed, "--try", tried, "--folds", "2"]
    return command(way, *words)


@pytest.mark.parametrize("way", ["core", "LlamaIndex", "LangChain", "compare"])
def test_brmgr(way, command):
    way = Way(way, say=lambda prompt: f"Passage number {len(way.prompts)}.")
    if way.name == "core":
        generated = run(generated_passages(QUESTION, BRMGR_GENERATED), way)
        ranking = BRMGR(way.model, preset="paper").rank(QUESTION, PASSAGES[:BRMGR_RETRIEVED], generated)
        assert len(ranking) == 20
    elif way.name in FRAMEWORKS:
        framework = way.framework
        retrieved = framework.retriever(*titled_records(framework)[:BRMGR_RETRIEVED])
        fields = {"source": retrieved, "llm": way.framework_llm(), "model": way.model}
        retriever = framework.ext.BRMGRRetriever(preset="paper", **fields)
        with pytest.warns(DrillrankWarning, match="no temperature that can be set"):
            assert len(framework.retrieve(retriever, QUESTION)) == 20
    else:
        with way.serving() as address:
            write_rows(
                "questions.jsonl", [{"question": QUESTION, "gold": ["p1"], "candidates": [p.id for p in PASSAGES]}]
            )
            write_rows("corpus.jsonl", rows())
            component = json.dumps({"component": "BRMGR", "model": "recorded:x", "llm": address})
            words = ["compare", "questions.jsonl", "corpus.jsonl", "--preset", "paper", "--component", component]
            command(way, *words)
        assert len(set(way.prompts)) == 1  # samples of one prompt
    by_target = {target: [] for target in (QUESTION, "passage")}
    for request, prompt in zip(way.model.requests, way.model.prompts, strict=True):
        by_target[QUESTION if request.target == QUESTION else "passage"].append(prompt)
    assert set(by_target[QUESTION]) == {
        BRMGR_PROMPT.format(title=p.title, text=p.text) for p in PASSAGES[:BRMGR_RETRIEVED]
    }
    assert len(by_target["passage"]) == len(way.prompts) == BRMGR_GENERATED
    assert len(set(by_target["passage"])) == 1  # the question alone: log p(lp | q), equation 5
    assert all(p.text not in by_target["passage"][0] for p in PASSAGES)


def _shown(*passages):
    return " ".join(f"Document: {plain(p.text)}" for p in passages)


@pytest.mark.parametrize("way", ["core", "LlamaIndex", "LangChain", "compare"])
def test_path_search(way, command):
    way = Way(way)
    if way.name == "core":
        PathSearch(PromptRank(way.model, preset="paper"), PASSAGES, preset="paper").search(QUESTION)
    elif way.name in FRAMEWORKS:
        framework = way.framework
        linked = records(framework)
        retriever = framework.ext.PromptRankRetriever(
            linked, source=framework.retriever(*linked), model=way.model, preset="paper"
        )
        framework.retrieve(retriever, QUESTION)
    else:
        write_rows("questions.jsonl", [{"question": QUESTION, "gold": ["p1"]}])
        write_rows("corpus.jsonl", rows())
        component = json.dumps({"component": "PathSearch", "model": "recorded:x"})
        command(way, "compare", "questions.jsonl", "corpus.jsonl", "--preset", "paper", "--component", component)
    singles = [_shown(p) for p in PASSAGES]
    pairs = [_shown(p, PASSAGES[(n + 1) % 12]) for n, p in enumerate(PASSAGES[:6])]
    expected = {path: {plain(prompt.format(path=path)) for prompt in PROMPTRANK_PROMPTS} for path in [*singles, *pairs]}
    prompts = set(way.model.prompts)
    assert prompts >= set().union(*map(expected.__getitem__, singles))
    followed = [path for path in pairs if expected[path] & prompts]
    assert prompts == set().union(*(expected[path] for path in [*singles, *followed]))  # H = 2, hyperlinks only
    assert len(followed) <= K1
    assert way.model.temperatures == {TEMPERATURE}
    assert {request.target for request in way.model.requests} == {QUESTION}


@pytest.mark.parametrize("way", ["core", "LlamaIndex", "LangChain", "compare", "tune"])
def test_promptrank(way, command):
    way = Way(way)
    if way.name == "core":
        PromptRank(way.model, preset="paper").rank(QUESTION, [Path((p,)) for p in PASSAGES])
    elif way.name in FRAMEWORKS:
        framework = way.framework
        reranker = framework.ext.PromptRankRerank(model=way.model, preset="paper")
        framework.rerank(reranker, QUESTION, *records(framework))
    else:
        _run_reranker(way, command, "PromptRank", 'ensemble=["max"]')
    expected = {plain(prompt.format(path=_shown(p))) for prompt in PROMPTRANK_PROMPTS for p in PASSAGES}
    assert set(way.model.prompts) >= expected
    assert way.model.temperatures == {TEMPERATURE}


def test_a_document_of_a_path_is_cut_to_230_words():
    model = WordModel()
    long = Passage(" ".join(f"w{n}" for n in range(400)))
    PromptRank(model, preset="paper").rank(QUESTION, [Path((long,))])
    [text] = {
        prompt.split("Document: ")[1].split(" Review")[0] for prompt in model.prompts if "Review previous" in prompt
    }
    assert text.rstrip(".").split() == [f"w{n}" for n in range(DOCUMENT_TOKENS)]


# MC-indexing

BOOK = {
    "Oak": "oaks stand in light rain",
    "Oak > Roots": " ".join(f"roots drink water {n}" for n in range(100)),  # 400 words: above 200 tokens
    **{f"Tree {n}": f"tree {n} has leaves and bark" for n in range(10)},
}
MARKDOWN = "".join(
    f"{'##' if ' > ' in name else '#'} {name.split(' > ')[-1]}\n\n{text}\n\n" for name, text in BOOK.items()
)


def _write(prompt: str) -> str:
    return "A short summary." if "summarization" in prompt else '["bark", "roots"]'


@pytest.mark.parametrize("way", ["core", "LlamaIndex", "LangChain", "compare"])
def test_mc_indexing(way, command, tmp_path):
    way = Way(way, say=_write)
    if way.name == "core":
        [chunks] = MultiViewChunker(preset="paper", llm=way).chunks([("book", parse_document(MARKDOWN))])
        _check_views({(chunk.view, chunk.path): chunk.text for chunk in chunks})
        for k, per_view in PER_VIEW.items():
            found = MultiViewIndex(chunks, preset="paper").search("bark leaves roots", k)
            _check_union([dict(one.ranks) for one in found], per_view)
    elif way.name in FRAMEWORKS:
        framework = way.framework
        document = framework.document(MARKDOWN, "book")
        split = framework.split([document], preset="paper", llm=way.framework_llm())
        _check_views(
            {
                (
                    one.metadata["drillrank_view"],
                    tuple(one.metadata["drillrank_section_path"].split(" > ")),
                ): framework.text_of(one)
                for one in split
            }
        )
        for k, per_view in PER_VIEW.items():
            retriever = framework.ext.MultiViewRetriever(split, preset="paper", top_n=k)
            ranks = [
                one.metadata["drillrank_matched_views"] for one in framework.retrieve(retriever, "bark leaves roots")
            ]
            _check_union([dict(view.split(":") for view in one.split()) for one in ranks], per_view)
    else:
        with way.serving() as address:
            (tmp_path / "book.md").write_text(MARKDOWN)
            write_rows("questions.jsonl", [{"question": QUESTION, "spans": [BOOK["Oak"]]}])
            component = json.dumps({"component": "MultiViewIndex", "llm": address})
            command(way, "compare", "questions.jsonl", "book.md", "--preset", "paper", "--component", component)
    names = list(BOOK)
    expected = {plain(KEYWORD_PROMPT.format(name=name, text=BOOK[name])) for name in names}
    expected.add(plain(SUMMARY_PROMPT.format(name="Oak > Roots", text=BOOK["Oak > Roots"])))
    assert set(way.prompts) == expected  # sections are neither cut nor joined, and short ones have no summary prompt


def _check_views(text_by_view):
    assert len(text_by_view) == 3 * len(BOOK)
    for (view, path), text in text_by_view.items():
        body = BOOK[" > ".join(path)]
        if view == "raw":
            assert text.strip().endswith(body)
        elif view == "keywords":
            assert text == "bark, roots"  # no heading path: section 3.3 has keywords alone
        else:
            assert text == ("A short summary." if len(body.split()) > RAW_UP_TO else body)


def _check_union(found, per_view):
    """The union has exactly the first `per_view` sections of each view (appendix E)."""
    assert all(min(map(int, ranks.values())) <= per_view for ranks in found)
    for view in ("raw", "keywords", "summary"):
        ranks = sorted(int(ranks[view]) for ranks in found if view in ranks)
        assert ranks[:per_view] == list(range(1, per_view + 1))[: len(ranks)]


def test_the_threshold_of_200_tokens_is_counted_by_the_user_s_tokenizer():
    text = " ".join(f"word{n}" for n in range(150))
    prompts: dict[int, int] = {}
    for tokens_per_word in (1, 2):
        way = Way("core", say=_write)
        settings = {"tokens": lambda text, n=tokens_per_word: n * len(text.split())}
        chunker = MultiViewChunker(["raw", "summary"], llm=way, preset="paper", settings=settings)
        chunker.chunks([("a", parse_document(f"# A\n\n{text}\n"))])
        prompts[tokens_per_word] = len(way.prompts)
    assert prompts == {1: 0, 2: 1}


@pytest.mark.parametrize("framework", FRAMEWORKS.values())
def test_explicit_values_of_mc_indexing_win_even_if_they_are_defaults(framework):
    document = framework.document(MARKDOWN, "book")
    explicit = {"max_tokens": 512, "min_tokens": 64, "settings": {"headings": True}}
    default = [framework.text_of(one) for one in framework.split([document])]
    assert [framework.text_of(one) for one in framework.split([document], preset="paper", **explicit)] == default
    sections = framework.split([document])
    fused = framework.ext.MultiViewRetriever(sections, preset="paper", merge="fusion", top_n=4)
    plain_retriever = framework.ext.MultiViewRetriever(sections, top_n=4)
    assert [one.id for one in framework.retrieve(fused, "bark")] == [
        one.id for one in framework.retrieve(plain_retriever, "bark")
    ]


# D3

PAPER = (
    "# U\n\nunder the bridge\n\n## C\n\n"
    + "".join(f"paragraph number {n}\n\n" for n in range(12))
    + "# V\n\nof vines\n"
)


class FakeBART:
    """Stands in for the summarizer, whose weights are a gigabyte: the test checks which one is made, and how."""

    made: ClassVar[list[tuple[tuple[Any, ...], dict[str, Any]]]] = []

    def __init__(self, *arguments, **options):
        self.made.append((arguments, options))

    def __call__(self, texts):
        return [f"Summary of {len(text.split())} words." for text in texts]


@pytest.mark.parametrize("way", ["core", "LlamaIndex", "LangChain", "compare", "ask"])
def test_d3(way, command, monkeypatch, tmp_path):
    monkeypatch.setattr("drillrank.drilldown.settings.HuggingFaceSummarizer", FakeBART)
    FakeBART.made.clear()
    way = Way(
        way, say=lambda prompt: "U > C" if "List all section names" in prompt else ", ".join(map(str, range(1, 13)))
    )
    found = None
    if way.name == "core":
        found = D3(way, settings={"preset": "paper"}).retrieve(QUESTION, [parse_document(PAPER)])
    elif way.name in FRAMEWORKS:
        framework = way.framework
        retriever = framework.ext.D3Retriever(
            [framework.document(PAPER, "paper")], llm=way.framework_llm(), preset="paper"
        )
        found = framework.retrieve(retriever, QUESTION)
    else:
        with way.serving() as address:
            (tmp_path / "paper.md").write_text(PAPER)
            write_rows("questions.jsonl", [{"question": QUESTION, "spans": ["of vines"]}])
            if way.name == "ask":
                found = command(way, "ask", "paper.md", "--llm", address, "--preset", "paper", "--no-cache", QUESTION)[
                    "evidence"
                ]
            else:
                component = json.dumps({"component": "D3", "llm": address})
                result = command(
                    way, "compare", "questions.jsonl", "paper.md", "--preset", "paper", "--component", f"x={component}"
                )
                assert result["components"]["x"]["cost"]["calls"] == 2
    outline = "* Section: U Summary of 3 words. * Section: U > C Summary of 36 words. * Section: V Summary of 2 words."
    paragraphs = " ".join(f"[{n + 1}] paragraph number {n}" for n in range(12))
    assert way.prompts == [
        SECTION_PROMPT.format(outline=outline, question=QUESTION),
        PARAGRAPH_PROMPT.format(paragraphs=paragraphs, question=QUESTION),
    ]
    assert found is None or len(found) == 12  # all that the LLM chose: evidence is a set (section 5.1)
    assert FakeBART.made
    assert all(made == ((), {"min_tokens": 0}) for made in FakeBART.made)


def test_the_summarizer_of_d3_is_the_paper_s():
    pytest.importorskip("transformers")
    assert D3(lambda prompt: "", settings={"preset": "paper"}).settings.summarizer.name == SUMMARIZER
