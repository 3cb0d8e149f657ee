"""Pydantic components of both hosts: fields that several have, and how rerankers rank.

Nothing is kept beside the fields but what is made of them, so that an assigned one counts from the next question on,
and subclasses, copies and pickles are the host's.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_serializer,
    field_validator,
)

from drillrank.errors import InvalidInput, warn
from drillrank.explanation import Explanation
from drillrank.explanation.explanations import explains
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.passages import Passage, Ranked, Ranking, check_top_n
from drillrank.rerank.base import LikelihoodFormula, RetrievalScores, ScoreScale, selected
from drillrank.rerank.brmgr import BRMGR
from drillrank.rerank.prior import Prior
from drillrank.rerank.relevance import MonoT5, Relevance
from drillrank.rerank.upr import UPR, UPR_PROMPT
from drillrank.settings import as_json, as_settings

EXPLAIN = (
    "Whether results say why they stand where they stand (see `drillrank.evaluation.explain`): LlamaIndex sends an "
    "`ExplanationEvent`, LangChain's documents have it as metadata `drillrank_explanation`. The model is asked for the "
    "question after nothing, path search for the paths that it returns; False costs nothing."
)

_OF_A_RUN = ("callback_manager", "metadata", "name", "tags", "top_n")  # fields that nothing is made of
_making = threading.RLock()


class ComponentFields(BaseModel):
    """In front of the host's class: `class UPRRerank(ComponentFields, HostsClass)`.

    Fields with `kw_only=False` may be given by position. A field `settings` is a dataclass, which may be given by name.
    A component equals itself alone.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", protected_namespaces=())

    _made: tuple[dict[str, Any], Any] | None = PrivateAttr(default=None)

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    if not TYPE_CHECKING:  # who reads types reads the fields

        def __init__(self, *given: Any, **fields: Any) -> None:
            cls = type(self)
            first = [name for name, field in cls.model_fields.items() if field.kw_only is False]
            if len(given) > len(first):
                raise InvalidInput(
                    f"{cls.__name__} takes {', '.join(first) or 'nothing'} by position, all else by name."
                )
            for name in ("class_name", *cls.model_computed_fields):  # which serialisation adds
                fields.pop(name, None)
            fields |= dict(zip(first, given, strict=False))
            try:
                super().__init__(**fields)
            except ValidationError as problem:
                raise InvalidInput(_what_is_wrong(cls, fields, problem)) from problem

    def model_post_init(self, context: Any, /) -> None:
        """Refuse now what would fail at the first question; a model loads its weights then."""
        super().model_post_init(context)
        top_n = getattr(self, "top_n", None)
        check_top_n(None if top_n == "auto" else top_n)
        self.core  # noqa: B018  # made now

    @property
    def core(self) -> Any:
        """What does the work: made of the fields, and again where these are others than at the last question."""
        fields = {name: value for name, value in self.__dict__.items() if name not in _OF_A_RUN}
        if self._made is None or self._made[0] != fields:
            with _making:
                if self._made is None or self._made[0] != fields:
                    self._made = fields, self._make()
        return self._made[1]

    def _make(self) -> Any:
        """Of the fields as they are."""

    @property
    def _settings(self) -> Any:
        return self.settings  # type: ignore[attr-defined]  # a field of those that have some

    @field_validator("settings", mode="before", check_fields=False)
    @classmethod
    def _settings_by_name(cls, given: Any) -> Any:
        return as_settings(type(cls.model_fields["settings"].default), given)

    @field_serializer("settings", check_fields=False)
    def _settings_as_json(self, settings: Any) -> Any:
        return as_json(settings)


def _what_is_wrong(cls: type[BaseModel], given: Mapping[str, Any], problem: ValidationError) -> str:
    """The first error, with the way out where a name is unknown."""
    error = problem.errors(include_url=False)[0]
    name = str(error["loc"][0]) if error["loc"] else "fields"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] == "missing" and len(error["loc"]) == 1:
        return f"{cls.__name__} needs {name}: {cls.model_fields[name].description}"
    if error["type"] != "extra_forbidden":
        return f"{name} of {cls.__name__}: {error['msg']}; not {given.get(name)!r:.200}."
    known = cls.model_fields
    if "settings" in known and hasattr(known["settings"].default, name):
        return f"{name} of {cls.__name__} is one of its settings: give settings={{{name!r:.200}: ...}}."
    near = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]!r:.200}?" if near else f". Its fields are: {', '.join(sorted(known))}."
    return f"{cls.__name__} has no field {name!r:.200}{hint}"


class ModelFields(ComponentFields):
    """A component that a language model scores for."""

    model: LanguageModel | str = Field(default="unigram", description="A language model, or its specification.")
    model_options: dict[str, Any] = Field(default_factory=dict, description="Options of the specification.")

    _loaded: tuple[Any, LanguageModel] | None = PrivateAttr(default=None)

    _load: ClassVar[Callable[..., LanguageModel]] = staticmethod(load_language_model)

    @property
    def language_model(self) -> LanguageModel:
        """The model, loaded once for each specification."""
        given = self.model, self.model_options
        if self._loaded is None or self._loaded[0] != given:
            self._loaded = given, self._load(self.model, **self.model_options)
        return self._loaded[1]

    @field_serializer("model", "model_options")
    def _by_specification(self, value: Any, info: Any) -> Any:
        if isinstance(self.model, str):
            return value
        return self.model.spec if info.field_name == "model" else self.model.options


