"""Settings are declared once; the core's classes and both hosts' components show the same."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import warnings
from dataclasses import MISSING, InitVar, dataclass, field, fields
from typing import get_type_hints

import pytest
from langchain_core.documents import Document
from llama_index.core import PromptTemplate
from llama_index.core.schema import TextNode
from pydantic import BaseModel

import drillrank
import langchain_ext
import llama_index_ext
from drillrank.drilldown.settings import D3Settings, SelfAskSettings
from drillrank.errors import InvalidInput
from drillrank.hosts.fields import Fixed
from drillrank.hosts.generated import GeneratedRecordSettings, GenerationSettings
from drillrank.hosts.paths import LinkedRecordSettings
from drillrank.hosts.settings import D3RetrieverSettings, ExplainSettings, SplitterSettings, ViewRetrieverSettings
from drillrank.multihop.lookups import Nowhere
from drillrank.multihop.path_settings import PathSearchSettings
from drillrank.registry import component, components
from drillrank.rerank.brmgr import BRMGRSettings
from drillrank.rerank.demonstrations import Demonstration
from drillrank.rerank.monot5 import MonoT5Settings
from drillrank.rerank.promptrank import PromptRankSettings
from drillrank.rerank.relevance import RelevanceSettings
from drillrank.rerank.upr import UPRSettings
from drillrank.settings import Settings, declared, method, renamed, setting
from drillrank.views import ViewIndexSettings, ViewSettings
from tests.conformance import langchain_reader, llama_index_reader
from tests.drillrank.conftest import HashModel

METHODS = {
    D3Settings: (drillrank.D3, ["D3Retriever"]),
    D3RetrieverSettings: (D3RetrieverSettings, ["D3Retriever"]),
    ViewSettings: (drillrank.views.MultiViewChunker, ["MultiViewTextSplitter", "MultiViewNodeParser"]),
    SplitterSettings: (SplitterSettings, ["MultiViewTextSplitter", "MultiViewNodeParser"]),
    ViewIndexSettings: (drillrank.views.MultiViewIndex, ["MultiViewRetriever"]),
    ViewRetrieverSettings: (ViewRetrieverSettings, ["MultiViewRetriever"]),
    SelfAskSettings: (drillrank.SelfAsk, ["SelfAskChain", "SelfAskQueryEngine"]),
    UPRSettings: (drillrank.UPR, ["UPRRerank"]),
    MonoT5Settings: (drillrank.MonoT5, ["MonoT5Rerank"]),
    RelevanceSettings: (drillrank.Relevance, ["RelevanceRerank"]),
    BRMGRSettings: (drillrank.BRMGR, ["BRMGRRerank", "BRMGRRetriever"]),
    PromptRankSettings: (drillrank.PromptRank, ["PromptRankRerank", "PromptRankRetriever"]),
    PathSearchSettings: (drillrank.PathSearch, ["PromptRankRerank", "PromptRankRetriever"]),
    GeneratedRecordSettings: (GeneratedRecordSettings, ["BRMGRRerank", "BRMGRRetriever"]),
    GenerationSettings: (GenerationSettings, ["BRMGRRetriever"]),
    ExplainSettings: (
        ExplainSettings,
        ["D3Retriever", "MultiViewRetriever", "PromptRankRetriever", "BRMGRRetriever"],
    ),
    LinkedRecordSettings: (LinkedRecordSettings, ["PromptRankRerank", "PromptRankRetriever"]),
}
BAD = {
    "language": "klingon",
    "template": "no place",
    "generated_template": "no place",
    "max_passage_tokens": 0,
    "max_generated_tokens": 0,
    "preset": "unknown",
    "prior": "unknown",
    "prior_weight": 0,
    "first": "unknown",
    "guard": 1.5,
    "generated_share": -0.1,
    "paragraphs": "unknown",
    "embed": 5,
    "monot5": 5,
    "sections": 0,
    "max_documents": 0,
    "guard_tokens": -1,
    "summarizer": 5,
    "summary_words": 0,
    "max_prompt_tokens": 0,
    "tokens": 5,
    "max_calls": 0,
    "sections_by": "unknown",
    "on_empty": "unknown",
    "on_failure": "unknown",
    "workers": 0,
    "section_prompt": "no place",
    "paragraph_prompt": "no place",
    "top_n": 0,
    "separator": None,
    "join_pages": "perhaps",
    "views": ["keywords"],
    "chunking": "unknown",
    "max_tokens": 0,
    "min_tokens": 0,
    "context": ["unknown"],
    "namespace": " ",
    "namespace_key": " ",
    "retriever": "unknown",
    "weights": {"raw": -1},
    "expand": "unknown",
    "explain": "perhaps",
    "max_steps": 0,
    "prompt": "no place",
    "answer_prompt": "no place",
    "instruction": 3,
    "positive": "",
    "negative": -1,
    "transform": "unknown",
    "scale": 0.0,
    "shift": float("inf"),
    "chat": "perhaps",
    "instructions": ("no place",),
    "ensemble": "unknown",
    "temperature": 0,
    "demonstrations_per_prompt": 0,
    "max_document_tokens": 0,
    "hops": 0,
    "beam": 0,
    "branch": 0,
    "pairs": -1,
    "link_prior": "unknown",
    "cascade": 0,
    "prompts": ("no place",),
    "origin_key": 5,
    "links_key": 5,
}
OF_THE_HOST = {  # settings whose type differs from the core's, and why
    "embed": "the host's embedding models, too",
    "section_prompt": "the host's templates",
    "paragraph_prompt": "the host's templates",
    "prompt": "the host's templates",
    "answer_prompt": "the host's templates",
}
NOT_ALONE = {  # settings that cannot be refused by themselves, and why
    "preset": "which needs its model",
    "embed": "whose type depends on the host",
}
ASKED_UNDER = {  # what components fetch from has two names, and why
    "source": (
        "a store or an index by itself, too, which is then searched by metadata; and the core's `retriever` of "
        "MultiViewRetriever is the name of an index in memory",
        {"D3Retriever", "MultiViewRetriever"},
    ),
    "retriever": (
        "a retriever and nothing else, as the core's SelfAsk and the hosts' own components call it",
        {"BRMGRRetriever", "PromptRankRerank", "PromptRankRetriever", "SelfAskChain", "SelfAskQueryEngine"},
    ),
}
each = pytest.mark.parametrize("settings", METHODS, ids=lambda cls: cls.__name__)
each_setting = pytest.mark.parametrize(
    ("settings", "name"), [(cls, item.name) for cls in METHODS for item in fields(cls)]
)


class Reading(HashModel):
    """Of no spec of its own."""

    tells_next_tokens = True


def in_hosts(settings):
    """The components of both hosts that inherit settings."""
    names = METHODS[settings][1]
    return [getattr(host, name) for host in (llama_index_ext, langchain_ext) for name in names if hasattr(host, name)]


def needed(cls):
    """What has to be given to build one."""
    if cls is langchain_ext.SelfAskChain:
        return {"llm": langchain_reader.Reader(), "retriever": langchain_ext.D3Retriever()}
    if cls is llama_index_ext.SelfAskQueryEngine:
        return {"llm": llama_index_reader.Reader(), "retriever": llama_index_ext.D3Retriever()}
    if cls is drillrank.SelfAsk:
        return {"llm": str.upper, "retrieve": str.split}
    if cls is drillrank.PathSearch:
        return {"prompt_rank": drillrank.PromptRank(Reading()), "first_stage": Nowhere()}
    for host, reader in ((langchain_ext, langchain_reader), (llama_index_ext, llama_index_reader)):
        if cls is host.BRMGRRetriever:
            return {"llm": reader.Reader(), "retriever": host.D3Retriever(), "model": Reading()}
        if cls is host.PromptRankRetriever:
            return {"retriever": host.D3Retriever(), "model": Reading()}
    if cls is drillrank.views.MultiViewIndex:
        return {"chunks": []}
    return {"model": Reading()} if "model" in inspect.signature(cls).parameters else {}


def plain(annotation):
    """A type without what it holds for pydantic."""
    return get_type_hints(type("Holder", (), {"__annotations__": {"held": annotation}}))["held"]


def described(function):
    """Keyword, default and annotation of every parameter."""
    return {name: (item.default, item.annotation) for name, item in inspect.signature(function).parameters.items()}


@each
def test_every_setting_has_a_default_and_says_what_it_does(settings):
    for item in fields(settings):
        assert item.default is not MISSING
        assert item.metadata["description"].endswith(".")
        assert f"{item.name}: {item.metadata['description'][:20]}" in settings.__doc__


@each
def test_core_and_both_hosts_show_the_same_settings(settings):
    core, _ = METHODS[settings]
    declared = described(settings)
    of_core = described(core)
    assert {name: of_core[name] for name in declared} == declared
    types = get_type_hints(settings)
    for cls in in_hosts(settings):
        if issubclass(cls, BaseModel):
            for item in fields(settings):
                field = cls.model_fields[item.name]
                assert field.default == item.default
                assert field.description == item.metadata["description"]
                assert (plain(field.annotation) == types[item.name]) is (item.name not in OF_THE_HOST)
                assert f"{item.name}: " in cls.__doc__
        else:
            own = {item.name: item for item in fields(cls)}
            for item in fields(settings):
                assert own[item.name].default == item.default
                assert own[item.name].metadata == item.metadata
                assert (own[item.name].type == item.type) is (item.name not in OF_THE_HOST)
                assert f"{item.name}: " in cls.__doc__


@each
def test_settings_survive_json_and_pickle_and_stay(settings):
    built = settings()
    assert settings.from_dict(json.loads(json.dumps(built.to_dict()))) == built
    assert pickle.loads(pickle.dumps(built)) == built == copy.deepcopy(built)
    assert hash(built) == hash(settings())
    for item in fields(settings):
        with pytest.raises(InvalidInput, match=f"{item.name} of {settings.__name__} is fixed"):
            setattr(built, item.name, None)


def test_what_a_component_fetches_from_is_called_alike_or_for_a_reason():
    named = {name: set() for name in ASKED_UNDER}
    for declared_once in components():
        for package, names in ((langchain_ext, declared_once.langchain), (llama_index_ext, declared_once.llama_index)):
            for cls in (getattr(package, name) for name in names):
                taken = set(getattr(cls, "model_fields", None) or inspect.signature(cls).parameters)
                if issubclass(cls, ViewIndexSettings):
                    taken -= {item.name for item in fields(ViewIndexSettings)}
                for name in named.keys() & taken:
                    named[name].add(cls.__name__)
    assert named == {name: components_ for name, (_, components_) in ASKED_UNDER.items()}


@each_setting
def test_a_value_that_cannot_be_used_is_refused_alike(settings, name):
    if name not in BAD:
        pytest.fail(f"no bad value of {name} is known")
    if name not in NOT_ALONE:
        with pytest.raises(InvalidInput):
            settings(**{name: BAD[name]})
    core, _ = METHODS[settings]
    if name in NOT_ALONE and core is settings:
        return
    with pytest.raises(InvalidInput):
        core(**needed(core), **{name: BAD[name]})
    for cls in in_hosts(settings):
        with pytest.raises(ValueError, match=f"{name}|{BAD[name]}|prompt|template|passage|weight|instruction"):
            cls(**needed(cls), **{name: BAD[name]})


@each
def test_a_method_takes_settings_made_elsewhere(settings):
    core, _ = METHODS[settings]
    given = needed(core)
    built = core.configured(settings(), **given)
    assert all(vars(built).get(name, value) is value for name, value in given.items())
    for cls in in_hosts(settings):
        if issubclass(cls, settings):
            kept = {item.name: getattr(built, item.name) for item in fields(settings) if item.name in OF_THE_HOST}
            assert repr(core.configured(cls(**needed(cls)), **given, **kept)) == repr(built)


@pytest.mark.parametrize("settings", [cls for cls in METHODS if cls is not RelevanceSettings])
def test_the_old_name_of_the_model_goes_on_for_one_release(settings):
    core, _ = METHODS[settings]
    if "model" not in needed(core):
        return
    with pytest.warns(DeprecationWarning, match="'lm' is called 'model' now"):
        built = core(lm=Reading())
    with pytest.warns(DeprecationWarning, match="language_model"):
        assert built.lm is built.language_model
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        core(model=Reading())


@dataclass(frozen=True)
class Shares:
    jump: float = 0.5


@declared
class BeamSettings(Settings):
    """How far a search looks."""

    words: tuple[str, ...] = setting(default=("a",), description="Words.")
    shares: Shares | None = setting(default=Shares(), description="Shares.")


@renamed(k="top_n")
@method
class Beam(Fixed, BeamSettings):
    """As hosts' classes without fields are built."""

    pool: list[str]
    top_n: int = field(default=3, kw_only=True)
    manager: InitVar[str] = ""

    def __post_init__(self, manager):
        super().__post_init__()
        self.managed_by = manager


