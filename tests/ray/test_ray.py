"""A real local Ray cluster of two workers: the same nodes and scores as one process, also when a worker dies.

`make test-ray` installs Ray and runs this.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ray = pytest.importorskip("ray", reason="make test-ray installs it")
pytest.importorskip("llama_index.ingestion.ray", reason="make test-ray installs it")

from langchain_core.documents import Document as LangChainDocument  # noqa: E402
from llama_index.core import Document  # noqa: E402
from llama_index.core.ingestion import IngestionPipeline  # noqa: E402
from llama_index.ingestion.ray import RayIngestionPipeline, RayTransformComponent  # noqa: E402

from drillrank import UPR, load_language_model  # noqa: E402
from langchain_ext import MultiViewTextSplitter  # noqa: E402
from llama_index_ext import MultiViewNodeParser  # noqa: E402
from tests.drillrank.neural.conftest import saved  # noqa: E402

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "ray"
sys.path.insert(0, str(EXAMPLE))

from corpus import Scorer, Views  # noqa: E402

TEXTS = [
    f"# Manual {number}\n\nFor model {number}.\n\n## Warranty\n\nIt lasts {number} years.\n\n"
    f"## Care\n\nDescale it {number} times.\n\n### Lime\n\n{'Lime grows. ' * (number % 7)}\n"
    for number in range(60)
]
STORE = 96 * 2**20  # bytes of the cluster's object store
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    paths = os.pathsep.join(map(str, (ROOT / "shared", ROOT, EXAMPLE)))
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=STORE,
        runtime_env={"env_vars": {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}},
        logging_level="error",
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def two(**more):
    return {"compute": ray.data.ActorPoolStrategy(size=2), "batch_size": 8, **more}


def test_nodes_of_llama_index_are_those_of_one_process():
    documents = [Document(text=text, id_=f"manual-{n}", metadata={"n": n}) for n, text in enumerate(TEXTS)]
    alone = IngestionPipeline(transformations=[MultiViewNodeParser()]).run(documents=documents)
    step = RayTransformComponent(transform_class=MultiViewNodeParser, map_batches_kwargs=two())
    found = RayIngestionPipeline(transformations=[step]).run(documents=documents)
    assert len(found) == len(alone)
    assert {node.id_: node.to_dict() for node in found} == {node.id_: node.to_dict() for node in alone}


def views_of(dataset):
    return {row["id"]: (row["page_content"], json.loads(row["metadata"])) for row in dataset.take_all()}


@pytest.fixture(scope="module")
def manuals():
    return ray.data.from_items(
        [{"page_content": text, "path": f"{n}.md"} for n, text in enumerate(TEXTS)], override_num_blocks=12
    )


@pytest.fixture(scope="module")
def alone():
    documents = [LangChainDocument(page_content=text, metadata={"source": f"{n}.md"}) for n, text in enumerate(TEXTS)]
    return {
        piece.id: (piece.page_content, piece.metadata) for piece in MultiViewTextSplitter().split_documents(documents)
    }


def test_views_of_plain_rows_are_those_of_one_process(manuals, alone):
    assert views_of(manuals.map_batches(Views, **two())) == alone


class Dying(Views):
    """Kills its own worker process in the middle of the run, once."""

    def __init__(self, mark: str) -> None:
        super().__init__()
        self._mark = Path(mark)
        self._batches = 0

    def __call__(self, batch):
        self._batches += 1
        if self._batches == 2 and not self._mark.exists():
            self._mark.touch()
            os._exit(1)
        return super().__call__(batch)


def test_a_worker_that_is_killed_loses_nothing(manuals, alone, tmp_path):
    mark = tmp_path / "died"
    assert views_of(manuals.map_batches(Dying, fn_constructor_kwargs={"mark": str(mark)}, **two(batch_size=4))) == alone
    assert mark.exists()


@pytest.mark.parametrize("family", ["unigram", "llama", "t5-tied"])
def test_scores_are_those_of_one_process(family, tmp_path_factory):
    options = {} if family == "unigram" else {"dtype": "float32"}
    if family == "unigram":
        folder = str(tmp_path_factory.mktemp("fitted") / "model")
        load_language_model().fit(TEXTS).save(folder)
        model = f"unigram:{folder}"
    else:
        model = f"hf:{saved(family, tmp_path_factory)}"
    rows = [{"question": f"How long does manual {n} last?", "candidates": TEXTS[n : n + 5]} for n in range(24)]
    dataset = ray.data.from_items(rows, override_num_blocks=6)
    found = dataset.map_batches(Scorer, fn_constructor_kwargs={"model": model, **options}, **two()).take_all()
    ranker = UPR(load_language_model(model, **options))
    expected = {
        row["question"]: [
            item.score
            for item in sorted(
                ranker.rank(row["question"], row["candidates"]), key=lambda item: item.details["position"]
            )
        ]
        for row in rows
    }
    assert len(found) == len(rows)
    for row in found:
        np.testing.assert_allclose(row["scores"], expected[row["question"]], atol=1e-4)


@ray.remote(num_cpus=0)
class Count:
    def __init__(self):
        self.made = 0

    def add(self, number):
        self.made += number

    def told(self):
        return self.made


class Wide(Views):
    """Views with ballast, counted when they are made."""

    def __init__(self, count) -> None:
        super().__init__()
        self._count = count

    def __call__(self, batch):
        pieces = super().__call__(batch)
        ray.get(self._count.add.remote(len(batch["page_content"])))
        pieces["ballast"] = ["x" * BALLAST] * len(pieces["id"])
        return pieces


BALLAST = 2**17  # bytes of each piece
PIECES = 12  # of most documents, so that about four times the object store passes through it


def test_a_slow_reader_holds_the_workers_back():
    size = 4 * STORE // (PIECES * BALLAST)
    many = ray.data.from_items(
        [{"page_content": TEXTS[n % len(TEXTS)], "path": f"{n}.md"} for n in range(size)], override_num_blocks=size
    )
    count = Count.remote()
    ahead, read = [], set()
    dataset = many.map_batches(Wide, fn_constructor_kwargs={"count": count}, **two(batch_size=1))
    for batch in dataset.iter_batches(batch_size=PIECES):
        read |= {json.loads(metadata)["source"] for metadata in batch["metadata"]}
        time.sleep(0.02)
        ahead.append(ray.get(count.told.remote()) - len(read))
    assert len(read) == size
    assert max(ahead) < size / 2, "documents that were made before anybody read them"
