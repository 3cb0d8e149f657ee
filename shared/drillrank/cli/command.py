"""The commands and their options. Each command loads the module that runs it."""

from __future__ import annotations

import os
import re
import traceback
import warnings
from collections.abc import Callable
from functools import reduce
from itertools import takewhile
from typing import Any, TypeVar

import click

from drillrank.cli.terminal import make_streams_writable, print_problem
from drillrank.errors import DrillrankError, DrillrankWarning

Function = TypeVar("Function", bound=Callable[..., Any])
SUCCESS, NOTHING, ERROR = 0, 1, 2  # as of grep
_STATUS = (
    "Exit status: 0 done, and evidence, an answer or headings were found; 1 nothing matched, or the files speak of "
    "other subjects; 2 an error; 130, 143 and 129 interrupted; 141 the output was closed early."
)
_EMBED = (
    "Encoder: st:DIR, onnx:DIR, fastembed:NAME or m2v:DIR, or none. By default, one that is installed with its model."
)
_COMPONENT = 'A drillrank component, a dotted path, or JSON with "component" and settings; UPR by default.'


def run(words: list[str]) -> int:
    """Run a command and return its exit status. Warnings go to standard error, and an error after them."""
    make_streams_writable()
    problem: str | None = None
    is_success: Any = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DrillrankWarning)
        try:
            is_success = _invoke(words)
        except click.exceptions.Exit as end:  # --help, --version
            return end.exit_code
        except click.ClickException as error:
            command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "drillrank"
            problem = f"{error.format_message():.200} Try '{command} --help'."
        except DrillrankError as error:
            problem = str(error)
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            message = f"{type(error).__name__}: {error!s:.300}"
            problem = f"This is a fault of drillrank, at {frame.filename}:{frame.lineno}: {message}"
        finally:
            for warning in caught:
                print_problem("yellow", warning.message)
    if problem is not None:
        print_problem("red", problem)
        return ERROR
    return NOTHING if is_success is False else SUCCESS


def _invoke(words: list[str]) -> Any:
    """Run a command and return its result.

    An argument that is both an option and the name of a file is refused: a shell may have made it from `*`.
    """
    for word in takewhile(lambda word: word != "--", words):
        if word.startswith("-") and os.path.lexists(word):
            advice = "put ./ or -- before a file, or run the command in another folder"
            raise click.UsageError(f"{word:.100} is an option and the name of a file: {advice}.")
    if re.match("-.* ", words[-1] if words else "") and "--" not in words:  # a question
        words = [*words[:-1], "--", words[-1]]
    with commands.make_context("drillrank", words) as context:
        return commands.invoke(context)