def test_settings_are_plain_values_and_hashable_ones_again():
    assert BeamSettings().to_dict() == {"words": ["a"], "shares": {"jump": 0.5}}
    assert hash(BeamSettings(words=["a"])) == hash(BeamSettings())


def test_arguments_that_are_no_settings_are_fixed_refused_and_renamed_alike():
    beam = Beam.configured(BeamSettings(words=("b",)), ["x"], manager="m", top_n=1)
    assert (beam.words, beam.pool, beam.managed_by, beam.top_n) == (("b",), ["x"], "m", 1)
    for name in ("words", "pool", "top_n", "manager"):
        with pytest.raises(InvalidInput, match=f"^{name} of Beam is fixed"):
            setattr(beam, name, None)
    with pytest.raises(InvalidInput, match="no field 'wrods'; did you mean 'words'"):
        Beam([], wrods=())
    with pytest.warns(DeprecationWarning, match="'k' is called 'top_n' now"):
        assert Beam([], k=2).top_n == 2


@pytest.mark.parametrize("build", [drillrank.D3, langchain_ext.D3Retriever, llama_index_ext.D3Retriever, D3Settings])
def test_an_old_value_goes_on_for_one_release(build):
    with pytest.warns(DeprecationWarning, match="on_failure='likelihood' is called 'continue' now"):
        assert build(on_failure="likelihood").on_failure == "continue"


