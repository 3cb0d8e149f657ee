"""The notebooks run from top to bottom, and what they store names no path of a machine."""

from __future__ import annotations

import asyncio
import importlib
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, get_start_method
from pathlib import Path

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from tests.drillrank.neural.conftest import smallest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MACHINE_PATHS = ("/root", "/home", "/work", "/tmp")

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def run_cells(sources: list[str]) -> list[tuple[str, str, int]]:
    """Run cells in this process, as a kernel does: in one namespace, while an event loop runs.

    Returns:
        The error of each cell, or an empty text; what it prints; and how many results it shows.
    """
    os.chdir(ROOT)
    warnings.resetwarnings()
    warnings.filters[:] = [("default", None, Warning, None, 0)]
    shell = InteractiveShell.instance()
    shell.enable_gui = lambda gui=None: None  # figures are results of their cells
    shell.run_line_magic("matplotlib", "inline")

    async def run() -> list[tuple[str, str, int]]:
        cells = []
        for source in sources:
            with capture_output() as captured:
                result = await shell.run_cell_async(source, transformed_cell=shell.transform_cell(source))
            error = result.error_before_exec or result.error_in_exec
            n_shown = len(captured.outputs) + (result.result is not None)
            cells.append((repr(error) if error else "", captured.stdout, n_shown))
        return cells

    return asyncio.run(run())


def outputs(notebook):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def texts(output):
    """What an output shows as text; images are left out, since their base64 may hold any letters."""
    shown = [output.get("text"), *output.get("traceback", ())]
    shown += [content for mime, content in output.get("data", {}).items() if not mime.startswith("image/")]
    return [str(text) for text in shown if text]


@each_notebook
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_notebook_runs_without_errors(path, tmp_path, monkeypatch):
    """A fork of this process runs the cells: libraries that take seconds to load are there already."""
    monkeypatch.setenv("SMALL_LM", str(smallest(tmp_path / "tiny")))  # in place of one of the hub
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))  # no start-up files of the user
    cells = nbformat.read(path, as_version=4).cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    importlib.import_module("matplotlib.pyplot")  # before the fork, once for all notebooks
    context = get_context("fork" if hasattr(os, "fork") else get_start_method())
    with ProcessPoolExecutor(1, context) as pool:
        results = pool.submit(run_cells, sources).result(100)
    assert len(results) == len(sources) > 1
    assert [error for error, *_ in results if error] == []
    assert any(printed or n_shown for _, printed, n_shown in results)


@each_notebook
def test_stored_outputs_hold_no_error_and_no_path_of_a_machine(path):
    stored = outputs(nbformat.read(path, as_version=4))
    assert [output for output in stored if output.output_type == "error"] == []
    shown = [text for output in stored for text in texts(output)]
    assert [text for text in shown if any(machine_path in text for machine_path in MACHINE_PATHS)] == []
