"""Pydantic fields that components of both frameworks share, and the ranking that the rerankers share.

A component keeps its fields and a core that is built from them. After an assignment to a field, the next question
rebuilds the core. Subclasses, copies and pickles work as the framework defines them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_serializer, field_validator
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from drillrank.coverage import Coverage
from drillrank.errors import InvalidInput, warn
from drillrank.explanation import Explanation
from drillrank.explanation.explanations import explains
from drillrank.frameworks.constructors import check_positional, describe_unknown_argument, is_default, render_value
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.passages import Passage, Ranked, Ranking, check_top_n
from drillrank.rerank.brmgr import BRMGR, BRMGRPreset
from drillrank.rerank.formula import LikelihoodFormula
from drillrank.rerank.prior import Prior, RetrievalScores
from drillrank.rerank.relevance import MonoT5, Relevance
from drillrank.rerank.scales import ScoreScale, selected
from drillrank.rerank.upr import UPR, UPR_PROMPT
from drillrank.settings import as_json, as_settings

EXPLAIN = (
    "Explain the rank of each result (see `drillrank.evaluation.explain`). LlamaIndex sends an `ExplanationEvent`; "
    "LangChain's documents get the metadata `drillrank_explanation`. Rerankers then score the question once more, "
    "without a text, and path search explains the paths that it returns."
)

_HIDDEN_FIELDS = ("callback_manager", "metadata", "name", "tags")  # the frameworks' own, also hidden from `repr`
_FIELDS_OF_A_CALL = (*_HIDDEN_FIELDS, "top_n")  # the core does not depend on these
_build_lock = threading.RLock()


_MANY_PASSAGES = 50
_SLOW_ENCODER = (
    f"An st: model encodes each passage that it has not seen, which takes seconds for {_MANY_PASSAGES} passages on a "
    "processor. Rerank fewer passages, fit the model with all passages beforehand, or use an m2v: model."
)


class ComponentFields(BaseModel):
    """First base class of a component: `class UPRRerank(ComponentFields, FrameworkClass)`.

    Fields with `kw_only=False` may be positional arguments. A field `settings` is a dataclass or a mapping of its
    fields. A component is equal only to itself.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", protected_namespaces=())

    _cached_core: tuple[dict[str, Any], Any] | None = PrivateAttr(default=None)

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    if not TYPE_CHECKING:  # type checkers derive the signature from the fields

        def __init__(self, *arguments: Any, **fields: Any) -> None:
            cls = type(self)
            positional = [name for name, field in cls.model_fields.items() if field.kw_only is False]
            check_positional(cls.__name__, positional, len(arguments))
            for name in ("class_name", *cls.model_computed_fields):  # serialisation adds these
                fields.pop(name, None)
            fields |= dict(zip(positional, arguments, strict=False))
            try:
                super().__init__(**fields)
            except ValidationError as error:
                raise InvalidInput(_describe_error(cls, fields, error)) from error

    def model_post_init(self, context: Any, /) -> None:
        """Build the core, so that wrong fields and missing weights fail before the first question."""
        super().model_post_init(context)
        top_n = getattr(self, "top_n", None)
        if isinstance(top_n, Coverage):
            top_n.check_margin()
        else:
            check_top_n(None if top_n == "auto" else top_n)
        self.core  # noqa: B018  # builds it

    def __repr_args__(self) -> Iterator[tuple[str, str]]:
        """Return the fields that differ from their defaults, rendered without document texts."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name, None)
            if name not in _HIDDEN_FIELDS and not is_default(value, field.default):
                yield name, _Rendered(render_value(value))

    @classmethod
    def model_json_schema(cls, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Return the JSON schema. A live object is an object with the name of its class as title."""
        return super().model_json_schema(*arguments, **{"schema_generator": _OpaqueJsonSchema} | options)

    @property
    def core(self) -> Any:
        """Object that does the work, rebuilt if a field has changed since the last question."""
        fields = {name: value for name, value in self.__dict__.items() if name not in _FIELDS_OF_A_CALL}
        if self._cached_core is None or self._cached_core[0] != fields:
            with _build_lock:
                if self._cached_core is None or self._cached_core[0] != fields:
                    self._cached_core = fields, self._build_core()
        return self._cached_core[1]

    def _build_core(self) -> Any:
        """Build the core from the current fields."""

    @property
    def _settings(self) -> Any:
        return self.settings  # type: ignore[attr-defined]  # a field of the components that have settings

    @field_validator("settings", mode="before", check_fields=False)
    @classmethod
    def _convert_settings(cls, settings: Any) -> Any:
        return as_settings(type(cls.model_fields["settings"].default), settings)

    @field_serializer("settings", check_fields=False)
    def _serialize_settings(self, settings: Any) -> Any:
        return as_json(settings)


