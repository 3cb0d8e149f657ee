r"""D3: find evidence in long documents by drilling down into their sections.

Implements section 3.3 of Nair et al. (2023), "Drilling Down into the Discourse Structure with LLMs for Long Document
Question Answering":

1. Summarize every section.
2. Show the LLM all section names with their summaries; it chooses the relevant sections.
3. Show the LLM the paragraphs of these sections; it chooses the relevant paragraphs.
4. Rank the chosen paragraphs by score. (The paper returns an unordered set.)

**Without an LLM**, D3 summarizes nothing. It keeps all sections, or the likeliest ones (`D3Settings.sections`). Of
their paragraphs it keeps those with the highest scores: `top_n`, as many as fit into `max_tokens`, or else as many as
maximize the expected F1. The score is the likelihood of the question given the paragraph, plus a weighted cosine if
there is an encoder.

**With an LLM**, one selector chooses sections and others choose paragraphs (`llm_selectors.py`). Each asks `Budget`
which prompts it may send. A prompt never exceeds its token limit: candidates are divided among several prompts, an
outline is read level by level, and a text that is too long for any prompt loses its middle. The LLM may choose
nothing.

**When few LLM calls are left** (`D3Settings.max_calls`), a selector shows the LLM the likeliest candidates only. When
no call is left, or an answer is unusable, the selector chooses by score instead. A call that fails raises an
`LLMFailure`. `D3Settings.on_failure` can raise for unusable answers, too, or choose by score after failed calls.
`EvidenceResult.trace` lists each of these cases as a problem, and one `DrillrankWarning` per kind of problem reports
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from drillrank.corpus import Corpus
from drillrank.drilldown.budget import Budget
from drillrank.drilldown.condensing import SectionSummarizer
from drillrank.drilldown.confidence import EncoderScale, judge, match_question, measure_encoder
from drillrank.drilldown.evidence_paths import EvidencePath
from drillrank.drilldown.explaining import explain_evidence
from drillrank.drilldown.gap import find_gap
from drillrank.drilldown.llm_selectors import LLMSelector
from drillrank.drilldown.outline import OutlineSection, Paragraph
from drillrank.drilldown.paragraph_scores import load_evidence_model
from drillrank.drilldown.prepared import PreparedCorpus, PreparedDocuments
from drillrank.drilldown.preparing import DocumentPreparer
from drillrank.drilldown.problems import ProblemKind, warn_about_problems
from drillrank.drilldown.ranking import rank_paragraphs, score_evidence
from drillrank.drilldown.ranking_selectors import rank_sections, select_guard_paragraphs
from drillrank.drilldown.reading import count_candidates, prepare_for_reader
from drillrank.drilldown.result import EvidenceResult
from drillrank.drilldown.selection import Likelihoods, QuestionContext
from drillrank.drilldown.settings import MAX_DOCUMENTS, D3Settings
from drillrank.drilldown.strategies import make_paragraph_selectors, make_prompts, make_section_selector
from drillrank.drilldown.trace import StepReport, Trace
from drillrank.drilldown.versions import Date, parse_date
from drillrank.errors import InvalidInput, check_limits
from drillrank.likelihood import LanguageModel
from drillrank.likelihood.chat import load_llm
from drillrank.likelihood.encoders import as_encoder
from drillrank.likelihood.unigram import UnigramModel
from drillrank.llm import LLM, Requests, Usage, arun, run
from drillrank.passages import Passage, Ranked, check_query, check_top_n, read_query
from drillrank.rerank.relevance import MonoT5
from drillrank.settings import as_settings
from drillrank.structure import Document
from drillrank.text import token_counter
from drillrank.vectors import Embed

Documents = PreparedDocuments | PreparedCorpus | Corpus | Sequence[Document | str] | Sequence[OutlineSection]
OnStep = Callable[[StepReport], object]

_WARNINGS = {
    ProblemKind.FAILED_CALL: "D3: calls of the LLM failed. Likelihood chose sections and paragraphs in place of the "
    "LLM, and sentences of the text replaced missing summaries. Check that the LLM can be reached.",
    ProblemKind.UNUSABLE_ANSWER: "D3: answers of the LLM cannot be used, because they do not follow the prompt. "
    "Likelihood chose sections and paragraphs in place of the LLM, and sentences of the text replaced summaries "
    "without a word. Use an LLM that follows the prompt.",
    ProblemKind.PARTLY_USED_ANSWER: "D3: answers of the LLM are blank or name what the prompt did not offer. A blank "
    'answer was read as "nothing is relevant", and unknown names were ignored. Check the answers of the LLM.',
    ProblemKind.CALL_LIMIT: "D3: max_calls was reached, so the LLM did not read all candidates. It read the likeliest "
    "ones only, or likelihood chose if no call was left. Raise max_calls or max_prompt_tokens.",
    ProblemKind.TRUNCATED_TEXT: "D3: texts are too long for a prompt, so the LLM read them without their middle. Raise "
    "max_prompt_tokens.",
}
_PROBLEMS = (
    "`problems` of the result lists each case. In LlamaIndex and LangChain, it is the metadata `drillrank_problems`."
)


class D3:
    """Retriever of evidence from long structured documents.

    Args:
        llm: LLM that chooses sections and paragraphs: a function from prompt to answer (sync or async), an object with
            `complete` and, optionally, `acomplete`, or the address of a served chat model,
            `"http://host:port/v1#model"`. Without an LLM, the score chooses.
        model: Language model that scores paragraphs, or its specification. A lexical model without a fit is fitted to
            the documents, on a copy.
        embed: Encoder: a specification such as `"onnx:DIR"`, or a function from texts to an array of shape (texts,
            dimensions). Its cosines are added to the log-likelihood.
        settings: Settings, as an object or by name.

    Scores are mean log-likelihoods per question token (with `embed`, plus weighted cosines, divided by the number of
    tokens). With the strategies `monot5` and `base+monot5`, they are MonoT5's. They can be compared within one question
    only.

    `passage.text` is readable text without markup. Each result's `details` have:

    - `span`: Start and end offset of the source in its document's text; absent for records without offsets.
    - `best_paragraph`: For a passage, the `text` and `span` of its paragraph that fits the question best.
    - `guarded`: True if the paragraph is outside the chosen sections (`D3Settings.guard_tokens`).
    - `section_score`, `section_rank`: Score and rank of its section, without an LLM.
    - `also_at`: Metadata of near-duplicates that were left out, without an LLM: nine of ten words are equal, and all
      numbers.
    - `path`, `link`: If a passage of another document leads to this passage: the ids of both, that passage first, and
      the `kind` (`"link"`, `"title"` or `"name"`) and `text` of the link, with the `document` of that passage.
      `path_gain` is the part of the score that the path adds (`D3Settings.hops`).
    - `matched`: True if the paragraph or its headings contain a question word.
    - `nothing_matched`: True if no paragraph contains a question word. The results are then in document order. Always
      False with an LLM or an encoder.
    - `problems`: Everything that went wrong; absent if nothing did.
    - `log_odds`: Log-odds of relevance, if a judge read it (`D3Settings.judge`).
    - The details of `UPR` or `MonoT5`.

    Raises:
        InvalidInput: A setting is out of range, or a strategy lacks the model that it needs.

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
    >>> [passage] = D3().retrieve("How many hours does the battery last?", [manual])
    >>> passage.details["best_paragraph"]["text"]
    'The battery lasts nine hours.'
    >>> llm = lambda prompt: "Battery" if "section names" in prompt else "2"
    >>> result = D3(llm, settings={"unit": "paragraph"}).retrieve("When should I charge it?", [manual])
    >>> [item.passage.text for item in result], result.usage.calls
    (['Charge it over night.'], 2)
    """

    def __init__(
        self,
        llm: LLM | str | None = None,
        model: str | LanguageModel = "unigram",
        *,
        embed: Embed | str | None = None,
        settings: D3Settings | Mapping[str, Any] = D3Settings(),
    ) -> None:
        self.llm = load_llm(llm)
        self.language_model = load_evidence_model(model)
        self.embed = as_encoder(embed)
        self.settings = self._complete(as_settings(D3Settings, settings).complete())
        self._count_tokens = token_counter(self.settings.tokens)
        self.preparer = DocumentPreparer(self.settings, self.language_model, self.embed, self._count_tokens)
        summarizer = None if self.llm is None else SectionSummarizer(self.settings, self._count_tokens)
        self.section_selector = make_section_selector(self.settings, summarizer)
        self.paragraph_selectors = make_paragraph_selectors(self.settings, summarizer)

    def retrieve(
        self,
        question: str,
        documents: Documents,
        top_n: int | None = None,
        *,
        max_tokens: int | None = None,
        llm: LLM | str | None = None,
        on_step: OnStep | None = None,
    ) -> EvidenceResult:
        """Find the paragraphs or passages that answer a question.

        The result contains texts of the documents only, each once, whatever the LLM answers.

        Args:
            question: The question.
            documents: Result of `prepare` or `prepare_corpus`, or an argument of these.
            top_n: Maximum number of results. None returns all that the LLM chose; without an LLM, as many as maximize
                the expected F1, or as fit into `max_tokens`.
            max_tokens: Token limit of all texts together, for the budget of a reader. The best texts that fit are
                kept, and texts that are adjacent in a document follow each other in document order.
            llm: LLM for this question, instead of that of the constructor.
            on_step: Callback, called with the report of each step; on a worker thread in asynchronous use.

        Returns:
            Evidence, best first; with `max_tokens`, adjacent texts in document order. Equal scores keep document order.

        Raises:
            InvalidInput: The question is blank or too long for a prompt, `top_n` is below 1, a document cannot be used,
                or the LLM is asynchronous.
            LLMFailure: A call failed or its answer is unusable, and `on_failure` says to raise. The LLM's own error is
                the cause.
        """
        llm, usage = self._choose_llm(llm), Usage(count=self._count_tokens)
        requests = self.drill_down(question, documents, top_n, max_tokens=max_tokens, on_step=on_step, usage=usage)
        return run(requests, llm, usage=usage, workers=self.settings.workers)

    async def aretrieve(
        self,
        question: str,
        documents: Documents,
        top_n: int | None = None,
        *,
        max_tokens: int | None = None,
        llm: LLM | str | None = None,
        on_step: OnStep | None = None,
    ) -> EvidenceResult:
        """Find evidence without blocking the event loop; see `retrieve`. Prompts of one step are sent concurrently."""
        llm = self._choose_llm(llm)
        if llm is None:
            slowest = self.settings.judge or self.settings.monot5 or self.language_model
            return await slowest.run_in_worker(
                partial(self.retrieve, question, documents, top_n, max_tokens=max_tokens, on_step=on_step)
            )
        usage = Usage(count=self._count_tokens)
        requests = self.drill_down(question, documents, top_n, max_tokens=max_tokens, on_step=on_step, usage=usage)
        return await arun(requests, llm, usage=usage, workers=self.settings.workers)

    def list_first_stage(self, question: str, documents: Documents, n: int) -> list[Passage]:
        """Return the best passages by term statistics and embeddings, as a neural model reads them.

        They are under their headings. `UPR(model).precompute` computes them before a question is asked.

        Args:
            question: The question.
            documents: As for `retrieve`.
            n: Number of passages, at most.
        """
        question = self._check_question(question, n, None)
        return self._prepare_for(question, documents, n).scorer.list_best(question, n)

    def drill_down(
        self,
        question: str,
        documents: Documents,
        top_n: int | None = None,
        *,
        max_tokens: int | None = None,
        on_step: OnStep | None = None,
        usage: Usage | None = None,
    ) -> Requests[EvidenceResult]:
        """Run the algorithm as a generator of LLM requests, so that sync and async code share it.

        Args:
            question: As for `retrieve`.
            documents: As for `retrieve`.
            top_n: As for `retrieve`.
            max_tokens: As for `retrieve`.
            on_step: As for `retrieve`.
            usage: Counter of the caller who answers the requests; it becomes part of the result.
        """
        question = self._check_question(question, top_n, max_tokens)
        n_wanted = top_n if top_n or max_tokens is None else count_candidates(max_tokens)
        prepared = self._prepare_for(question, documents, n_wanted)
        reports: list[StepReport] = []

        # Leave out outdated versions, follow links to other documents, and keep the likeliest documents.
        outdated = prepared.find_outdated(question, self._as_of)
        paths = prepared.find_paths(question, outdated)
        context = self._make_context(question, prepared, n_wanted, paths, reports, on_step)
        candidate_sections = prepared.select_sections(context, outdated, self.settings.max_documents)

        # 1. and 2. The LLM chooses sections by names and summaries. Without an LLM, all are kept, or the likeliest.
        sections = yield from self.section_selector.select(context, candidate_sections)
        guard = select_guard_paragraphs(context, candidate_sections, sections.kept, self.settings.guard_tokens)

        # 3. The LLM chooses paragraphs of these sections, if there are at least two. Without an LLM, the paragraphs
        # with the highest scores are kept.
        paragraphs = {paragraph for section in sections.kept for paragraph in section.paragraphs}.union(guard)
        kept: Sequence[Paragraph] = sorted(paragraphs, key=lambda paragraph: paragraph.index)
        selections = []
        for selector in self.paragraph_selectors:
            if len(paragraphs) > 1 or not isinstance(selector, LLMSelector):
                selections.append((yield from selector.select(context, kept)))
                kept = selections[-1].kept

        # 4. Rank the kept paragraphs by score, and fit them into the reader's budget.
        scores = score_evidence(context, kept, selections)
        section_scores = rank_sections(context, candidate_sections) if self.llm is None else {}
        ranking = rank_paragraphs(prepared, scores, guard, section_scores, top_n)
        ranking, evidence = prepare_for_reader(context, ranking, kept, max_tokens)
        decisions = (candidate_sections, sections, section_scores, guard, selections, scores, evidence)
        trace = Trace(question, reports, outdated, *decisions)
        return self._build_result(trace, prepared, ranking, usage)

    def prepare(
        self,
        documents: Sequence[Document | str] | Sequence[OutlineSection],
        names: Sequence[str | None] = (),
        dates: Sequence[Date | None] = (),
    ) -> PreparedDocuments:
        """Parse and index documents once, for many questions. `embed` runs here.

        Args:
            documents: Parsed documents or strings, or sections of documents that are stored elsewhere.
            names: Name of each document: a file name, a title, or a company and a year. Question words in a name are
                evidence for its document. Documents are versions of one if their names differ only in dates or version
                numbers and they share most of their paragraphs. Only the newest version is read
                (`D3Settings.as_of`), unless the question names a date. `details` have `version`, its date, and
                `other_versions`, the names of the others.
            dates: Year, month and day of each document, for names without a date.

        Raises:
            InvalidInput: An item has another type, or `embed` does not return one vector per text.
        """
        return self.preparer.prepare(documents, names, dates)

    def prepare_corpus(
        self,
        corpus: Corpus,
        names: Mapping[str, str] | None = None,
        dates: Mapping[str, Date] | None = None,
        *,
        embedded_by: str | None = None,
    ) -> PreparedCorpus:
        """Prepare documents of a corpus on disk for many questions. Only those with the best paragraphs are read.

        Without an LLM, evidence, order and scores equal those of the same documents in memory. `section_rank` is the
        rank among the sections that were read. `text` is readable text.

        Args:
            corpus: Corpus in the language of the model.
            names: Names as for `prepare`, by document id. Only these documents are read. None takes the ids of all.
            dates: Dates as for `prepare`, by document id.
            embedded_by: Name of `embed`, under which the corpus stores its vectors. None is the fingerprint of an
                encoder that was given by its specification; vectors of other functions stay in memory.
        """
        return self.preparer.prepare_corpus(corpus, names, dates, embedded_by)

    def _complete(self, settings: D3Settings) -> D3Settings:
        """Return the settings with defaults that depend on the LLM and the model.

        Raises:
            InvalidInput: The strategy needs an LLM.
        """
        strategy = settings.paragraphs or ("likelihood" if self.llm is None else "base")
        if self.llm is None and (strategy not in ("monot5", "likelihood") or settings.summarizer == "llm"):
            raise InvalidInput(
                f"paragraphs={strategy!r:.200} with summarizer={settings.summarizer!r:.200} needs an LLM, got none. "
                "Pass llm."
            )
        has_own_prompts = settings.section_prompt is not None or settings.paragraph_prompt is not None
        if settings.hops == 2 and strategy != "likelihood":
            raise InvalidInput(
                f"hops=2 requires evidence that likelihood ranks, got paragraphs={strategy!r:.200}. Remove hops, "
                "or leave out the LLM."
            )
        if settings.judge is not None and (strategy != "likelihood" or type(self.language_model) is not UnigramModel):
            raise InvalidInput(
                f"judge adds to the scores of the built-in model, got model={self.language_model.spec!r:.200} and "
                f"paragraphs={strategy!r:.200}. Remove judge, or leave out the model and the LLM."
            )
        follows_schemas = getattr(self.llm, "takes_schemas", False) and not has_own_prompts
        return replace(
            settings,
            paragraphs=strategy,
            monot5=(settings.monot5 or MonoT5(self.language_model)) if "monot5" in strategy else None,
            max_documents=settings.max_documents or (None if self.llm is None else MAX_DOCUMENTS),
            sections_by=settings.sections_by or ("json" if follows_schemas else "names"),
        )

    def _choose_llm(self, llm: LLM | str | None) -> LLM | None:
        """Return the LLM for one question.

        Raises:
            InvalidInput: There is an LLM for the question, but none in the constructor.
        """
        if llm is None:
            return self.llm
        if self.llm is None:
            raise InvalidInput("llm replaces the LLM of the constructor, got none there. Pass llm to D3 too.")
        return load_llm(llm)

    def _check_question(self, question: str, top_n: int | None, max_tokens: int | None) -> str:
        """Return the question; without an LLM, as much of it as is read."""
        check_top_n(top_n)
        check_limits(max_tokens=max_tokens)
        return read_query(question) if self.llm is None else check_query(question)

    def _prepare_for(self, question: str, documents: Documents, top_n: int | None) -> PreparedDocuments:
        """Return documents that are ready for a question."""
        if isinstance(documents, Corpus):
            documents = self.prepare_corpus(documents)
        if isinstance(documents, PreparedCorpus):
            return self.preparer.read_candidates(question, documents, top_n, self._as_of)
        return documents if isinstance(documents, PreparedDocuments) else self.prepare(documents)

    @property
    def _as_of(self) -> Date | None:
        as_of = self.settings.as_of
        return None if as_of is None else parse_date(as_of)

    def _make_context(
        self,
        question: str,
        prepared: PreparedDocuments,
        top_n: int | None,
        paths: Sequence[EvidencePath],
        reports: list[StepReport],
        on_step: OnStep | None,
    ) -> QuestionContext:
        """Return the context of a question, whose reports are collected in a list.

        Raises:
            InvalidInput: The question leaves no room for candidates in a prompt.
        """
        settings = self.settings

        def report(step: StepReport) -> None:
            reports.append(step)
            if on_step is not None:
                on_step(step)

        budget = Budget(question, settings.max_prompt_tokens, settings.max_calls, self._count_tokens)
        if self.llm is not None:
            budget.check_room(*make_prompts(settings))
        likelihoods = Likelihoods(prepared.scorer, question)
        return QuestionContext(prepared.outline, likelihoods, budget, report, top_n, prepared.n_best, paths)

    def _find_confidence(
        self, trace: Trace, prepared: PreparedDocuments, ranking: Sequence[Ranked[Passage]]
    ) -> tuple[bool | None, float | None]:
        """Return `found` and `confidence` of the result."""
        if trace.is_judged_by_llm:  # it chooses nothing if nothing is relevant
            return bool(ranking), None
        scorer = prepared.scorer
        too_new = prepared.versions.find_too_new(self._as_of)
        not_read = [index for index, document in enumerate(prepared.documents) if document in too_new]
        matches = match_question(scorer.question_scores(trace.question), scorer.language, self._encoder_scale, not_read)
        finding = judge(matches)
        return (finding.found if ranking else False), finding.confidence

    @cached_property
    def _encoder_scale(self) -> EncoderScale | None:
        """Scale of the encoder's cosines, measured once with reference texts."""
        return None if self.embed is None else measure_encoder(self.embed)

    def _build_result(
        self, trace: Trace, prepared: PreparedDocuments, ranking: list[Ranked[Passage]], usage: Usage | None
    ) -> EvidenceResult:
        """Return the result, and warn about problems."""
        problems = trace.problems
        if problems:
            warn_about_problems((problem for step in trace.reports for problem in step.problems), _WARNINGS, _PROBLEMS)
            ranking = [replace(entry, details={**entry.details, "problems": problems}) for entry in ranking]
        judge = self.settings.monot5 if self.settings.paragraphs in ("monot5", "base+monot5") else None
        language = self.language_model.language
        return EvidenceResult(
            tuple(ranking),
            usage or Usage(count=self._count_tokens),
            trace,
            *self._find_confidence(trace, prepared, ranking),
            gap=find_gap(trace.question, ranking[0].passage.titled_text, language) if ranking else "",
            why=partial(explain_evidence, trace, prepared, judge=judge),
        )
