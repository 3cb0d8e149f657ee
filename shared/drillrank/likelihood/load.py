"""From a specification to a language model."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import Any

from drillrank.errors import InvalidInput, UnknownModel
from drillrank.likelihood.base import LanguageModel
from drillrank.likelihood.mixture import SumOfExperts
from drillrank.likelihood.unigram import UNSAVED, UnigramModel

KINDS = {
    "unigram": "unigram:UnigramModel.load",
    "st": "encoder:sentence_transformer",
    "m2v": "encoder:model2vec",
    "hf": "huggingface:HuggingFaceModel",
    "ct2": "ct2:CTranslate2Model",
    "http": "served:ServedModel",
    "https": "served:ServedModel",
}
"""Module and name of the function that builds a model from the text after the colon, or from an address."""

_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)"
_EXPERT = rf"(?:{_NUMBER}\*)?(?:unigram(?![^:+])|(?:{'|'.join(KINDS)}):)"
_PLUS = re.compile(rf"\+(?={_EXPERT})")  # any other + belongs to a name
_WEIGHTED = re.compile(rf"({_NUMBER})\*(.+)", re.DOTALL)


def load_language_model(
    spec: str | LanguageModel = "unigram", *, experts: Sequence[Mapping[str, Any]] | None = None, **options: Any
) -> LanguageModel:
    """The language model that a specification names; a ready model is handed back as it is.

    Args:
        spec: `"unigram"`: the embedded Dirichlet-smoothed model (options `mu` and `language`, "english" by default).
            `"unigram:<directory>"`: the same, fitted, as `UnigramModel.save` saved it.
            `"hf:<model id or directory>"`: a Hugging Face model (options of `HuggingFaceModel`); its weights are loaded
            at the first use. `"ct2:<directory>"`: the same, converted by `drillrank.likelihood.ct2.convert`
            (options of `CTranslate2Model`).
            `"st:<model id or directory>"`: words and meaning by a sentence-transformers encoder (options of
            `drillrank.likelihood.encoder.sentence_transformer`), loaded at the first use.
            `"m2v:<model id or directory>"`: the same by a model2vec model, without torch (options of
            `drillrank.likelihood.encoder.model2vec`).
            `"http://host:port/v1#<model>"`, or https: a served model (options of `ServedModel`), reached at the first
            use.
            `"unigram+hf:<...>"`, `"unigram+2*hf:<...>"`: their sum, with weights (see
            `drillrank.likelihood.mixture`). A `+` separates only before a known kind, or a number and `*` before it.
        experts: Options of each expert of a sum, in order.
        options: Options of that kind of model; of a sum, each goes to all experts that have it.

    Raises:
        UnknownModel: the specification names no known kind of model.
        InvalidInput: an option that this kind of model does not have, or a value that it cannot use.
        MissingExtra: what that kind of model needs is not installed.

    >>> load_language_model("unigram").spec
    'unigram'
    >>> load_language_model("unigram+2*unigram", experts=[{"mu": 100}, {"mu": 1000}]).weights
    (1.0, 2.0)
    >>> load_language_model("bert")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.UnknownModel: 'bert' names no kind of language model; known: "unigram", ...
    """
    if isinstance(spec, LanguageModel):
        if options or experts is not None:
            raise InvalidInput(f"Options {sorted(options)} do not apply to a model that is already built.")
        return spec
    weights, names = zip(*split_sum(spec), strict=True) if isinstance(spec, str) else ((None,), (spec,))
    builders = list(map(_builder, names))
    known = [inspect.signature(build).parameters for build in builders]
    if experts is not None and (not isinstance(experts, Sequence) or len(experts) != len(names)):
        raise InvalidInput(f"{spec!r:.200} has {len(names)} experts: give experts=[{{...}}, ...], options of each.")
    options_of_each: list[dict[str, Any]] = [{} for _ in names] if experts is None else list(map(dict, experts))
    unknown = [name for name in options if not any(name in parameters for parameters in known)]
    unknown += [
        name
        for parameters, given in zip(known, options_of_each, strict=True)
        for name in given
        if name not in parameters
    ]
    if unknown:
        listed = "; ".join(", ".join(parameters) for parameters in known)
        raise InvalidInput(f"The options of {spec!r:.200} are: {listed}. Given: {', '.join(map(str, unknown)):.200}.")
    shared = [{name: value for name, value in options.items() if name in parameters} for parameters in known]
    models = [build(**(common | given)) for build, common, given in zip(builders, shared, options_of_each, strict=True)]
    return models[0] if weights == (None,) else SumOfExperts(models, [1.0 if one is None else one for one in weights])


def split_sum(spec: str) -> list[tuple[float | None, str]]:
    """The experts that a specification names, each with its weight if it is written out.

    >>> split_sum("unigram:/data/c++/nq+2*hf:a/b"), split_sum("hf:a+b")
    ([(None, 'unigram:/data/c++/nq'), (2.0, 'hf:a/b')], [(None, 'hf:a+b')])
    """
    parts = [(_WEIGHTED.fullmatch(part), part) for part in _PLUS.split(spec)]
    return [(float(found[1]), found[2]) if found else (None, part) for found, part in parts]


def _builder(spec: object) -> Callable[..., LanguageModel]:
    """What builds a model from its options.

    Raises:
        UnknownModel: the specification names no known kind of model.
        InvalidInput: it stands for a model that was fitted and not saved.
    """
    if spec == "unigram":
        return UnigramModel
    kind, colon, name = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if name == UNSAVED:
        raise InvalidInput(
            f'A model of kind "{kind}" was fitted and not saved, so nothing can name it: name it without fit, save a '
            "unigram model with model.save(directory) and name that, or pass the model itself."
        )
    if not colon or kind not in KINDS:
        raise UnknownModel(
            f'{spec!r:.200} names no kind of language model; known: "unigram", "unigram:<directory>", '
            '"st:<id or directory>", "m2v:<id or directory>", "hf:<id or directory>", "ct2:<directory>", '
            '"http://host:port/v1#<model>", and sums of them such as "unigram+2*hf:<id>".'
        )
    module, _, function = KINDS[kind].partition(":")
    build: Callable[..., LanguageModel] = attrgetter(function)(import_module(f"drillrank.likelihood.{module}"))
    return partial(build, spec if kind.startswith("http") else name)
