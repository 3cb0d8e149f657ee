"""Settings are declared once; the core's classes and both hosts' components show the same."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import warnings
from dataclasses import MISSING, InitVar, dataclass, field, fields

import pytest
from pydantic import BaseModel

import drillrank
import langchain_ext
import llama_index_ext
from drillrank.errors import InvalidInput
from drillrank.hosts.fields import Fixed
from drillrank.rerank.brmgr import BRMGRSettings
from drillrank.rerank.monot5 import MonoT5Settings
from drillrank.rerank.upr import UPRSettings
from drillrank.settings import Settings, declared, method, renamed, setting
from tests.drillrank.conftest import HashModel

METHODS = {
    UPRSettings: (drillrank.UPR, ["UPRRerank"]),
    MonoT5Settings: (drillrank.MonoT5, ["MonoT5Rerank"]),
    BRMGRSettings: (drillrank.BRMGR, ["BRMGRRerank", "BRMGRRetriever"]),
}
BAD = {
    "template": "no place",
    "generated_template": "no place",
    "max_passage_tokens": 0,
    "max_generated_tokens": 0,
    "preset": "unknown",
    "prior": "unknown",
    "first": "unknown",
    "guard": 1.5,
    "generated_share": -0.1,
}
each = pytest.mark.parametrize("settings", METHODS, ids=lambda cls: cls.__name__)
each_setting = pytest.mark.parametrize(
    ("settings", "name"), [(cls, item.name) for cls in METHODS for item in fields(cls)]
)


class Reading(HashModel):
    """Of no spec of its own."""


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
    method, components = METHODS[settings]
    declared = described(settings)
    shown = described(method)
    assert {name: shown[name] for name in declared} == declared
    for host in (llama_index_ext, langchain_ext):
        for component in components:
            cls = getattr(host, component)
            if not issubclass(cls, BaseModel):
                continue
            for item in fields(settings):
                field = cls.model_fields[item.name]
                assert field.default == item.default
                assert field.description == item.metadata["description"]
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


@each_setting
def test_a_value_that_cannot_be_used_is_refused_alike(settings, name):
    if name not in BAD:
        pytest.fail(f"no bad value of {name} is known")
    if name != "preset":  # which needs its model
        with pytest.raises(InvalidInput):
            settings(**{name: BAD[name]})
    method, components = METHODS[settings]
    with pytest.raises(InvalidInput):
        method(Reading(), **{name: BAD[name]})
    for host in (llama_index_ext, langchain_ext):
        cls = getattr(host, components[0])
        with pytest.raises(ValueError, match=f"{name}|{BAD[name]}|prompt|template|passage"):
            cls(Reading(), **{name: BAD[name]})


@each
def test_a_method_takes_settings_made_elsewhere(settings):
    method, components = METHODS[settings]
    model = Reading()
    built = method.configured(settings(), model)
    assert built.language_model is model
    for host in (llama_index_ext, langchain_ext):
        component = getattr(host, components[0])(model)
        again = method.configured(component, component._language_model)
        assert repr(again) == repr(built)


@each
def test_the_old_name_of_the_model_goes_on_for_one_release(settings):
    method, _ = METHODS[settings]
    with pytest.warns(DeprecationWarning, match="'lm' is called 'model' now"):
        built = method(lm=Reading())
    with pytest.warns(DeprecationWarning, match="language_model"):
        assert built.lm is built.language_model
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        method(Reading())


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
