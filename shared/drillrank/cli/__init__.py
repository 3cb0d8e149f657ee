"""The command line. Its commands are in `drillrank.cli.command`.

That module is loaded by `main`, so that an interrupt while it loads ends the command without a traceback.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import NoReturn

# A shell reports a process that a signal ended by 128 and the number of the signal; SIGPIPE has the number 13.
_SIGNAL_STATUS, _CLOSED_STATUS = 128, 141
_received_signals: list[int] = []


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status, which `drillrank --help` explains."""
    _received_signals.clear()
    try:
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number and signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores it
                signal.signal(number, _interrupt)
        from drillrank.cli.command import run

        status = run(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_STATUS
    except KeyboardInterrupt as interrupt:
        return _SIGNAL_STATUS + int((*interrupt.args, signal.SIGINT)[0])
    return status


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    """End the command after cleaning up, and at once if this is the second signal."""
    if _received_signals:
        with suppress(ImportError):  # the module is being imported
            from drillrank.cli.sources import COPIES

            shutil.rmtree(COPIES, ignore_errors=True)
        os._exit(_SIGNAL_STATUS + number)
    _received_signals.append(number)
    raise KeyboardInterrupt(number)
