"""The notebooks run from top to bottom, and what they store names no path of a machine."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from ipykernel.kernelspec import write_kernel_spec
from nbclient import NotebookClient

from tests.drillrank.neural.conftest import smallest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MACHINE_PATHS = ("/root", "/home", "/work", "/tmp")

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture
def this_python_as_kernel(tmp_path, monkeypatch):
    """Make `python3` mean the running interpreter, whatever kernels the machine has registered."""
    write_kernel_spec(tmp_path / "kernels" / "python3")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))  # no start-up files of the user


@pytest.fixture
def tiny_model_as_small_lm(tmp_path, monkeypatch):
    """In place of one of the hub."""
    monkeypatch.setenv("SMALL_LM", str(smallest(tmp_path / "tiny")))


def outputs(notebook):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def texts(output):
    """What an output shows as text; images are left out, since their base64 may hold any letters."""
    shown = [output.get("text"), *output.get("traceback", ())]
    shown += [content for mime, content in output.get("data", {}).items() if not mime.startswith("image/")]
    return [str(text) for text in shown if text]


@each_notebook
def test_a_notebook_runs_without_errors(path, this_python_as_kernel, tiny_model_as_small_lm):
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(ROOT)}}
    NotebookClient(notebook, kernel_name="python3", timeout=120, allow_errors=True, resources=resources).execute()
    assert outputs(notebook)
    assert [output for output in outputs(notebook) if output.output_type == "error"] == []


@each_notebook
def test_stored_outputs_hold_no_error_and_no_path_of_a_machine(path):
    stored = outputs(nbformat.read(path, as_version=4))
    assert [output for output in stored if output.output_type == "error"] == []
    shown = [text for output in stored for text in texts(output)]
    assert [text for text in shown if any(machine_path in text for machine_path in MACHINE_PATHS)] == []
