"""Language models by their specifications."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from drillrank.errors import InvalidInput, UnknownModel, invalid_input
from drillrank.likelihood.base import LanguageModel
from drillrank.likelihood.mixture import SumOfExperts
from drillrank.likelihood.unigram import UNSAVED, UnigramModel

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Build = Callable[..., LanguageModel]

KINDS = {
    "unigram": "unigram:UnigramModel.load",
    "st": "encoder:sentence_transformer",
    "m2v": "encoder:model2vec",
    "hf": "huggingface:HuggingFaceModel",
    "ce": "cross_encoder:CrossEncoderModel",
    "http": "served:ServedModel",
    "https": "served:ServedModel",
}
"""Module and function that build a model, by kind. They receive the text after the colon, or the whole address."""

RERANK_SERVER = "rerank_server:RerankServerModel"
"""Module and class for addresses whose path ends with `/rerank`."""

FASTEMBED = "fastembed:"
FASTEMBED_CROSS_ENCODER = "cross_encoder:FastEmbedCrossEncoderModel"
"""Module and class for cross-encoders whose name begins with `FASTEMBED`."""

ENTRY_POINTS = "drillrank.models"
"""Group of entry points with which an installed package adds kinds. The name is the kind, the value a function from the
text after the colon, and options, to a `LanguageModel`."""

_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)"
_WEIGHTED = re.compile(rf"({_NUMBER})\*(.+)", re.DOTALL)
_KIND = re.compile(r"[a-z][a-z0-9_-]*")
_POSSIBLE_KIND = re.compile(rf"(?:^|\+)(?:{_NUMBER}\*)?([a-z][a-z0-9_-]*):")


def load_language_model(
    spec: str | LanguageModel = "unigram", *, experts: Sequence[Mapping[str, Any]] | None = None, **options: Any
) -> LanguageModel:
    """Return the language model of a specification. A language model is returned unchanged.

    Args:
        spec: `"unigram"`: the embedded Dirichlet-smoothed model (options `mu` and `language`, "english" by default).
            `"unigram:<directory>"`: the same, fitted and saved by `UnigramModel.save`.
            `"hf:<model id or directory>"`: a Hugging Face model (options of `HuggingFaceModel`), loaded at the first
            use.
            `"st:<model id or directory>"`: words and meaning by a sentence-transformers encoder (options of
            `drillrank.likelihood.encoder.sentence_transformer`), loaded at the first use.
            `"m2v:<model id or directory>"`: the same by a model2vec model, without torch (options of
            `drillrank.likelihood.encoder.model2vec`).
            `"ce:<model id or directory>"`: a cross-encoder of sentence-transformers (options of
            `drillrank.likelihood.cross_encoder.CrossEncoderModel`), loaded at the first use.
            `"ce:fastembed:<model name>"`: the same of fastembed, without torch (options of
            `FastEmbedCrossEncoderModel`).
            `"http://host:port/v1#<model>"`, or https: a served model (options of `ServedModel`), reached at the first
            use. `"http://host:port/rerank#<model>"`, or any address that ends with `/rerank`: a rerank server (options
            of `drillrank.likelihood.rerank_server.RerankServerModel`).
            `"<kind>:<...>"`: a kind that an installed package adds by an entry point of the group `drillrank.models`.
            `"unigram+hf:<...>"`, `"unigram+2*hf:<...>"`: their sum, with weights (see
            `drillrank.likelihood.mixture`). A `+` separates only before a known kind, or a number and `*` before it.
        experts: Options of each expert of a sum, in order.
        options: Options of that kind of model; in a sum, each applies to all experts that have it.

    Raises:
        UnknownModel: The specification does not name a known kind of model.
        InvalidInput: This kind of model does not have an option, cannot use its value, or belongs to an installed
            package that cannot be loaded.
        MissingExtra: A dependency of that kind of model is not installed.

    >>> load_language_model("unigram").spec
    'unigram'
    >>> load_language_model("unigram+2*unigram", experts=[{"mu": 100}, {"mu": 1000}]).weights
    (1.0, 2.0)
    >>> load_language_model("bert")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.UnknownModel: 'bert' is not a language model that drillrank knows. Use "unigram", ...
    """
    if isinstance(spec, LanguageModel):
        if options or experts is not None:
            raise InvalidInput(f"Options {sorted(options)} do not apply to a model that is already built.")
        return spec
    weights, names = zip(*split_sum(spec), strict=True) if isinstance(spec, str) else ((None,), (spec,))
    builders = list(map(_find_builder, names))
    parameters_by_expert = [inspect.signature(build).parameters for build in builders]
    is_list = isinstance(experts, Sequence) and all(isinstance(one, Mapping) for one in experts)
    if experts is not None and (not is_list or len(experts) != len(names)):
        raise InvalidInput(f"{spec!r:.200} has {len(names)} experts. Pass experts=[{{...}}, ...], options of each.")
    options_by_expert: list[dict[str, Any]] = [{} for _ in names] if experts is None else list(map(dict, experts))
    unknown = [name for name in options if not any(_takes(parameters, name) for parameters in parameters_by_expert)]
    unknown += [
        name
        for parameters, expert_options in zip(parameters_by_expert, options_by_expert, strict=True)
        for name in expert_options
        if not _takes(parameters, name)
    ]
    if unknown:
        listed = "; ".join(", ".join(parameters) for parameters in parameters_by_expert)
        raise InvalidInput(f"The options of {spec!r:.200} are: {listed}. Given: {', '.join(map(str, unknown)):.200}.")
    models = []
    for build, parameters, expert_options in zip(builders, parameters_by_expert, options_by_expert, strict=True):
        shared_options = {name: value for name, value in options.items() if _takes(parameters, name)}
        models.append(build(**(shared_options | expert_options)))
    return models[0] if weights == (None,) else SumOfExperts(models, [1.0 if one is None else one for one in weights])


def _takes(parameters: Mapping[str, inspect.Parameter], name: str) -> bool:
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def split_sum(spec: str) -> list[tuple[float | None, str]]:
    """Return the experts of a specification, each with its weight, or None if the weight is not written.

    >>> split_sum("unigram:/data/c++/nq+2*hf:a/b"), split_sum("hf:a+b")
    ([(None, 'unigram:/data/c++/nq'), (2.0, 'hf:a/b')], [(None, 'hf:a+b')])
    """
    kinds = {*KINDS}
    if not kinds.issuperset(_POSSIBLE_KIND.findall(spec)):  # installed packages are read only if they matter
        kinds.update(entry_point.name for entry_point in _entry_points() if _KIND.fullmatch(entry_point.name))
    expert = rf"(?:{_NUMBER}\*)?(?:unigram(?![^:+])|(?:{'|'.join(map(re.escape, sorted(kinds)))}):)"
    parts = [(_WEIGHTED.fullmatch(part), part) for part in re.split(rf"\+(?={expert})", spec)]
    return [(float(match[1]), match[2]) if match else (None, part) for match, part in parts]


def _find_builder(spec: object) -> Build:
    """Return the function that builds a model from its options.

    Raises:
        UnknownModel: The specification does not name a known kind of model.
        InvalidInput: It belongs to a model that was fitted and not saved, or to a package that cannot be loaded.
    """
    if spec == "unigram":
        return UnigramModel
    kind, colon, name = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if name == UNSAVED:
        raise InvalidInput(
            f'A model of kind "{kind}" was fitted and not saved, so it has no specification. Name it without fit, save '
            "a unigram model with model.save(directory) and name that, or pass the model itself."
        )
    if not colon or kind not in KINDS:
        return partial(_find_installed_builder(spec, kind if colon else ""), name)
    is_address, builder = kind.startswith("http"), KINDS[kind]
    if is_address and name.partition("#")[0].rstrip("/").endswith("/rerank"):
        builder = RERANK_SERVER
    elif kind == "ce" and name.startswith(FASTEMBED):
        builder, name = FASTEMBED_CROSS_ENCODER, name.removeprefix(FASTEMBED)
    module, _, function = builder.partition(":")
    build: Build = attrgetter(function)(import_module(f"drillrank.likelihood.{module}"))
    return partial(build, spec if is_address else name)


def _entry_points() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # takes longer to import than the rest of this module

    return entry_points(group=ENTRY_POINTS)


def _find_installed_builder(spec: object, kind: str) -> Build:
    """Return the function of an installed package that builds models of a kind.

    Raises:
        UnknownModel: No installed package adds this kind.
        InvalidInput: Several packages add it, or its function cannot be loaded.
    """
    candidates = [entry_point for entry_point in _entry_points() if kind and entry_point.name == kind]
    if not candidates:
        added = sorted({f'"{one.name}:<...>"' for one in _entry_points() if _KIND.fullmatch(one.name)} - {*KINDS})
        raise UnknownModel(
            f'{spec!r:.200} is not a language model that drillrank knows. Use "unigram", "unigram:<directory>", '
            '"st:<id or directory>", "m2v:<id or directory>", "hf:<id or directory>", "ce:<id or directory>", '
            '"http://host:port/v1#<model>", "http://host:port/rerank#<model>", '
            f'{"".join(f"{name}, " for name in added)}or a sum of them such as "unigram+2*hf:<id>".'
        )
    if len({entry_point.value for entry_point in candidates}) > 1:
        owners = ", ".join(sorted(map(_describe_entry_point, candidates)))
        raise InvalidInput(
            f"Several installed packages add models of kind {kind!r:.200}: {owners:.400}. Uninstall all but one."
        )
    origin = _describe_entry_point(candidates[0])
    with invalid_input(f"Models of kind {kind!r:.200} cannot be loaded from {origin:.400}", "Update or reinstall it."):
        build = candidates[0].load()
    if not callable(build):
        raise InvalidInput(f"The entry point {origin:.400} must be a function, got {build!r:.200}.")
    return _CheckedBuilder(build, kind, origin)


def _describe_entry_point(entry_point: EntryPoint) -> str:
    owner = "an unknown package" if entry_point.dist is None else entry_point.dist.name
    return f"{entry_point.value} of {owner}"


class _CheckedBuilder:
    """Function of an installed package, whose result must be a language model."""

    def __init__(self, build: Callable[..., Any], kind: str, origin: str) -> None:
        self._build, self._kind, self._origin = build, kind, origin
        self.__signature__ = inspect.signature(build)

    def __call__(self, name: str, **options: Any) -> LanguageModel:
        model = self._build(name, **options)
        if not isinstance(model, LanguageModel):
            raise InvalidInput(
                f"Models of kind {self._kind!r:.200} must be a LanguageModel, but {self._origin:.400} returned "
                f"{type(model).__name__}."
            )
        return model