def test_the_prompt_of_self_ask_goes_on_under_its_old_name_for_one_release():
    retriever, template = llama_index_ext.D3Retriever(), PromptTemplate("Mine. {question}{transcript}")
    with pytest.warns(DeprecationWarning, match="'self_ask_prompt' is called 'prompt' now"):
        engine = llama_index_ext.SelfAskQueryEngine(retriever, self_ask_prompt=template)
    assert engine.prompt is template
    assert engine.get_prompts()["prompt"] == template
    with pytest.warns(DeprecationWarning, match="'self_ask_prompt' is called 'prompt' now"):
        engine.update_prompts({"self_ask_prompt": PromptTemplate("Another. {question}{transcript}")})
    assert engine.get_prompts()["prompt"].template.startswith("Another")


@pytest.mark.parametrize("build", [drillrank.D3, langchain_ext.D3Retriever, llama_index_ext.D3Retriever])
def test_what_summarises_goes_on_under_its_old_name_for_one_release(build):
    def first(texts):
        return [text[:9] for text in texts]

    with pytest.warns(DeprecationWarning, match="'summarise' is called 'summarizer' now"):
        assert build(summarise=first).summarizer is first


def test_the_number_of_documents_goes_on_under_its_old_name_for_one_release():
    with pytest.warns(DeprecationWarning, match="'documents' is called 'max_documents' now"):
        assert drillrank.D3(documents=3).max_documents == 3


