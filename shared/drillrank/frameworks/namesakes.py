"""Other packages with the name of an adapter. `llama_index_ext` and `langchain_ext` are names that others may use."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.metadata import distributions
from pathlib import Path
from types import ModuleType

from drillrank.errors import warn

_OURS = b"drillrank"  # in the first line of an adapter


def warn_about_namesakes(package: str, folder: Path) -> None:
    """Warn if another package has the name of an adapter, in the same folder or elsewhere on `sys.path`.

    Args:
        package: Name of the adapter.
        folder: Folder of the adapter.
    """
    added_modules = find_added_modules(folder)
    others = [path for path in find_packages(package) if not is_adapter(path)]
    advice = "Install it and drillrank in separate environments."
    if added_modules:
        warn(f"Another package installed modules into {folder}: {', '.join(added_modules)}. {advice}")
    if others:
        warn(f"{others[0]} is another package called {package}. Python imports the one of drillrank. {advice}")


def load_adapter(package: str) -> ModuleType:
    """Import an adapter.

    Raises:
        ImportError: Python imports another package of this name, or the adapter's framework is missing.
    """
    first = next(iter(find_packages(package)), None)
    if first is not None and not is_adapter(first):
        raise ImportError(
            f"{first} is another package called {package}, and Python imports it instead of the one of drillrank. "
            "Install it and drillrank in separate environments."
        )
    return importlib.import_module(package)


def find_packages(package: str) -> list[Path]:
    """Return the folders of all packages of a name on `sys.path`, in the order in which Python looks for them."""
    folders = [Path(entry or os.curdir, package) for entry in sys.path]
    return [folder for folder in folders if (folder / "__init__.py").is_file()]


def is_adapter(folder: Path) -> bool:
    """Return True if a package is an adapter of drillrank."""
    with (folder / "__init__.py").open("rb") as file:
        return _OURS in file.readline(1_000)


def find_added_modules(folder: Path) -> list[str]:
    """Return the modules in the folder of an installed adapter that another package installed there.

    Empty if drillrank is not installed in the folder's parent, as in a checkout.
    """
    installed = distributions(name="drillrank", path=[str(folder.parent)])
    own_modules = {
        file.name for drillrank in installed for file in drillrank.files or () if file.parent.name == folder.name
    }
    return sorted({path.name for path in folder.glob("*.py")} - own_modules) if own_modules else []