def _describe_error(cls: type[BaseModel], values: Mapping[str, Any], validation_error: ValidationError) -> str:
    """Return the message for an unknown name, with the closest field, or else for the first error."""
    errors = validation_error.errors(include_url=False)
    error = next((item for item in errors if item["type"] == "extra_forbidden"), errors[0])
    name = str(error["loc"][0]) if error["loc"] else "fields"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] == "missing" and len(error["loc"]) == 1:
        return f"{cls.__name__} needs {name}: {cls.model_fields[name].description}"
    if error["type"] != "extra_forbidden":
        return f"{name} of {cls.__name__}: {error['msg']}; not {values.get(name)!r:.200}."
    settings = cls.model_fields["settings"].default if "settings" in cls.model_fields else None
    return describe_unknown_argument(cls.__name__, name, cls.model_fields, settings)


class _Rendered(str):
    """Text that is its own `repr`."""

    __repr__ = str.__str__


class _OpaqueJsonSchema(GenerateJsonSchema):
    """JSON schemas in which a live object, such as a store or a function, is an object with the name of its class."""

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:  # noqa: ARG002
        return {"type": "object", "title": getattr(schema.get("cls"), "__name__", "Function")}


class ModelFields(ComponentFields):
    """Fields of a component with a language model."""

    model: LanguageModel | str = Field(default="unigram", description="A language model, or its specification.")
    model_options: dict[str, Any] = Field(default_factory=dict, description="Options of the specification.")

    _loaded_model: tuple[Any, LanguageModel] | None = PrivateAttr(default=None)

    _load: ClassVar[Callable[..., LanguageModel]] = staticmethod(load_language_model)

    @property
    def language_model(self) -> LanguageModel:
        """Language model of the component, loaded once for each specification."""
        key = self.model, self.model_options
        if self._loaded_model is None or self._loaded_model[0] != key:
            self._loaded_model = key, self._load(self.model, **self.model_options)
        return self._loaded_model[1]

    @field_serializer("model", "model_options")
    def _serialize_model(self, value: Any, info: Any) -> Any:
        if isinstance(self.model, str):
            return value
        return self.model.spec if info.field_name == "model" else self.model.options


class RerankerComponentFields(ModelFields):
    """Fields of a reranker, whose `core` is the ranker."""

    model: LanguageModel | str = Field(
        default="unigram", kw_only=False, description="A language model, or its specification."
    )
    top_n: int | Coverage | None = Field(
        default=3, description="Maximum number of results, or a calibrated `Coverage`; None returns all."
    )
    score: ScoreScale = Field(
        default="log_likelihood",
        description='Mean log-likelihood of the question, its exponential ("probability"), or the share among all '
        'candidates ("softmax"), which a cut-off on scores needs.',
    )
    explain: bool = Field(default=False, description=EXPLAIN)

    _has_warned_of_encoding: bool = PrivateAttr(default=False)

    def _rank(self, query: str, passages: list[Passage], scores: RetrievalScores) -> Ranking[Passage]:
        """Rank all passages by their mean log-likelihood. `scores` are the retrieval scores, for the prior."""
        if len(passages) >= _MANY_PASSAGES and "st:" in self.language_model.spec and not self._has_warned_of_encoding:
            self._has_warned_of_encoding = True
            warn(_SLOW_ENCODER)
        ranker = self.core
        return ranker.rank(query, passages, scores=None if ranker.prior is None else scores)  # type: ignore[no-any-return]

    def _select_results(self, ranking: Ranking[Passage]) -> list[tuple[Ranked[Passage], Explanation | None]]:
        """Return the results, best first, with their explanations if the component explains.

        `details["position"]` of a result is the index of its passage among the ranked ones.
        """
        threshold, min_share = self._settings.score_threshold, self._settings.min_share
        results = selected(ranking, scale=self.score, threshold=threshold, min_share=min_share, top_n=self.top_n)
        if ranking and not results and threshold is not None:
            warn(
                f"{type(self).__name__}: no score reaches score_threshold={threshold}. Likelihoods of two questions "
                'cannot be compared. Use settings={"min_share": 0.1}, a share among the candidates of one question.'
            )
        explanations = ranking[: len(results)].explain() if explains(self.explain) else [None] * len(results)
        return list(zip(results, explanations, strict=True))


