"""Settings are plain: explicit arguments, a frozen dataclass for the rest, the same in the core and in both hosts."""

from __future__ import annotations

import dataclasses
import inspect
import json
import pickle
from enum import Enum
from functools import partial
from typing import get_type_hints

import pytest
from langchain_core.documents import Document
from llama_index.core.schema import TextNode
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import drillrank
import langchain_ext
import langchain_ext.settings
import llama_index_ext
import llama_index_ext.settings
from drillrank.components import COMPONENTS
from drillrank.drilldown.settings import D3Settings
from drillrank.errors import InvalidInput
from drillrank.frameworks.settings import BaseD3RetrieverSettings, LinkedRecordSettings, SplitterSettings
from drillrank.multihop.path_settings import PathSettings
from drillrank.multihop.sources import EmptySource
from drillrank.rerank.brmgr import BRMGRSettings
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS, PromptRankSettings
from drillrank.rerank.relevance import RelevanceSettings
from drillrank.settings import as_json, as_settings
from drillrank.views import MultiViewIndex, ViewSettings
from tests.conformance import langchain_reader, llama_index_reader
from tests.drillrank.conftest import HashModel

HOSTS = (llama_index_ext, langchain_ext)
ONE = {llama_index_ext: [TextNode(text="A text.")], langchain_ext: [Document("A text.")]}
CORE_SETTINGS = (D3Settings, PathSettings, ViewSettings, PromptRankSettings, BRMGRSettings, RelevanceSettings)
OF_HOSTS = [
    cls
    for module in (llama_index_ext.settings, langchain_ext.settings)
    for cls in vars(module).values()
    if dataclasses.is_dataclass(cls)
]
NONE_AT_ALL = (  # of them makes no sense
    "max_passage_tokens max_generated_tokens prior_weight sections max_documents summary_words written_words "
    "max_prompt_tokens max_calls workers max_tokens top_n n_generated max_steps scale temperature "
    "demonstrations_per_prompt max_demonstration_tokens max_document_tokens hops beam branch pool"
)
UNKNOWN = (
    "generated_score prior first paragraphs unit sections_by on_failure chunking retriever expand score transform "
    "ensemble link_prior metadata_mode merge prune preset formula"
)
NO_PLACE = "template generated_template section_prompt paragraph_prompt missing_prompt prompt answer_prompt"
BAD = {
    **dict.fromkeys(NONE_AT_ALL.split(), 0),
    **dict.fromkeys(UNKNOWN.split(), "unknown"),
    **dict.fromkeys(NO_PLACE.split(), "no place"),
    **dict.fromkeys(("instructions", "prompts"), ("no place",)),
    **dict.fromkeys(("guard_tokens", "read", "summarize_above", "negative", "pairs"), -1),
    **dict.fromkeys(("repeats", "follow", "join_pages", "explain", "chat", "keep_retrieval_score"), "perhaps"),
    **dict.fromkeys(("use_index_vectors", "max_expanded_tokens"), -1),
    **dict.fromkeys(
        ("monot5", "judge", "summarizer", "whole_paths", "tokens", "origin_key", "links_key", "title_key"), 5
    ),
    **dict.fromkeys(("namespace", "namespace_key"), " "),
    "language": "klingon",
    "headings": "yes",
    "guard": 1.5,
    "generated_share": -0.1,
    "min_share": 1.5,
    "as_of": "soon",
    "score_key": 5,
    "separator": None,
    "views": ["title"],
    "exclude": "References",
    "min_tokens": 0,
    "context": ["unknown"],
    "weights": {"raw": -1},
    "instruction": 3,
    "positive": "",
    "shift": float("inf"),
    "demonstrations": (5,),
    "metadata_fields": "title",
}
OF_THE_HOST = {  # fields whose type or default differs from the core's
    *("prompt", "answer_prompt", "section_prompt", "paragraph_prompt", "missing_prompt"),  # the host's templates
    *("llm", "embed", "model"),  # the host's; pydantic components hold a model's specification
    *("links", "settings"),  # by name; those of the host, too
    *("weights", "views", "context"),  # pydantic makes dictionaries and tuples
}
CHECKED_BY_METHOD = {  # fields of settings that the core's method checks when it is built, or that no value breaks
    *("instructions", "ensemble", "temperature", "demonstrations", "prior", "score_threshold")
}
OF_EVERY_COMPONENT = {  # of the hosts' own base classes
    *("callback_manager", "verbose", "name", "tags", "metadata"),
    *("include_metadata", "include_prev_next_rel", "id_func"),
}


