"""Seconds until QASPER's papers are views: one process, and two Ray workers (`make test-ray` installs Ray)."""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .data import read

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "ray"
WORKERS = 2


def main() -> None:
    if find_spec("ray") is None:
        print("ray_papers: Ray is not installed; make test-ray does it.")
        return
    import ray

    sys.path.insert(0, str(EXAMPLE))
    from corpus import Views

    papers = [
        {"page_content": _markdown(paper), "id": paper["id"]}
        for paper in [*read("longdoc/qasper"), *read("longdoc/qasper_tune")]
    ]
    started = time.perf_counter()
    batch = {key: [paper[key] for paper in papers] for key in papers[0]}
    views = Views()(batch)
    alone = time.perf_counter() - started
    paths = os.pathsep.join(map(str, (ROOT / "shared", ROOT, EXAMPLE)))
    started = time.perf_counter()
    ray.init(
        num_cpus=WORKERS,
        include_dashboard=False,
        runtime_env={"env_vars": {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}},
        logging_level="error",
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    begun = time.perf_counter() - started
    found: list[float] = []
    for _ in range(2):
        started = time.perf_counter()
        rows = ray.data.from_items(papers, override_num_blocks=4 * WORKERS)
        made = rows.map_batches(Views, compute=ray.data.ActorPoolStrategy(size=WORKERS), batch_size=16).take_all()
        found.append(time.perf_counter() - started)
        same = {row["id"]: json.loads(row["metadata"]) for row in made} == dict(
            zip(views["id"], map(json.loads, views["metadata"]), strict=True)
        )
        if not same:
            raise SystemExit("The views of Ray's workers are not those of one process.")
    ray.shutdown()
    table = Table("way", "seconds", title=f"{len(papers)} papers, {len(views['id']):,} views")
    table.add_row("one process", f"{alone:.1f}")
    table.add_row("start of Ray", f"{begun:.1f}")
    for name, seconds in zip(("first", "second"), found, strict=True):
        table.add_row(f"{WORKERS} Ray workers, {name} run (actors started in it)", f"{seconds:.1f}")
    Console().print(table)


def _markdown(paper: dict[str, Any]) -> str:
    return "\n\n".join(
        "\n\n".join([f"{'#' * len(section['path'])} {section['path'][-1]}", *section["paragraphs"]])
        for section in paper["sections"]
    )
