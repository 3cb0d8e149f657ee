"""A file of settings, in the core and in both hosts' components; files that are none, and files that attack."""

from __future__ import annotations

import json
import warnings

import pytest

import drillrank
import langchain_ext
import llama_index_ext
from drillrank import load_settings
from drillrank.cli import main
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.likelihood import UnigramModel
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS
from drillrank.views import MultiViewIndex

UNIGRAM = {"model": "unigram", "model_options": {"mu": 50.0}}
SETTINGS = {
    "UPR": {"prior": "retrieval", "prior_weight": 0.5, "model": "unigram", "model_options": {"mu": 1000.0}},
    "PathSearch": {"hops": 3, "link_prior": {"jump": 0.2, "named": 0.5}},
    "PromptRank": {"temperature": 1.4, "prior_weight": 2.0, "instructions": [PROMPTRANK_INSTRUCTIONS[7]], **UNIGRAM},
    "D3": {"sections": 3, **UNIGRAM},
    "MultiViewIndex": {"retriever": "tfidf", "weights": {"raw": 2.0}},
}


@pytest.fixture
def file(tmp_path):
    return written(tmp_path, {"format": "drillrank-settings-1", "settings": SETTINGS})


def written(folder, content):
    path = folder / "settings.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def of(section, name="UPR"):
    return {"format": "drillrank-settings-1", "settings": {name: section}}


def test_the_core_loads_what_concerns_it(file):
    upr = drillrank.UPR(**load_settings(file, "UPR"))
    assert (upr.prior, upr.prior_weight, upr.language_model.options) == ("retrieval", 0.5, {"mu": 1000.0})
    prompt_rank = drillrank.PromptRank(**load_settings(file, drillrank.PromptRank))
    assert (prompt_rank.temperature, prompt_rank.settings.prior_weight) == (1.4, 2.0)
    assert prompt_rank.language_model.options == {"mu": 50.0}
    search = drillrank.PathSearch(prompt_rank, ["Basel on the Rhine."], **load_settings(file, "PathSearch"))
    assert (search.settings.hops, search.settings.link_prior.jump) == (3, 0.2)
    d3 = drillrank.D3(**load_settings(file, "D3"))
    assert (d3.settings.sections, d3.language_model.options) == (3, {"mu": 50.0})
    assert MultiViewIndex([], **load_settings(file, "MultiViewIndex")).weights == {"raw": 2.0}
    with pytest.raises(InvalidInput, match="Pass the class itself, or 'PathSearch'"):
        load_settings(file, "PromptRankRetriever")
    with pytest.raises(InvalidInput, match="No component is called 'dict'"):
        load_settings(file, dict)


def test_settings_of_another_model_warn(file):
    own = UnigramModel(mu=20.0)
    said = r"chosen with 'unigram' \{'mu': 1000.0\}, not with 'unigram' \{'mu': 20.0\}"
    with pytest.warns(DrillrankWarning, match=said):
        assert load_settings(file, "UPR", model=own)["model"] is own
    with pytest.warns(DrillrankWarning, match=r"not with 'hf:gpt2'"):
        assert load_settings(file, "PromptRank", model="hf:gpt2")["model"] == "hf:gpt2"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_settings(file, "UPR", model=UnigramModel(mu=1000.0))
        assert load_settings(file, "PromptRank", model="unigram")["model"].options == {"mu": 50.0}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ("\xff", "is not JSON"),
        ("[" * 200_000, "is not JSON"),
        ('{"format": "drillrank-settings-1", "settings": {"UPR": {"template": ' + "[" * 200_000, "is not JSON"),
        ([], "must have .format.: .drillrank-settings-1"),
        ({"format": "drillrank-settings-2", "settings": {}}, "must have .format.: .drillrank-settings-1"),
        ({"format": "drillrank-settings-1"}, 'settings.json: "settings" must contain'),
        ({"format": "drillrank-settings-1", "settings": {"UPR": 3}}, 'settings.json: "settings" must contain'),
        (of({}, "D3"), "must have settings of UPR, got D3"),
        ({"format": "drillrank-settings-1", "settings": {}}, "must have settings of UPR, got none"),
        (of({"priors": None}), r"settings.json, UPR: settings must be among .*prior.*, got priors"),
        (of({"language_model": 5}), r"settings.json, UPR: settings must be among .*, got language_model"),
        (of({"hops": 0}, "PathSearch"), "settings.json, PathSearch: hops must be"),
        (of({"link_prior": {"jumps": 1}}, "PathSearch"), "settings.json, PathSearch: PathPrior has no field 'jumps'"),
        (of({"pool": "many"}, "PathSearch"), "settings.json, PathSearch: pool must be"),
        (of({"links": ["titles"]}, "PathSearch"), "settings.json, PathSearch: settings must be among .*, got links"),
        (of({"model": 5}), '"model" must be a specification'),
        (of({"model_options": [5]}), '"model_options" a mapping'),
    ],
)
def test_a_file_that_cannot_be_used_is_told(tmp_path, content, said):
    path = tmp_path / "settings.json"
    path.write_bytes(content.encode("latin-1") if isinstance(content, str) else json.dumps(content).encode())
    of_paths = "PathSearch" in said
    for component in ["PathSearch"] if of_paths else ["UPR", llama_index_ext.UPRRerank, langchain_ext.UPRRerank]:
        with pytest.raises(InvalidInput, match=said):
            load_settings(path, component)
    with pytest.raises(InvalidInput, match=r"no\.json cannot be read: No such file"):
        load_settings(tmp_path / "no.json", "UPR")