def parameters(cls):
    """Default and type of every argument."""
    if issubclass(cls, BaseModel):
        hints = get_type_hints(cls)
        return {
            name: (inspect.Parameter.empty if field.default is PydanticUndefined else field.default, hints[name])
            for name, field in cls.model_fields.items()
        }
    found = inspect.signature(cls).parameters
    hints = get_type_hints(cls if dataclasses.is_dataclass(cls) else cls.__init__)
    return {name: (given.default, hints.get(name)) for name, given in found.items()}


def fields_of(cls):
    """The fields of a component that are ours."""
    return {name: given for name, given in parameters(cls).items() if name not in OF_EVERY_COMPONENT}


def settings_of(cls):
    """The dataclass of its argument `settings`."""
    given = parameters(cls).get("settings")
    return None if given is None else type(given[0])


def components():
    in_llama_index = [(one, getattr(llama_index_ext, name)) for one in COMPONENTS for name in one.llama_index]
    return in_llama_index + [(one, getattr(langchain_ext, name)) for one in COMPONENTS for name in one.langchain]


def needed(cls):
    """What has to be given to build one."""
    if cls is drillrank.SelfAsk:
        return {"llm": str.upper, "retrieve": str.split}
    if cls is drillrank.PathSearch:
        return {"prompt_rank": drillrank.PromptRank(HashModel()), "first_stage": EmptySource()}
    if cls is MultiViewIndex:
        return {"chunks": []}
    for host, reader in ((langchain_ext, langchain_reader), (llama_index_ext, llama_index_reader)):
        if cls in [getattr(host, name, None) for name in ("BRMGRRetriever", "SelfAskChain", "SelfAskQueryEngine")]:
            return {"llm": reader.Reader(), "source": host.D3Retriever(ONE[host])}
        if cls is host.PromptRankRetriever:
            return {"source": host.D3Retriever(ONE[host]), "model": HashModel()}
    [host] = [host for host in HOSTS if cls in vars(host).values()] or [None]
    listed = {"documents": ONE[host]} if "documents" in parameters(cls) else {}
    return {"model": HashModel(), **listed} if "model" in parameters(cls) else listed


each_component = pytest.mark.parametrize(("row", "cls"), components(), ids=lambda one: getattr(one, "__module__", ""))
each_settings = pytest.mark.parametrize(
    "cls", [*CORE_SETTINGS, *OF_HOSTS], ids=lambda cls: f"{cls.__module__}.{cls.__name__}"
)


@pytest.mark.parametrize("row", COMPONENTS, ids=lambda row: row.name)
def test_a_method_has_few_arguments_each_told_in_its_docstring(row):
    own = parameters(row.core_class)
    assert len(own) <= 9
    for name, (default, annotation) in own.items():
        assert f"        {name}: " in row.core_class.__doc__
        assert annotation is not None, name
        assert name != "settings" or dataclasses.is_dataclass(default)


@each_component
def test_a_component_has_at_most_twelve_fields_each_told_in_its_docstring(row, cls):
    own = fields_of(cls)
    assert len(own.keys() - {"settings"}) <= 12, sorted(own)
    for name in own:
        assert f"        {name}: " in cls.__doc__, name


@each_component
def test_names_types_and_defaults_are_the_core_s(row, cls):
    told = parameters(row.core_class)
    for other in ("PathSearch", "PromptRank") if "PromptRank" in cls.__name__ else ():
        told = {**parameters(getattr(drillrank, other)), **told}
    for name, (default, annotation) in fields_of(cls).items():
        if name in told and name not in OF_THE_HOST:
            assert (default, annotation) == told[name], name


@pytest.mark.parametrize("core", CORE_SETTINGS, ids=lambda cls: cls.__name__)
def test_settings_of_hosts_keep_names_types_and_defaults(core):
    hints = get_type_hints(core)
    of_both = [BaseD3RetrieverSettings, LinkedRecordSettings, SplitterSettings]
    heirs = [cls for cls in [*OF_HOSTS, *of_both] if issubclass(cls, core)]
    assert heirs
    for heir in heirs:
        theirs = {item.name: item for item in dataclasses.fields(heir)}
        for item in dataclasses.fields(core):
            assert theirs[item.name].default == item.default
            assert (get_type_hints(heir)[item.name] == hints[item.name]) or item.name in OF_THE_HOST