class UPRFields(RerankerComponentFields):
    """Fields of `UPRRerank`."""

    prior: Prior | None = Field(default="retrieval", description="Prior from the retrieval scores.")
    template: str = Field(default=UPR_PROMPT, description="Prompt with `{text}` and optionally `{title}` before it.")
    max_passage_tokens: int | None = Field(default=None, description="Maximum number of tokens of a passage.")
    prior_weight: float = Field(default=1.0, description="Weight of the prior.")
    read: int | Literal["all"] | None = Field(
        default=None, description="With a sum of models, number of passages that all of them score."
    )
    preset: str | LikelihoodFormula | None = Field(default=None, description="Formula of published code.")

    def _build_core(self) -> UPR:
        return UPR(
            self.language_model,
            template=self.template,
            max_passage_tokens=self.max_passage_tokens,
            prior=self.prior,
            prior_weight=self.prior_weight,
            read="all" if self.score == "softmax" or self._settings.min_share else self.read,  # shares need all
            preset=self.preset,
        )


class MonoT5Fields(RerankerComponentFields):
    """Fields of `MonoT5Rerank`."""

    model: LanguageModel | str = Field(kw_only=False, description="A neural model, or its specification.")
    max_passage_tokens: int | None = Field(default=None, description="Maximum number of tokens of a passage.")

    def _build_core(self) -> Relevance:
        return MonoT5(self.language_model, max_passage_tokens=self.max_passage_tokens)


class RelevanceFields(MonoT5Fields):
    """Fields of `RelevanceRerank`."""

    preset: str = Field(default="yes-no", description="Prompt and answer words of a published model.")
    template: str | None = Field(default=None, description="Prompt with `{query}`, `{text}` and `{instruction}`.")
    instruction: str | None = Field(default=None, description="Description of the task for the model.")

    def _build_core(self) -> Relevance:
        return Relevance(
            self.language_model,
            preset=self.preset,
            template=self.template,
            instruction=self.instruction,
            max_passage_tokens=self.max_passage_tokens,
            settings=self._settings,
        )


class BRMGRFields(ComponentFields):
    """Fields of `BRMGRRerank` and `BRMGRRetriever`."""

    prior: Prior | None = Field(default="retrieval", description="Prior from the retrieval scores.")
    guard: bool | float = Field(default=False, description="Drop generated results that no retrieved one supports.")
    preset: BRMGRPreset | None = Field(default=None, description='"paper" sets what the paper fixes.')


class BRMGRRerankFields(BRMGRFields, RerankerComponentFields):
    """Fields of `BRMGRRerank`. Metadata `generated` of a passage is True if an LLM wrote it."""

    top_n: int | None = Field(default=3, description="Maximum number of results; None returns all.")

    def _build_core(self) -> BRMGR:
        return BRMGR(
            self.language_model,
            prior=self.prior,
            guard=self.guard,
            preset=self.preset,
            settings=self._settings,
        )

    def _rank(self, query: str, passages: list[Passage], scores: RetrievalScores) -> Ranking[Passage]:
        generated = [passage.metadata["generated"] for passage in passages]
        prior_scores = scores if self.core.prior else None
        return self.core.rank_mixed(query, passages, generated, self.top_n, scores=prior_scores)  # type: ignore[no-any-return]