def test_a_type_of_its_own_leaves_default_and_description():
    @declared
    class Beam(Settings):
        width: int = setting(default=5, description="Paths that are extended.")

    @method
    class Search(Beam):
        start: str = ""
        width: float

    found = next(item for item in fields(Search) if item.name == "width")
    assert (found.type, found.default, found.kw_only) == ("float", 5, True)
    assert found.metadata["description"] == "Paths that are extended."
    assert Search("x", width=2.5).width == 2.5


OF_ONE_HOST = {  # arguments that a component has in one host alone, and why
    "callback_manager": "LlamaIndex gives callbacks to components, LangChain to calls",
    "name": "of every component of LangChain's",
    "tags": "of every component of LangChain's",
    "metadata": "of every component of LangChain's",
    "filters": "what LlamaIndex calls a filter",
    "filter": "what LangChain calls filters",
    "nodes": "LlamaIndex's documents",
    "documents": "LangChain's nodes",
    "score_key": "a node of LlamaIndex has a score",
    "keep_retrieval_score": "which LangChain's documents do not bring",
    "metadata_mode": "how LlamaIndex says what of a node's metadata a model reads",
    "metadata_fields": "how LangChain is told what of a document's metadata a model reads",
    "title_key": "how LangChain is told which of the metadata is the title; LlamaIndex shows it with the others",
    "verbose": "of LlamaIndex's components; LangChain's has callbacks for it",
    "show_progress": "LlamaIndex gives it to the call",
    "id_func": "of every node parser of LlamaIndex",
    "include_metadata": "of every node parser of LlamaIndex",
    "include_prev_next_rel": "of every node parser of LlamaIndex",
}