def test_what_both_frameworks_have_is_called_alike_but_for_what_is_known():
    known = {"show_progress", "title_key", "settings", "index", "store"}
    for row in COMPONENTS:
        for of_llama_index, of_langchain in zip(row.llama_index, row.langchain, strict=False):
            ours = fields_of(getattr(llama_index_ext, of_llama_index)).keys()
            others = fields_of(getattr(langchain_ext, of_langchain)).keys()
            assert ours ^ others <= known


@each_settings
def test_settings_survive_json_and_pickle_and_stay(cls):
    built = cls()
    assert as_settings(cls, json.loads(json.dumps(as_json(built)))) == built
    assert pickle.loads(pickle.dumps(built)) == built
    assert as_settings(cls, {}) == as_settings(cls, built) == built
    assert {item.name for item in dataclasses.fields(cls)} <= {
        line.split(":")[0].strip()
        for base in cls.__mro__
        for line in (base.__doc__ or "").splitlines()
        if line.startswith("        ")
    }
    for item in dataclasses.fields(cls):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(built, item.name, None)
    with pytest.raises(TypeError):
        cls(*[None])


@each_settings
def test_settings_that_cannot_be_used_are_refused(cls):
    for item in dataclasses.fields(cls):
        if item.name not in CHECKED_BY_METHOD:
            with pytest.raises(InvalidInput):
                cls(**{item.name: BAD[item.name]})


@pytest.mark.parametrize("given", [{"n" * 1000: 1}, {"hop": 2}, {3: 4}, [], "hops=2", None, 5])
def test_what_are_no_settings_is_refused_with_those_there_are(given):
    source = llama_index_ext.D3Retriever(ONE[llama_index_ext])
    wrong = repr(next(iter(given))) if isinstance(given, dict) else str(given)
    for build in (
        lambda settings: PathSettings.from_dict(settings),
        partial(drillrank.PathSearch, drillrank.PromptRank(), []),
        langchain_ext.PromptRankRerank,
        llama_index_ext.PromptRankRerank,
        partial(llama_index_ext.PromptRankRetriever, source=source),
    ):
        with pytest.raises(ValueError, match=r"Its fields are .*hops, beam|or a dictionary of its fields") as caught:
            build(settings=given)
        assert wrong[:50] in str(caught.value)
        assert len(str(caught.value)) < 1500


@pytest.mark.parametrize("cls", [row.core_class for row in COMPONENTS] + [cls for _, cls in components()])
def test_a_value_that_cannot_be_used_is_refused_and_quoted_in_part(cls):
    own = parameters(cls)
    for name in own.keys() & BAD.keys() - needed(cls).keys():
        with pytest.raises(ValueError, match=r"(?s).+"):
            cls(**needed(cls), **{name: BAD[name]})
    if settings_of(cls) is not None:
        inside = {item.name for item in dataclasses.fields(settings_of(cls))} & BAD.keys()
        for name in inside:
            with pytest.raises(ValueError, match=r"(?s).+"):
                cls(**needed(cls), settings={name: BAD[name]})
        for name in sorted(inside - own.keys()):  # a preset is an argument, too
            with pytest.raises((ValueError, TypeError), match=name):
                cls(**needed(cls), **{name: None})


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.__name__)
def test_settings_are_given_as_such_or_by_name_and_dumped_by_name(host):
    own = settings_of(host.PromptRankRerank)
    instruction = PROMPTRANK_INSTRUCTIONS[7]
    by_name = host.PromptRankRerank(settings={"hops": 3, "link_prior": {"jump": 0.2}, "instructions": [instruction]})
    as_such = host.PromptRankRerank(settings=own(hops=3, link_prior={"jump": 0.2}, instructions=(instruction,)))
    assert by_name.settings == as_such.settings
    dumped = by_name.model_dump()["settings"]
    assert isinstance(dumped, dict)
    assert not any(isinstance(value, Enum | tuple) for value in dumped.values())
    assert type(by_name).model_validate(json.loads(by_name.model_dump_json())).settings == by_name.settings
    by_name.settings = own(hops=2)
    assert by_name.core.path_search.settings.hops == 2
    assert by_name.model_copy(update={"settings": own(beam=4)}).core.path_search.settings.beam == 4
