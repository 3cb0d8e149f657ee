"""The command line: its commands are in `drillrank.cli.command`, which is loaded where an interrupt is no traceback."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import NoReturn

_BY_SIGNAL, _CLOSED = 128, 141  # as a shell has it for what ends by a signal, such as SIGPIPE
_interrupted: list[int] = []


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status, which `drillrank --help` explains."""
    _interrupted.clear()
    try:
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number and signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores it
                signal.signal(number, _interrupt)
        from drillrank.cli.command import run

        status = run(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED
    except KeyboardInterrupt as stopped:
        return _BY_SIGNAL + int((*stopped.args, signal.SIGINT)[0])
    return status


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    """Ends the command; at once, where somebody is too impatient to let it end."""
    if _interrupted:
        with suppress(ImportError):  # it is being imported
            from drillrank.cli.sources import COPIES

            shutil.rmtree(COPIES, ignore_errors=True)
        os._exit(_BY_SIGNAL + number)
    _interrupted.append(number)
    raise KeyboardInterrupt(number)
