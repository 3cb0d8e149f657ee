"""What lasts shows a bar on standard error where it is asked for, and nothing where it is not."""

from __future__ import annotations

import pytest

from drillrank import UPR, load_language_model
from tests.drillrank.neural.conftest import smallest
from tests.drillrank.neural.fake_server import FakeServer
from tests.drillrank.neural.tiny_encoder import saved_encoder

TEXTS = ["Basel lies on the Rhine.", "The Rhine rises in the Alps.", "Emma is a novel."]


@pytest.fixture(scope="module")
def specs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    hf = smallest(folder / "hf")
    server = FakeServer("vllm", hf)
    yield {"hf": f"hf:{hf}", "st": f"st:{saved_encoder(folder / 'st', TEXTS)}", "http": server.address}
    server.stop()


@pytest.mark.parametrize(("kind", "bar"), [("hf", "Reading"), ("st", "Batches"), ("http", "Reading")])
@pytest.mark.parametrize("show", [True, False])
def test_a_model_shows_a_bar_where_it_is_asked_to(specs, kind, bar, show, capfd):
    model = load_language_model(specs[kind], show_progress=show)
    rankings = UPR(model).rank_many(["Which river?", "Which novel?"], [TEXTS, TEXTS])
    assert [len(ranking) for ranking in rankings] == [3, 3]
    assert (bar in capfd.readouterr().err) == show