OF_CODE = [{}, {"trust_remote_code": True}]
ATTACKS = [
    *(({"model": model}, '"model" is') for model in (
        "http://127.0.0.1:9/v1#m", "https://example.org/v1#m", "hf:/tmp/model", "hf:./model", "hf:~/model",
        "unigram:../model", "hf:model",  # a folder that looks like a hub's name
        r"hf:\\server\share", "ce:model", "unigram+http://127.0.0.1:9/v1#m", "2*unigram+hf:a/b+0.5*hf:model",
    )),
    ({"model": "unigram+unigram", "model_options": {"experts": OF_CODE}}, "'trust_remote_code'"),
    ({"model": "unigram", "model_options": {"trust_remote_code": True}}, "'trust_remote_code'"),
    ({"model": "unigram", "model_options": {"model_kwargs": {"x": 1}}}, "'model_kwargs'"),
    ({"model": "unigram", "model_options": {"api_key_env": "AWS_SECRET_ACCESS_KEY"}}, "'api_key_env'"),
    ({"model": "unigram", "model_options": {"base_url": "http://a"}}, "'base_url'"),
]  # fmt: skip


@pytest.mark.parametrize(("section", "said"), ATTACKS)
def test_what_reaches_beyond_the_file_is_refused(tmp_path, monkeypatch, section, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    monkeypatch.setattr("drillrank.evaluation.settings_file.load_language_model", None)
    monkeypatch.setattr("drillrank.evaluation.settings_file.load_evidence_model", None)
    for name in ("UPR", "PromptRank", "D3"):
        with pytest.raises(InvalidInput, match=f"settings.json, {name}: .*{said}.*trust"):
            load_settings(written(tmp_path, of(section, name)), name)


def test_the_command_line_loads_it_with_a_flag_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "doc.md").write_text("# A\n\nThe notice period is a month.\n")
    rows = [{"question": "Which notice?", "gold": ["1"], "candidates": [{"id": "1", "text": "The notice."}]}]
    (tmp_path / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    section = {"model": "unigram:elsewhere"}
    written(tmp_path, {"format": "drillrank-settings-1", "settings": {"D3": section, "UPR": section}})
    for command in (["ask", "doc.md", "notice", "--no-cache"], ["compare", "asked.jsonl"]):
        assert main([*command, "--settings", "settings.json"]) == 2
        refused = " ".join(capsys.readouterr().err.split())
        assert '"model" is' in refused
        assert "--trust-settings" in refused
        assert main([*command, "--settings", "settings.json", "--trust-settings"]) == 2
        assert "--trust-settings" not in (tried := " ".join(capsys.readouterr().err.split()))
        assert "elsewhere" in tried


@pytest.mark.parametrize(
    ("component", "section"),
    [
        *(
            ("UPR", {"model": model})
            for model in ("hf:Qwen/Qwen3-0.6B", "m2v:a/b", "unigram+2*st:a/b", "onnx:b", "HF:a")
        ),
        ("D3", {"tokens": "tiktoken:o200k_base"}),
        ("D3", {"tokens": " TikToken:x"}),
        ("D3", {"section_prompt": "https://example.org/prompt"}),
        ("PathSearch", {"link_prior": {"jump": ["hf:a/b"]}}),
    ],
)
def test_what_is_downloaded_is_refused_without_trust(tmp_path, component, section):
    with pytest.raises(InvalidInput, match=r"loaded from a folder or a server: trust the file"):
        load_settings(written(tmp_path, of(section, component)), component)


def test_a_model_of_the_user_and_numbers_are_no_attack(tmp_path):
    for model in ("hf:Qwen/Qwen3-0.6B", "m2v:minishlab/potion-base-8M", "unigram+2*hf:Qwen/Qwen3-0.6B+m2v:a/b"):
        section = {"model": model, "prior": "retrieval"}
        assert load_settings(written(tmp_path, of(section)), "UPR", trust=True) == section
    assert load_settings(written(tmp_path, of(UNIGRAM)), "UPR")["model"].options == {"mu": 50.0}
    section = {"model": "unigram+unigram", "model_options": {"experts": [{"mu": 5.0}, {}]}}
    assert load_settings(written(tmp_path, of(section)), "UPR")["model"].experts[0].mu == 5.0
    section = {"model": "hf:./mine", "prior": "retrieval"}
    assert load_settings(written(tmp_path, of(section)), "UPR", model="hf:./mine") == section
    file = written(tmp_path, of({"model": "hf:./mine", "model_options": {"trust_remote_code": True}}))
    with pytest.raises(InvalidInput, match="trust_remote_code"):
        load_settings(file, "UPR", model="hf:./mine")