class RerankerComponentFields(ModelFields):
    """A reranker: its `core` is the ranker."""

    model: LanguageModel | str = Field(
        default="unigram", kw_only=False, description="A language model, or its specification."
    )
    top_n: int | None = Field(default=3, description="How many to keep; None keeps all.")
    score: ScoreScale = Field(
        default="log_likelihood",
        description='Mean log-likelihood of the question, its exponential ("probability"), or the posterior over all '
        'candidates ("softmax").',
    )
    explain: bool = Field(default=False, description=EXPLAIN)

    def _rank(self, query: str, passages: list[Passage], scores: RetrievalScores) -> Ranking[Passage]:
        """Rank all passages, by mean log-likelihood; `scores` are those of the first stage, for a prior."""
        ranker = self.core
        return ranker.rank(query, passages, scores=None if ranker.prior is None else scores)  # type: ignore[no-any-return]

    def _selected(self, ranking: Ranking[Passage]) -> list[tuple[Ranked[Passage], Explanation | None]]:
        """What is kept, best first, and why; `details["position"]` is the place among the passages."""
        threshold = self.settings.score_threshold  # type: ignore[attr-defined]  # a field of each
        best = selected(ranking, scale=self.score, threshold=threshold, top_n=self.top_n)
        if ranking and not best:
            warn(
                f"{type(self).__name__}: no score reaches score_threshold={threshold}. Logarithms of likelihoods are "
                'at most 0: with score="probability" scores are between 0 and 1.'
            )
        why = ranking[: len(best)].explain() if explains(self.explain) else [None] * len(best)
        return list(zip(best, why, strict=True))


class UPRFields(RerankerComponentFields):
    """Of `UPRRerank`."""

    prior: Prior | None = Field(default="retrieval", description="What scores say before the texts are read.")
    template: str = Field(default=UPR_PROMPT, description="Prompt with `{text}` and, if wanted, `{title}` before it.")
    max_passage_tokens: int | None = Field(default=None, description="Tokens that a passage may keep.")
    prior_weight: float = Field(default=1.0, description="How much the prior counts.")
    read: int | Literal["all"] | None = Field(default=None, description="How many the whole of a sum reads.")
    preset: str | LikelihoodFormula | None = Field(default=None, description="Score as published code does.")

    def _make(self) -> UPR:
        return UPR(
            self.language_model,
            template=self.template,
            max_passage_tokens=self.max_passage_tokens,
            prior=self.prior,
            prior_weight=self.prior_weight,
            read="all" if self.score == "softmax" else self.read,
            preset=self.preset,
        )


class MonoT5Fields(RerankerComponentFields):
    """Of `MonoT5Rerank`."""

    model: LanguageModel | str = Field(kw_only=False, description="A neural model, or its specification.")
    max_passage_tokens: int | None = Field(default=None, description="Tokens that a passage may keep.")

    def _make(self) -> Relevance:
        return MonoT5(self.language_model, max_passage_tokens=self.max_passage_tokens)


class RelevanceFields(MonoT5Fields):
    """Of `RelevanceRerank`."""

    preset: str = Field(default="yes-no", description="How published models are asked.")
    template: str | None = Field(default=None, description="Prompt with `{query}`, `{text}` and `{instruction}`.")
    instruction: str | None = Field(default=None, description="What the model is told of the task.")

    def _make(self) -> Relevance:
        return Relevance(
            self.language_model,
            preset=self.preset,
            template=self.template,
            instruction=self.instruction,
            max_passage_tokens=self.max_passage_tokens,
            settings=self.settings,  # type: ignore[attr-defined]  # a field of each
        )


class BRMGRFields(ComponentFields):
    """Of `BRMGRRerank` and `BRMGRRetriever`."""

    prior: Prior | None = Field(default="retrieval", description="What scores say, as for UPRRerank.")
    guard: bool | float = Field(default=False, description="Drop what an LLM wrote and nothing retrieved supports.")
    generated_share: float = Field(default=1.0, description="Largest share of what an LLM wrote among the results.")


class BRMGRRerankFields(BRMGRFields, RerankerComponentFields):
    """Of `BRMGRRerank`; each passage's metadata say under `generated` whether an LLM wrote it."""

    def _make(self) -> BRMGR:
        return BRMGR(
            self.language_model,
            prior=self.prior,
            guard=self.guard,
            generated_share=self.generated_share,
            settings=self.settings,  # type: ignore[attr-defined]  # a field of each
        )

    def _rank(self, query: str, passages: list[Passage], scores: RetrievalScores) -> Ranking[Passage]:
        generated = [passage.metadata["generated"] for passage in passages]
        counted = scores if self.prior else None
        return self.core.rank_mixed(query, passages, generated, self.top_n, scores=counted)  # type: ignore[no-any-return]