def _options(*options: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Return several options as one decorator."""
    return lambda function: reduce(lambda decorated, option: option(decorated), reversed(options), function)


@click.group(epilog=_STATUS, no_args_is_help=False)
@click.version_option(package_name="drillrank", message="drillrank %(version)s")
def commands() -> None:
    """Find the right evidence without any training."""


_trust = click.option(
    "--trust-settings", is_flag=True, help="Allow settings that name folders, addresses, code and keys."
)
_json = click.option("--json", "as_json", is_flag=True, help="Write JSON, one object on a line.")
_finder_options = _options(
    click.option("--model", help='Language model, "unigram" by default.'),
    click.option("--language", help='Language of the stemmer of the unigram model, "english" by default.'),
    click.option("--embed", metavar="KIND:NAME", help=_EMBED),
    click.option(
        "--unit", type=click.Choice(["passage", "paragraph"]), help="Unit of evidence: a passage or one paragraph."
    ),
    click.option(
        "--hops",
        type=click.IntRange(1, 2),
        help="2 follows links, titles and names to other files, 1 does not. By default, where words are left open.",
    ),
    click.option("--preset", type=click.Choice(["paper"]), help="Use the method of the paper as published."),
    click.option("--settings", metavar="FILE", help="Settings of D3, as `drillrank tune` writes them."),
    _trust,
    click.option(
        "--prefix-cache", metavar="SIZE", help="Disk space for what an hf: model computed of passages; 2 GB by default."
    ),
    click.option("--follow-links", is_flag=True, help="Follow links in folders that lead outside them."),
    click.option("--no-cache", is_flag=True, help="Neither use nor write the cache of files that were read."),
)
_comparison_options = _options(
    click.argument("questions"),
    click.argument("corpus", nargs=-1),
    click.option("--first-stage", metavar="PATH", help="A retriever by dotted path; BM25 by default."),
    click.option("--candidates", default=50, show_default=True, help="Candidates for each question."),
    click.option(
        "--dataset",
        type=click.Choice(["qasper", "hotpotqa", "2wikimultihop", "dpr"]),
        help="QUESTIONS is an official file of this dataset, which contains the corpus.",
    ),
    click.option("--n-questions", type=click.IntRange(1), metavar="N", help="Take the first N questions only."),
    click.option(
        "--preset", type=click.Choice(["paper"]), help="Use each component by name as its paper describes it."
    ),
    click.option("--column", "columns", multiple=True, metavar="OURS=THEIRS", help="What the file calls it."),
    click.option("--results", metavar="FILE", help="Keep results in this JSON Lines file, and go on from it."),
    _json,
)


@commands.command(epilog=_STATUS)
@click.argument("words", nargs=-1, metavar='[FILE]... "QUESTION"')
@click.option("--questions", metavar="FILE", help="Questions, one on each line; - for standard input.")
@_finder_options
@click.option("--as-of", metavar="DATE", help="Do not read later files, and use the versions of that time: 2023-06.")
@click.option(
    "--top-n", type=int, help="Most passages for each question; 5 by default, or as many as fit in --max-tokens."
)
@click.option("--max-tokens", type=int, metavar="N", help="Fill a budget of tokens with the best passages.")
@click.option("--include", multiple=True, metavar="PATTERN", help="Read only files that match: '*.md', 'notes/'.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Read no files that match, as in a .gitignore.")
@click.option(
    "--llm",
    metavar="URL#MODEL",
    help="A served chat model that chooses: http://localhost:8000/v1#qwen. Without its answer, the command fails.",
)
@click.option("--answer", "with_answer", is_flag=True, help="Have the LLM answer from the evidence, with citations.")
@click.option(
    "--answer-prompt",
    metavar="FILE",
    help="Prompt of --answer, in place of the built-in one: a text with {contents} and {question}.",
)
@click.option(
    "--precompute",
    is_flag=True,
    help="Let an hf: model compute the 100 best passages of the first stage beforehand.",
)
@click.option("--explain", is_flag=True, help="Show what each word adds to each score, and which sections were read.")
@_json
def ask(**options: Any) -> bool:
    """Find evidence in files and folders.

    Name files, folders and quoted patterns. The question comes last. Files are PDF, DOCX, PPTX, EPUB, Markdown, HTML,
    LaTeX or plain text, among others. - is standard input, which is also read if you name no file.
    """
    from drillrank.cli.ask import run_ask

    return run_ask(**options)


@commands.command(epilog="Exit status: 0 all sentences are supported; 1 one is not; 2 an error.")
@click.argument("answer")
@click.argument("files", nargs=-1, required=True)
@_finder_options
@click.option("--include", multiple=True, metavar="PATTERN", help="Read only files that match: '*.md', 'notes/'.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Read no files that match, as in a .gitignore.")
@_json
def check(**options: Any) -> bool:
    """Check which sentences of an answer files support.

    ANSWER is a text in quotes, a file, or - for standard input. FILES are files, folders and quoted patterns.
    """
    from drillrank.cli.check import run_check

    return run_check(**options)


@commands.command(epilog=_STATUS)
@click.argument("file")
def outline(file: str) -> bool:
    """Print the sections of a file, with their pages.

    A FILE called - is standard input.
    """
    from drillrank.cli.listing import run_outline

    return run_outline(file)


@commands.command()
@_comparison_options
@click.option("--component", "components", multiple=True, metavar="[NAME=]COMPONENT", help=_COMPONENT)
@click.option(
    "--strategies", is_flag=True, help="Compare D3's strategies with the LLM of --llm, as in table 1 of its paper."
)
@click.option("--settings", metavar="FILE", help="Settings of the components, as `drillrank tune` writes them.")
@_trust
@click.option("--measure", "measures", multiple=True, metavar="NAME", help="Several times; the first one decides.")
@click.option("--llm", metavar="URL#MODEL", help="A served chat model that answers from what each component found.")
@click.option("--html", metavar="FILE", help="Write a report that needs no network.")
def compare(**options: Any) -> bool:
    """Say whether components help on your questions.

    QUESTIONS, whose evidence is known, are JSON Lines or CSV: question, and gold, spans or answers (docs/comparing.md).
    CORPUS are files and folders of documents, or tables of passages.
    """
    from drillrank.cli.compare import run_compare

    return run_compare(**options)


@commands.command()
@_comparison_options
@click.option("--component", default="UPR", metavar="COMPONENT", help=_COMPONENT)
@click.option("--measure", metavar="NAME", help="What decides; nDCG@10 by default.")
@click.option(
    "--try", "tried", multiple=True, metavar="SETTING=LIST", help="Other candidates: mu=[30,300]; [] for none."
)
@click.option(
    "--write-instructions",
    metavar="MODEL",
    help="Try instructions of PromptRank that this T5 writes, such as hf:google-t5/t5-base.",
)
@click.option("--n-instructions", default=200, show_default=True, help="Number of instructions that the T5 writes.")
@click.option("--folds", default=10, show_default=True, help="Parts, each measured with what those before choose.")
@click.option(
    "--coverage", type=float, metavar="SHARE", help="Calibrate Coverage(SHARE) of a reranker, and tune nothing."
)
@click.option("--out", metavar="FILE", help="The settings; settings.json by default, or coverage.json.")
def tune(**options: Any) -> None:
    """Find settings for your questions.

    QUESTIONS and CORPUS are as for compare. Settings are better than the defaults by more than noise, or stay.
    """
    from drillrank.cli.compare import run_tune

    run_tune(**options)


@commands.command()
@click.argument("name", required=False)
def components(name: str | None) -> None:
    """List the components, or what one takes.

    NAME is one of them, such as D3 or UPRRerank.
    """
    from drillrank.cli.listing import run_components

    run_components(name)


@commands.command()
def doctor() -> None:
    """Say what is installed, and what is cached."""
    from drillrank.cli.listing import run_doctor

    run_doctor()


@commands.command()
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...")
@_finder_options
@click.option(
    "--http",
    metavar="[HOST:]PORT",
    help="Serve HTTP, by default for this machine only. Clients send the token in DRILLRANK_MCP_TOKEN, if it is set.",
)
def mcp(folders: tuple[str, ...], **options: Any) -> None:
    """Let agents ask about folders (MCP).

    A server of the Model Context Protocol with the tools ask, check, outline and read, on standard input and output.
    `drillrank install-agent` adds it to the agents on this machine.
    """
    from drillrank.cli.mcp import serve

    serve(folders, **options)


@commands.command()
@click.argument("folders", nargs=-1, metavar="FOLDER...")
@click.option(
    "--agent",
    "agents",
    multiple=True,
    type=click.Choice(["claude-desktop", "claude-code", "cursor", "vscode", "windsurf", "codex", "gemini-cli", "zed"]),
    help="Only this agent, even if it is not detected. Can be repeated.",
)
@click.option("--name", default="drillrank", show_default=True, help="Name of the server in the agents.")
@click.option("--remove", is_flag=True, help="Remove the server and the skill.")
@click.option("--skill/--no-skill", "with_skill", default=True, help="Install the skill file, or do not.")
@click.option("--yes", is_flag=True, help="Do not ask before files are changed.")
def install_agent(folders: tuple[str, ...], **options: Any) -> bool:
    """Add drillrank to the agents on this machine.

    Agents then ask about the files in the FOLDERs, with `drillrank mcp`. The changes are shown first. Everything else
    in the configuration files stays as it is.
    """
    from drillrank.cli.agents import run_install_agent

    return run_install_agent(folders, **options)
