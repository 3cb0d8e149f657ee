"""D3: drill down a document's outline to the sections, and in the sections to the paragraphs, that hold the evidence.

Nair et al. (2023), "Drilling Down into the Discourse Structure with LLMs for Long Document Question Answering". With an
LLM, sections and paragraphs are its choice; without one, likelihood's (see `drillrank.drilldown.evidence`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from drillrank.corpus import Corpus
from drillrank.drilldown.condensing import SectionSummarizer
from drillrank.drilldown.drill import Drill, Step
from drillrank.drilldown.evidence import READ, Evidence, Vectors, load_evidence_model
from drillrank.drilldown.levels import MU, Levels
from drillrank.drilldown.outline import BEGINNING, Outline, OutlineSection, outline
from drillrank.drilldown.prepared import PreparedCorpus, PreparedDocuments
from drillrank.drilldown.selection import Selection
from drillrank.drilldown.settings import MAX_DOCUMENTS, D3Settings
from drillrank.drilldown.versions import Date, Versions, parse_date
from drillrank.errors import InvalidInput, warn
from drillrank.explanation import Explainable, Explanations
from drillrank.likelihood import LanguageModel
from drillrank.likelihood.chat import load_llm
from drillrank.likelihood.unigram import Collection, UnigramModel
from drillrank.llm import LLM, Requests, Usage, arun, run
from drillrank.passages import Passage, Ranked, check_query, check_top_n, read_query
from drillrank.prompts import LEAST, fill_template
from drillrank.rerank.relevance import MonoT5
from drillrank.settings import as_settings
from drillrank.structure import Document
from drillrank.structure.cutting import split_long_paragraph
from drillrank.text import TokenCount, token_counter
from drillrank.text_digests import text_digests
from drillrank.vectors import CollectionStatistics, Embed, Integers, embedded

Documents = PreparedDocuments | PreparedCorpus | Corpus | Sequence[Document | str] | Sequence[OutlineSection]


class EvidenceRanking(Explainable[Ranked[Passage]]):
    """Evidence paragraphs, best first; `explain` says why, with the tree of what was opened, read and left.

    For that it remembers the documents; `list(...)` of it does not.

    Attributes:
        usage: What the LLM calls cost.
        steps: What was offered and chosen on the way, and what went wrong.
        answerable: Probability that the documents speak of the question, where words alone decide: from how much of it
            the likeliest documents cover (`drillrank.drilldown.levels`). None with an LLM, which says so itself, and
            where a model or `embed` reads meaning.
        found: False if nothing here speaks of the question: there is no evidence, or `answerable` is below the
            setting of that name; what is nearest is listed all the same.
        problems: All that went wrong, each with its step and what was done instead. Where there are any, each entry's
            `details` hold them, too.
    """

    def __init__(
        self,
        ranking: Sequence[Ranked[Passage]],
        usage: Usage,
        steps: Sequence[Step] = (),
        why: Callable[[Sequence[Any]], Explanations] | None = None,
        answerable: float | None = None,
        least: float = 0.0,
    ) -> None:
        super().__init__(ranking, why)
        self.usage = usage
        self.answerable = answerable
        self.found = bool(ranking) and (answerable is None or answerable >= least)
        self.steps = tuple(steps)
        self.problems = tuple(f"{step.kind}: {problem}" for step in self.steps for problem in step.problems)
        if self.problems:
            self[:] = [replace(item, details={**item.details, "problems": self.problems}) for item in self]


class D3:
    """Finds evidence paragraphs in long structured documents by drilling down their sections.

    Args:
        llm: Chooses sections and paragraphs: a function from prompt to answer, sync or async, or an object with
            `complete` and, if it has one, `acomplete`; or the address of a served chat model,
            `"http://host:port/v1#model"`. None chooses by likelihood.
        model: A language model, or its specification: scores paragraphs, and chooses where there is no LLM or it fails.
            A lexical model that has not been fitted is fitted with the documents' sections and paragraphs, on a copy.
        embed: A function from texts to an array of shape (texts, dimensions); its cosines join the likelihood.
        settings: How it drills down.

    Scores are mean log-likelihoods per question token (with `embed`, plus cosines and a prior for length, spread over
    the tokens: see `drillrank.drilldown.evidence`), or MonoT5's where it has the last word; comparable within one
    question only. `passage.text` is readable text, without markup. `details["span"]` is the start and end
    offset of the paragraph's source in its document's text; records without offsets have none. `details` also has those
    of `UPR` or `MonoT5`, `guarded`, without an LLM `section_score` and `section_rank`, and `problems` if anything went
    wrong; `also_at`, without an LLM: the metadata of paragraphs that say the same, with the same numbers, and are left
    out; `matched`, without an LLM or `embed`, whether the paragraph or its headings hold a word of the question;
    `nothing_matched` without an LLM or `embed`, if no paragraph holds a word of the question: then the documents' order
    stays.

    Raises:
        InvalidInput: a setting is out of its range, or a strategy lacks the model it needs.

    >>> manual = '''# Manual
    ...
    ... Read me first.
    ...
    ... ## Battery
    ...
    ... The battery lasts nine hours.
    ...
    ... Charge it over night.
    ...
    ... ## Screen
    ...
    ... Clean the screen with a dry cloth.
    ... '''
    >>> [item.passage.text for item in D3().retrieve("How many hours does the battery last?", [manual])]
    ['The battery lasts nine hours.']
    >>> llm = lambda prompt: "Battery" if "section names" in prompt else "2"
    >>> found = D3(llm).retrieve("When should I charge it?", [manual])
    >>> [item.passage.text for item in found], found.usage.calls
    (['Charge it over night.'], 2)
    """

    def __init__(
        self,
        llm: LLM | str | None = None,
        model: str | LanguageModel = "unigram",
        *,
        embed: Embed | None = None,
        settings: D3Settings | Mapping[str, Any] = D3Settings(),
    ) -> None:
        if embed is not None and not callable(embed):
            raise InvalidInput(f"embed is a function from texts to vectors, not {embed!r:.100}.")
        self.llm = load_llm(llm)
        self.language_model = load_evidence_model(model)
        self.embed = embed
        settings = as_settings(D3Settings, settings)
        strategy = settings.paragraphs or ("likelihood" if llm is None else "base")
        if llm is None and (strategy not in ("monot5", "likelihood") or settings.summarizer == "llm"):
            raise InvalidInput(
                f"paragraphs={strategy!r:.200} with summarizer={settings.summarizer!r:.200} needs an LLM: give llm."
            )
        by_json = settings.section_prompt is settings.paragraph_prompt is None and getattr(
            self.llm, "takes_schemas", False
        )
        self.settings = replace(
            settings,
            paragraphs=strategy,
            monot5=(settings.monot5 or MonoT5(self.language_model)) if "monot5" in strategy else None,
            max_documents=settings.max_documents or (None if llm is None else MAX_DOCUMENTS),
            sections_by=settings.sections_by or ("json" if by_json else "names"),
        )
        self._count = token_counter(settings.tokens)
        self._summarizer = None if llm is None else SectionSummarizer(self.settings, self._count)

    def prepare(
        self,
        documents: Sequence[Document | str] | Sequence[OutlineSection],
        names: Sequence[str | None] = (),
        dates: Sequence[Date | None] = (),
    ) -> PreparedDocuments:
        """Parse and index documents once, for many questions; `embed` runs here.

        Args:
            documents: Parsed documents or strings, or the sections of documents that live elsewhere.
            names: What each document is called, in their order: a file's name, a title, a company and a year. Words of
                a question that a name holds speak for its document. Documents whose names differ in dates or numbers of
                versions only, and that share most of their paragraphs, are versions of one: of these only the newest
                is read (`D3Settings.as_of`), unless the question names a date; `details` hold `version`, its date, and
                `other_versions`, the names of the others.
            dates: Year, month and day of each document, for those whose name has none.

        Raises:
            InvalidInput: an item is none of these, or the embeddings are not one vector a text.
        """
        sections = [item for item in documents if isinstance(item, OutlineSection)]
        if not sections or len(sections) < len(documents):
            sections = outline(documents, self.settings.unit)  # type: ignore[arg-type]  # it says what is wrong with the others
        sections = [_bounded(section, self._longest(), self._count) for section in sections]
        tree = Outline(sections, whole_paths=self.settings.whole_paths)
        known: dict[int | str, str] = {number: name for number, name in enumerate(names) if name}
        mu, collection = self._words
        index = tree.index(known, self.language_model.language, collection)
        # No lambda: what is prepared can be pickled, as the hosts' retrievers are.
        versions = Versions(
            known, partial(_list_digests, sections), {at: date for at, date in enumerate(dates) if date}
        )
        embed = self.embed and partial(embedded, self.embed)
        evidence = self._evidence(tree, partial(index.levels, mu=mu), index.frequencies, embed)
        return PreparedDocuments(tree, evidence, known, versions)

    def prepare_corpus(
        self,
        corpus: Corpus,
        names: Mapping[str, str] | None = None,
        dates: Mapping[str, Date] | None = None,
        *,
        embedded_by: str | None = None,
    ) -> PreparedCorpus:
        """Documents of a corpus on disk, for many questions: of these only those are read that hold the best.

        Without an LLM, evidence, its order and its scores are those of the same documents in memory; `section_rank` is
        among the sections that were read. `text` is as a reader sees it.

        Args:
            corpus: Of the language of the model.
            names: As for `prepare`, by the documents' ids; only these documents are read. None takes the ids of all.
            dates: As for `prepare`, by the documents' ids.
            embedded_by: A name of `embed`, under which the corpus keeps its vectors; None remembers them in memory.
                With `embed`, words choose 50 pages or sections, and the paragraphs on these are embedded.
        """
        if (language := self.language_model.language) != corpus.language:
            raise InvalidInput(
                f"The model is in {language!r:.50}, the corpus in {corpus.language!r:.50}: make it anew."
            )
        if self.settings.unit != "paragraph":
            raise InvalidInput(
                f"unit={self.settings.unit!r:.50} requires documents in memory, got a corpus of paragraphs. "
                'Use unit="paragraph".'
            )
        names = {id_: id_ for id_ in corpus.ids()} if names is None else names
        return PreparedCorpus(corpus, names, dates or {}, self.settings.whole_paths, embedded_by)

    @property
    def _words(self) -> tuple[float, Collection | None]:
        """μ, and p(w|C) of a lexical model that was fitted."""
        lm = self.language_model
        return (lm.mu, lm.collection) if isinstance(lm, UnigramModel) else (MU, None)

    def _evidence(
        self,
        tree: Outline,
        levels: Callable[[str], Levels],
        frequencies: Callable[[], Mapping[str, int]],
        embed: Embed | None,
        among: Integers | None = None,
        places: Integers | None = None,
    ) -> Evidence:
        """Of the paragraphs in an outline; `embed` is for these alone, the rest as for `Evidence`."""
        # Under names in the outline, which leave out what is above all sections.
        names = ["" if entry.name == BEGINNING else entry.name for entry in tree.leaves(range(len(tree.sections)))]
        readable = [paragraph for section in tree.sections for paragraph in section.readable]
        section_of = np.repeat(np.arange(len(names)), [len(section.readable) for section in tree.sections])
        titles = [names[at] for at in section_of]
        lm = self.language_model
        if lm.wants_fit and not isinstance(lm, UnigramModel):
            try:
                lm = lm.fitted(CollectionStatistics(len(readable), {}, frequencies(), lm.language))
            except InvalidInput:  # statistics do not tell it all: κ of an encoder is found in texts
                lm = lm.fitted([replace(p, title=title).titled_text for p, title in zip(readable, titles, strict=True)])
        among, places = (np.arange(len(readable)) if some is None else some for some in (among, places))
        vectors = None
        if embed is not None and len(among):
            vectors = Vectors(self.embed, embed, [readable[at].text for at in among], section_of[among])
        return Evidence(readable, titles, lm, levels, vectors, among, places)

    def _longest(self) -> int:
        """Tokens of the longest paragraph: the other half of what the instruction leaves is for the question."""
        instruction = fill_template(self.settings.prompts[1], paragraphs="", question="")
        return max((self.settings.max_prompt_tokens - self._count(instruction)) // 2, LEAST)

    def retrieve(
        self,
        question: str,
        documents: Documents,
        top_n: int | None = None,
        *,
        llm: LLM | None = None,
        on_step: Callable[[Step], object] | None = None,
    ) -> EvidenceRanking:
        """Evidence paragraphs, best first; ties keep the documents' order.

        Whatever the LLM answers, and whether it answers at all, the result holds paragraphs of the documents, each
        once. What went wrong is in `problems` and in one `DrillrankWarning`.

        Args:
            question: The question.
            documents: What `prepare` or `prepare_corpus` returned, or what these take.
            top_n: Most paragraphs to return. None returns all that the LLM chose; where likelihood chooses, as many
                as make the expected F1 largest.
            llm: Is asked in place of the one given before; it carries what belongs to this question only.
            on_step: Called with each step as soon as it is done, on a worker thread in asynchronous use.

        Raises:
            InvalidInput: the question is blank or too long for a prompt, `top_n` is below 1, a document cannot be used,
                or the LLM is asynchronous.
            LLMFailure: a call failed or was unusable, and `on_failure` is `"raise"`; the call's own error is its cause.
        """
        usage = Usage(count=self._count)
        if self.llm is None:
            traversal = self._traversal(question, documents, top_n, on_step)
            return self._found(traversal, traversal.likely(top_n), usage)
        requests = self.requests(question, documents, top_n, on_step=on_step, usage=usage)
        return run(requests, llm or self.llm, usage=usage, workers=self.settings.workers)

    async def aretrieve(
        self,
        question: str,
        documents: Documents,
        top_n: int | None = None,
        *,
        llm: LLM | None = None,
        on_step: Callable[[Step], object] | None = None,
    ) -> EvidenceRanking:
        """As `retrieve`, without blocking the event loop; prompts of one step are asked at the same time."""
        if self.llm is None:
            return await self.language_model.run_in_worker(
                partial(self.retrieve, question, documents, top_n, on_step=on_step)
            )
        usage = Usage(count=self._count)
        requests = self.requests(question, documents, top_n, on_step=on_step, usage=usage)
        return await arun(requests, llm or self.llm, usage=usage, workers=self.settings.workers)

    def requests(
        self,
        question: str,
        documents: Documents,
        top_n: int | None = None,
        *,
        on_step: Callable[[Step], object] | None = None,
        usage: Usage | None = None,
    ) -> Requests[EvidenceRanking]:
        """What `retrieve` runs, as a generator of requests for other generators: it returns the ranking.

        Args:
            question: The question.
            documents: As for `retrieve`.
            top_n: As for `retrieve`.
            on_step: As for `retrieve`.
            usage: Where the caller counts, to be found in the result.
        """
        traversal = self._traversal(question, documents, top_n, on_step)
        ranking = traversal.likely(top_n) if self.llm is None else (yield from traversal.by_llm(top_n))
        return self._found(traversal, ranking, usage or Usage(count=self._count))

    def _traversal(
        self, question: str, documents: Documents, top_n: int | None, on_step: Callable[[Step], object] | None
    ) -> Drill:
        question = read_query(question) if self.llm is None else check_query(question)
        check_top_n(top_n)
        if isinstance(documents, Corpus):
            documents = self.prepare_corpus(documents)
        if isinstance(documents, PreparedCorpus):
            ready = self._of_corpus(question, documents, top_n)
        else:
            ready = documents if isinstance(documents, PreparedDocuments) else self.prepare(documents)
        return Drill(Selection(question, self.settings, self._count), ready, self._summarizer, on_step)

    def _of_corpus(self, question: str, corpus: PreparedCorpus, top_n: int | None) -> PreparedDocuments:
        """The documents that hold the best paragraphs."""
        settings = self.settings
        levels = corpus.levels(question, *self._words)
        as_of = None if settings.as_of is None else parse_date(settings.as_of)
        limit = settings.max_documents
        by_words = self.embed is None and isinstance(self.language_model, UnigramModel)
        best = among = embed = None
        if self.embed is not None:
            places, among = corpus.pages(question, levels, as_of)
        if limit is not None:
            places = corpus.likeliest(question, levels, as_of, limit)
        elif self.embed is None:
            least = 1 if by_words else READ
            places, wanted = corpus.holding(question, levels, as_of, least, top_n, settings.repeats)
            best = wanted if by_words else None

        sections, there = corpus.sections(places)
        tree = Outline(sections, whole_paths=settings.whole_paths)
        if among is not None and self.embed is not None:
            among = np.flatnonzero(np.isin(there, among))
            embed = partial(corpus.embedded, self.embed, there[among])
        evidence = self._evidence(tree, lambda _: levels, levels.frequencies, embed, among, there)
        return PreparedDocuments(tree, evidence, corpus.names, corpus.versions, best)

    def _found(self, traversal: Drill, ranking: Sequence[Ranked[Passage]], usage: Usage) -> EvidenceRanking:
        least = self.settings.answerable
        found = EvidenceRanking(ranking, usage, traversal.steps, traversal.explain, traversal.answerable, least)
        if problems := found.problems:
            warn(
                f"Drilling down for {traversal.question!r:.100}: {'; '.join(problems[:5])}"
                f"{f'; and {len(problems) - 5} more' if len(problems) > 5 else ''}."
            )
        return found


def _list_digests(sections: Sequence[OutlineSection], document: int | str) -> list[int]:
    """Return the digests of a document's text."""
    return text_digests(p.text for section in sections if section.path[0] == document for p in section.readable)


def _bounded(section: OutlineSection, limit: int, count: TokenCount) -> OutlineSection:
    """The section, those of its paragraphs that have more than `limit` tokens as a reader sees them cut into parts."""
    pairs = zip(section.paragraphs, section.readable, strict=True)
    cut = [part for paragraph, shown in pairs for part in split_long_paragraph(paragraph, shown, limit, count)]
    if len(cut) == len(section.paragraphs):
        return section
    return replace(section, paragraphs=tuple(source for source, _ in cut), readable=tuple(shown for _, shown in cut))
