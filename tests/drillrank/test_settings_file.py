"""A file of settings, in the core and in both hosts' components; and files that are none."""

from __future__ import annotations

import json
import warnings

import pytest
from langchain_core.retrievers import BaseRetriever as LangChainRetriever
from llama_index.core.retrievers import BaseRetriever as LlamaIndexRetriever

import drillrank
import langchain_ext
import llama_index_ext
from drillrank.drilldown.settings import D3Settings
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.likelihood import UnigramModel
from drillrank.multihop.path_settings import PathSearchSettings
from drillrank.rerank.promptrank import PromptRankSettings
from drillrank.rerank.upr import UPRSettings
from drillrank.views import MultiViewIndex, ViewIndexSettings

SETTINGS = {
    "UPRSettings": {"prior": "retrieval", "prior_weight": 0.5, "model": "unigram", "model_options": {"mu": 1000.0}},
    "PathSearchSettings": {"hops": 3, "link_prior": {"jump": 0.2, "named": 0.5}},
    "PromptRankSettings": {
        "temperature": 1.4,
        "instructions": ["{path} Ask. Question:"],
        "model": "unigram",
        "model_options": {"mu": 50.0},
    },
    "D3Settings": {"sections": 3, "model": "unigram", "model_options": {"mu": 500.0}},
    "ViewIndexSettings": {"retriever": "tfidf", "weights": {"raw": 2.0}},
}
HOSTS = [llama_index_ext, langchain_ext]


class Nothing(LlamaIndexRetriever):
    def _retrieve(self, query_bundle):
        return []


class NoDocuments(LangChainRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return []


RETRIEVERS = {llama_index_ext: Nothing, langchain_ext: NoDocuments}
both_hosts = pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.__name__)


@pytest.fixture
def file(tmp_path):
    return written(tmp_path, {"format": "drillrank-settings-1", "settings": SETTINGS})


def written(folder, content):
    path = folder / "settings.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_the_core_loads_what_concerns_it(file):
    upr = drillrank.UPR.load(file)
    assert (upr.prior, upr.prior_weight, upr.language_model.options) == ("retrieval", 0.5, {"mu": 1000.0})
    prompt_rank = drillrank.PromptRank.load(file)
    assert (prompt_rank.temperature, prompt_rank.language_model.options) == (1.4, {"mu": 50.0})
    search = drillrank.PathSearch.load(file, prompt_rank, ["Basel lies on the Rhine."])
    assert (search.hops, search.link_prior.jump) == (3, 0.2)
    d3 = drillrank.D3.load(file)
    assert (d3.sections, d3.language_model.options) == (3, {"mu": 500.0})
    assert MultiViewIndex.load(file, []).weights == {"raw": 2.0}


@pytest.mark.parametrize("cls", [UPRSettings, PathSearchSettings, PromptRankSettings, D3Settings, ViewIndexSettings])
def test_settings_classes_load_what_is_theirs(file, cls):
    given = {name: value for name, value in SETTINGS[cls.__name__].items() if not name.startswith("model")}
    assert cls.load(file) == cls.from_dict(given)


@both_hosts
def test_components_of_both_hosts_load_the_file(file, host):
    upr = host.UPRRerank.load(file, top_n=7)
    assert (upr.prior, upr.prior_weight, upr.model_options, upr.top_n) == ("retrieval", 0.5, {"mu": 1000.0}, 7)
    paths = host.PromptRankRerank.load(file)
    assert (paths.hops, paths.link_prior.jump, paths.temperature, paths.model_options) == (3, 0.2, 1.4, {"mu": 50.0})
    search = host.PromptRankRetriever.load(file, retriever=RETRIEVERS[host]())
    assert (search.hops, search.instructions) == (3, ("{path} Ask. Question:",))
    d3 = host.D3Retriever.load(file, documents=[])
    assert (d3.sections, d3.model_options) == (3, {"mu": 500.0})
    views = host.MultiViewRetriever.load(file, **{"documents" if host is langchain_ext else "nodes": []})
    assert (views.retriever, dict(views.weights)) == ("tfidf", {"raw": 2.0})


@both_hosts
def test_what_is_given_takes_the_place_of_the_file(file, host):
    assert host.UPRRerank.load(file, prior=None).prior is None
    assert host.UPRRerank.load(file, model_options={"mu": 9.0}).model_options == {"mu": 9.0}
    assert drillrank.UPR.load(file, prior_weight=2.0).prior_weight == 2.0
    assert drillrank.PromptRank.load(file, "unigram").language_model.options == {"mu": 50.0}


@both_hosts
def test_settings_of_another_model_warn(file, host):
    own = UnigramModel(mu=20.0)
    said = r"chosen with 'unigram' and \{'mu': 1000.0\}, not with 'unigram' and \{'mu': 20.0\}"
    for cls in (host.UPRRerank, drillrank.UPR):
        with pytest.warns(DrillrankWarning, match=said):
            ranker = cls.load(file, model=own)
        assert own in (getattr(ranker, "_language_model", None), getattr(ranker, "language_model", None))
    with pytest.warns(DrillrankWarning, match=r"not with 'hf:gpt2'"):
        drillrank.PromptRank.load(file, "hf:gpt2")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drillrank.UPR.load(file, UnigramModel(mu=1000.0))


def of(section, name="UPRSettings"):
    return {"format": "drillrank-settings-1", "settings": {name: section}}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is no JSON"),
        ("\xff", "is no JSON"),
        ([], "is no file of settings"),
        ({"format": "drillrank-settings-2", "settings": {}}, "is no file of settings"),
        ({"format": "drillrank-settings-1"}, 'settings.json: "settings" holds'),
        ({"format": "drillrank-settings-1", "settings": {"UPRSettings": 3}}, 'settings.json: "settings" holds'),
        (of({}, "D3Settings"), "holds D3Settings; nothing for UPR"),
        ({"format": "drillrank-settings-1", "settings": {}}, "holds no settings; nothing for UPR"),
        (of({"priors": None}), r"settings.json, UPRSettings: Settings of UPRSettings are .*prior.*not \{'priors'"),
        (of({"prior": "unknown"}), "settings.json, UPRSettings: The prior of passages is"),
        (of({"prior_weight": "much"}), "settings.json, UPRSettings: prior_weight is a positive number"),
        (of({"template": 5}), "settings.json, UPRSettings"),
        (of({"model": 5}), '"model" is a specification'),
        (of({"model_options": [5]}), '"model_options" a mapping'),
    ],
)
def test_a_file_that_cannot_be_used_is_told(tmp_path, content, said):
    path = tmp_path / "settings.json"
    path.write_bytes(content.encode("latin-1") if isinstance(content, str) else json.dumps(content).encode())
    for cls in (drillrank.UPR, llama_index_ext.UPRRerank, langchain_ext.UPRRerank):
        with pytest.raises(InvalidInput, match=said.replace("for UPR", f"for {cls.__name__}")):
            cls.load(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InvalidInput, match=r"no\.json cannot be read: No such file"):
        drillrank.UPR.load(tmp_path / "no.json")