def shown(cls):
    """What a component is given by name."""
    return set(cls.model_fields if issubclass(cls, BaseModel) else inspect.signature(cls).parameters)


@pytest.mark.parametrize("name", [one.name for one in components()])
def test_what_one_host_has_alone_is_known(name):
    one = component(name)
    pairs = list(zip(one.llama_index, one.langchain, strict=False))
    for of_llama_index, of_langchain in pairs:
        ours, others = shown(getattr(llama_index_ext, of_llama_index)), shown(getattr(langchain_ext, of_langchain))
        assert (ours ^ others) <= OF_ONE_HOST.keys()
    assert pairs


@pytest.mark.parametrize("cls", [llama_index_ext.PromptRankRetriever, langchain_ext.PromptRankRetriever])
def test_what_a_retriever_of_paths_is_given_reaches_its_ranker(cls):
    shot = Demonstration(drillrank.Path((drillrank.Passage("It lies on the Rhine."),)), "Where is Basel?")
    given = {"hops": 4, "temperature": 1.4, "links_key": "see", "title_key": "name", "demonstrations": (shot,)}
    paths = cls(**needed(cls), **given)._paths
    _, search = paths._search_of(())
    assert (search.hops, search.prompt_rank.temperature, search.prompt_rank.demonstrations) == (4, 1.4, (shot,))
    assert search.links[0](drillrank.Passage("", metadata={"see": ["a"], "links": ["b"]})) == ("a",)
    named = {"name": "Basel", "title": "Bern"}
    record = TextNode(metadata=named) if cls is llama_index_ext.PromptRankRetriever else Document("", metadata=named)
    assert paths._passage(record, "1").title == "Basel"


def test_what_a_retriever_with_generation_is_given_reaches_its_ranker():
    cls = llama_index_ext.BRMGRRetriever
    given = {"guard": 0.5, "first": "retrieved", "origin_key": "by", "max_generated_tokens": 9, "top_n": 2}
    ranker = cls(**needed(cls), **given)._rerank
    assert {name: getattr(ranker, name) for name in given} == given
