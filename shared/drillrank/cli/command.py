"""The command line's arguments and exit status. Errors and warnings go to standard error."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from itertools import takewhile
from types import FrameType
from typing import NoReturn

from drillrank.cli.ask import asked_of, readable, run_ask
from drillrank.cli.compare import TRUST_SETTINGS, add_arguments
from drillrank.cli.corpus import cache_folder
from drillrank.cli.demo import DEMO_QUESTION, run_demo
from drillrank.cli.listing import run_components
from drillrank.cli.outline import run_outline
from drillrank.cli.terminal import make_writable, tell
from drillrank.cli.tune import add_tune_arguments
from drillrank.errors import DrillrankError, DrillrankWarning
from drillrank.structure.read import FORMATS

_FOUND, _NOTHING, _BAD_INPUT = 0, 1, 2  # as grep's
_BY_SIGNAL, _CLOSED = 128, 141  # as a shell has it for what ends by a signal, such as SIGPIPE
_STATUS = (
    "Exit status: 0 done, and evidence, an answer or headings were found; 1 nothing matched; 2 the input, or the LLM, "
    "cannot be used; "
    "130 and 143 interrupted; 141 the output was closed early."
)


class _Parser(argparse.ArgumentParser):
    """Shows what it cannot use as everything is shown: no terminal obeys it."""

    def error(self, message: str) -> NoReturn:
        """Ends the command."""
        self.print_usage(sys.stderr)
        tell("red", f"{message:.200}")
        raise SystemExit(_BAD_INPUT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    make_writable()
    signal.signal(signal.SIGTERM, _interrupt)  # so that no copy of a stream stays behind
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED
    except KeyboardInterrupt as stopped:
        return _BY_SIGNAL + int((*stopped.args, signal.SIGINT)[0])
    return status


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt(number)


def _run(arguments: Sequence[str] | None) -> int:
    given = _parsed(arguments)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DrillrankWarning)
        try:
            found = given.run(given)
        except DrillrankError as error:
            tell("red", error)
            return _BAD_INPUT
        finally:
            for warning in caught:
                tell("yellow", warning.message)
    return _NOTHING if found is False else _FOUND


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The arguments. Options of `ask` may stand anywhere; argparse itself would refuse what follows them.

    What a shell makes of `*` must not hold options: an argument that could be both is refused.
    """
    parser = _parser()
    words = list(sys.argv[1:] if arguments is None else arguments)
    for word in takewhile(lambda word: word != "--", words):
        if word.startswith("-") and os.path.lexists(word):
            parser.error(
                f"{word:.100} is an option and the name of a file: put ./ or -- before a file, or go elsewhere"
            )
    given, more = parser.parse_known_args(words)
    at = more.index("--") if "--" in more else len(more)
    options = [word for word in more[:at] if re.match("-.", word) and " " not in word]
    if more and (options or not hasattr(given, "arguments")):
        parser.error(f"unrecognized arguments: {' '.join(more)}")
    if more:
        given.arguments += [*more[:at], *more[at + 1 :]]
    return given


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="drillrank", description="Find the right evidence without any training.", epilog=_STATUS)
    parser.add_argument("--version", action="version", version=f"drillrank {version('drillrank')}")
    commands = parser.add_subparsers(required=True, metavar="{ask,outline,demo,compare,tune,components}")
    ask = commands.add_parser(
        "ask",
        help="find evidence in files and folders",
        usage='drillrank ask [options] [FILE...] "question"\n       drillrank ask [options] --questions FILE [FILE...]',
        epilog=_STATUS,
    )
    ask.add_argument(
        "arguments",
        nargs="*",
        metavar="FILE",
        help=f"files of {FORMATS} (texts in UTF-8, or in UTF-16 with its mark), folders, patterns, or - for standard "
        "input, which is also read where there is none; the question comes last",
    )
    ask.add_argument("--questions", metavar="FILE", help="questions, one on each line; - for standard input")
    ask.add_argument("--model", help='language model, "unigram" by default')
    ask.add_argument(
        "--llm",
        metavar="URL#MODEL",
        help="a served chat model that chooses sections and paragraphs, such as http://localhost:8000/v1#qwen",
    )
    ask.add_argument("--answer", action="store_true", help="have the LLM answer from the evidence, with citations")
    ask.add_argument("--language", help='whose stemmer the unigram model takes, such as german; "english" by default')
    ask.add_argument("--as-of", metavar="DATE", help="leave out files of later, and take that time's version: 2023-06")
    ask.add_argument("--settings", metavar="FILE", help="settings of D3, as `drillrank tune` writes them")
    ask.add_argument("--trust-settings", action="store_true", help=TRUST_SETTINGS)
    ask.add_argument("--top-n", type=int, default=5, help="evidence paragraphs for each question, 5 by default")
    ask.add_argument("--json", action="store_true", help="write JSON Lines, an object for each paragraph and answer")
    ask.add_argument(
        "--explain",
        action="store_true",
        help="say what each word of the question adds to each score, and what was opened, read and left",
    )
    ask.add_argument("--follow-links", action="store_true", help="follow links in folders that lead outside them")
    ask.add_argument("--no-cache", action="store_true", help="neither use nor keep what was read before")
    ask.set_defaults(run=lambda given: run_ask(asked_of(given, None if given.no_cache else cache_folder())))
    outline = commands.add_parser("outline", help="print the sections of a file, with pages where it has them")
    outline.add_argument("file", metavar="FILE", help=f"{FORMATS}; - for standard input")
    outline.set_defaults(run=lambda given: run_outline(given.file))
    demo = commands.add_parser("demo", help="find evidence in the handbook, alone and through both frameworks")
    demo.add_argument("question", nargs="?", type=readable, default=DEMO_QUESTION)
    demo.set_defaults(run=lambda given: run_demo(given.question))
    compared = commands.add_parser("compare", help="say whether components help, on questions whose evidence is known")
    add_arguments(compared)
    tuned = commands.add_parser("tune", help="find settings for questions whose evidence is known, if any are better")
    add_tune_arguments(tuned)
    listed = commands.add_parser("components", help="list the components, or say what there is to set in one")
    listed.add_argument("name", nargs="?", help="a component, such as D3 or UPRRerank")
    listed.set_defaults(run=lambda given: run_components(given.name))
    return parser
