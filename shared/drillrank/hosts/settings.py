"""Fields of both hosts' pydantic components, and their rarely touched settings: the core's, and what records need.

Nothing is kept beside the fields but a loaded model, so that an assigned one counts from the next question on, and
subclasses, copies and pickles are the host's.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_serializer,
    field_validator,
)

from drillrank.drilldown.settings import D3Settings
from drillrank.errors import InvalidInput, OnFailure, check_positive
from drillrank.generation.passages import GENREAD_PROMPTS
from drillrank.hosts.metadata import check_keys, prefixed
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.multihop.path_settings import PathSettings
from drillrank.passages import check_top_n
from drillrank.prompts import check_question_templates
from drillrank.rerank.brmgr import BRMGRSettings
from drillrank.rerank.demonstrations import Demonstration
from drillrank.rerank.prior import Prior
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS, Ensemble, PromptRank, PromptRankSettings
from drillrank.settings import as_json, as_settings, check_one_of
from drillrank.views import ViewSettings

if TYPE_CHECKING:
    from typing_extensions import Self

EXPLAIN = (
    "Whether results say why they stand where they stand (see `drillrank.evaluation.explain`): LlamaIndex sends an "
    "`ExplanationEvent`, LangChain's documents have it as metadata `drillrank_explanation`. The model is asked for the "
    "question after nothing, path search for the paths that it returns; False costs nothing."
)


_OF_A_RUN = ("callback_manager", "metadata", "name", "tags", "top_n")  # fields that nothing is made of
_making = threading.RLock()


class HostFields(BaseModel):
    """In front of the host's class: `class UPRRerank(HostFields, HostsClass)`.

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
        check_top_n(getattr(self, "top_n", None))
        self.method  # noqa: B018  # made now

    @property
    def method(self) -> Any:
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
        """`settings`, which may be assigned by name, too."""
        settings = self.__dict__["settings"]
        return self._settings_by_name(settings) if isinstance(settings, Mapping) else settings

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


class ModelFields(HostFields):
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


@dataclass(frozen=True, kw_only=True)
class RerankSettings:
    """Of every reranker.

    Attributes:
        score_threshold: Keep what has at least this score.
    """

    score_threshold: float | None = None

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Settings by name, as JSON has them.

        Raises:
            InvalidInput: a name is unknown, or a value cannot be used.
        """
        return as_settings(cls, given)


@dataclass(frozen=True, kw_only=True)
class GeneratedRecordSettings(BRMGRSettings):
    """How retrieved records and generated ones are merged, and how they are told apart.

    Attributes:
        origin_key: Metadata key that says `"generated"` of what an LLM wrote.

    Raises:
        InvalidInput: as `BRMGRSettings`, or the key is no string.
    """

    origin_key: str = prefixed("origin")

    def __post_init__(self) -> None:
        BRMGRSettings.__post_init__(self)
        check_keys(origin_key=self.origin_key)


@dataclass(frozen=True, kw_only=True)
class GenerationSettings:
    """How records are generated.

    Attributes:
        prompts: Templates with `{question}` for what is generated; `drillrank.generation.cluster_prompts` makes others.
        on_failure: Where a call fails, or brings nothing of use: `"continue"` with what there is without it, and a
            `DrillrankWarning`; or `"raise"`.
        workers: Most LLM calls at the same time, of one question.

    Raises:
        InvalidInput: a prompt has no place for the question, or a value is not one of those named, or below 1.
    """

    prompts: tuple[str, ...] = GENREAD_PROMPTS
    on_failure: OnFailure = "continue"
    workers: int = 4

    def __post_init__(self) -> None:
        check_question_templates(self.prompts)
        check_one_of(OnFailure, on_failure=self.on_failure)
        check_positive(workers=self.workers)


@dataclass(frozen=True, kw_only=True)
class LinkedRecordSettings(PathSettings, PromptRankSettings):
    """How paths of records are searched and scored, and where their links and titles stand.

    Attributes:
        instructions: As for `drillrank.PromptRank`.
        ensemble: As for `drillrank.PromptRank`.
        temperature: As for `drillrank.PromptRank`.
        demonstrations: As for `drillrank.PromptRank`.
        links_key: Metadata key with linked ids, a list or comma-separated.
        title_key: Metadata key of the title.

    Raises:
        InvalidInput: as `PathSettings` and `PromptRankSettings`, or a key is no string.
    """

    instructions: tuple[str, ...] = PROMPTRANK_INSTRUCTIONS[:5]
    ensemble: Ensemble = "max"
    temperature: float = 1.0
    demonstrations: tuple[Demonstration, ...] = ()
    links_key: str = "links"
    title_key: str = "title"

    def __post_init__(self) -> None:
        PathSettings.__post_init__(self)
        PromptRankSettings.__post_init__(self)
        shown: tuple[Any, ...] = self.demonstrations  # mappings from JSON
        read = tuple(Demonstration.from_dict(one) if isinstance(one, Mapping) else one for one in shown)
        object.__setattr__(self, "demonstrations", read)
        check_keys(links_key=self.links_key, title_key=self.title_key)

    def prompt_rank(self, model: LanguageModel, prior: Prior | None) -> PromptRank:
        """What scores paths."""
        return PromptRank(
            model,
            instructions=self.instructions,
            ensemble=self.ensemble,
            temperature=self.temperature,
            demonstrations=self.demonstrations,
            prior=prior,
            settings=self,
        )


@dataclass(frozen=True, kw_only=True)
class SplitterSettings(ViewSettings):
    """Of what cuts documents into views.

    Attributes:
        separator: Between the headings of `drillrank_section_path`.
        join_pages: Whether documents that are pages of one file are read as one.

    Raises:
        InvalidInput: as `ViewSettings`, or a setting is of another type.
    """

    separator: str = " > "
    join_pages: bool = True

    def __post_init__(self) -> None:
        ViewSettings.__post_init__(self)
        _check_separator(self.separator)
        check_switch(join_pages=self.join_pages)


@dataclass(frozen=True, kw_only=True)
class D3RetrieverSettings(D3Settings):
    """Of what drills down in a host's documents.

    Attributes:
        separator: Between the headings of `drillrank_section_path`, as the splitter was told.
        join_pages: Whether documents that are pages of one file are read as one.

    Raises:
        InvalidInput: as `D3Settings`, or a setting is of another type.
    """

    separator: str = " > "
    join_pages: bool = True

    def __post_init__(self) -> None:
        D3Settings.__post_init__(self)
        _check_separator(self.separator)
        check_switch(join_pages=self.join_pages)


def _check_separator(separator: object) -> None:
    if not isinstance(separator, str) or not separator:
        raise InvalidInput(f"separator is a string that is not empty; not {separator!r:.100}.")


def check_switch(**switches: object) -> None:
    """Refuse what is neither True nor False.

    Raises:
        InvalidInput: names the first one.
    """
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} is True or False; not {value!r:.100}.")
