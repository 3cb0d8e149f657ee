"""The notebooks run from top to bottom, and what they store names no path of a machine."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from ipykernel.kernelspec import write_kernel_spec
from jupyter_client import KernelManager
from nbclient import NotebookClient

from tests.drillrank.neural.conftest import smallest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MACHINE_PATHS = ("/root", "/home", "/work", "/tmp")

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """One kernel for all notebooks, which import much: the running interpreter, without start-up files of the user."""
    place = tmp_path_factory.mktemp("jupyter")
    write_kernel_spec(place / "kernels" / "python3")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(place))
        patch.setenv("IPYTHONDIR", str(place / "ipython"))
        patch.setenv("SMALL_LM", str(smallest(place / "tiny")))  # in place of one of the hub
        manager = KernelManager(kernel_name="python3")
        manager.start_kernel(cwd=str(ROOT))
        yield manager
        manager.shutdown_kernel(now=True)


def outputs(notebook):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def texts(output):
    """What an output shows as text; images are left out, since their base64 may hold any letters."""
    shown = [output.get("text"), *output.get("traceback", ())]
    shown += [content for mime, content in output.get("data", {}).items() if not mime.startswith("image/")]
    return [str(text) for text in shown if text]


@each_notebook
def test_a_notebook_runs_without_errors(path, kernel):
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))  # no variable of another notebook
    client = NotebookClient(notebook, km=kernel, timeout=120, allow_errors=True)
    try:
        client.execute()
    finally:
        client.kc.stop_channels()
    assert outputs(notebook)
    assert [output for output in outputs(notebook) if output.output_type == "error"] == []


@each_notebook
def test_stored_outputs_hold_no_error_and_no_path_of_a_machine(path):
    stored = outputs(nbformat.read(path, as_version=4))
    assert [output for output in stored if output.output_type == "error"] == []
    shown = [text for output in stored for text in texts(output)]
    assert [text for text in shown if any(machine_path in text for machine_path in MACHINE_PATHS)] == []
