"""Questions to a folder of README, NEWS and licence files: what comes first, up to 3,600 characters, holds the answer.

The files are those of the Python packages that the development extras install; a package that is not there is left out
with its questions. Compared are the views in memory, D3, and BM25 and the likelihood over chunks of 100 tokens, up to
1,200, 3,600 and 6,000 characters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata

from rich.console import Console
from rich.table import Table

from drillrank import D3, UPR, Passage
from drillrank.structure import Document, parse_document
from drillrank.vectors import BM25Index, top
from drillrank.views import Chunker, MultiViewChunker, MultiViewIndex

LIMIT = 3600  # characters
LIMITS = (1200, LIMIT, 6000)
PACKAGES = (  # noqa: SIM905  # shorter than a list
    "annotated-types attrs bm25s charset-normalizer dataclasses-json frozenlist h11 narwhals orjson pathspec propcache "
    "psutil pydantic pytest-benchmark regex rich ruff scikit-learn sentence-transformers sortedcontainers syrupy "
    "threadpoolctl tokenizers tqdm transformers typer wcwidth xxhash yarl"
).split()
LICENCES = {
    "orjson": "LICENSE-MPL-2.0",
    "regex": "LICENSE.txt",
    "transformers": "LICENSE",
    "scikit-learn": "COPYING",
    "tqdm": "LICENCE",
    "pydantic": "LICENSE",
    "psutil": "LICENSE",
    "yarl": "NOTICE",
    "xxhash": "LICENSE",
}
# What is asked, the package that knows, and how its files say it, in one or more ways; white space does not count.
QUESTIONS = (
    (
        "Is the order of keys that occur twice predictable when a JSON object is sorted?",
        "orjson",
        "the sort is unstable",
    ),
    ("How do I switch a progress bar off when the output is no terminal?", "tqdm", "disable on non-TTY"),
    (
        "How can I keep BLAS to one thread inside of a parallel loop of OpenMP?",
        "threadpoolctl",
        '`limits="sequential_blas_under_openmp"` since',
    ),
    ("What is the width of a string with control characters in it?", "wcwidth", "return -1 when C0 and C1"),
    ("How large may the seed of the 32 bit hash be?", "xxhash", "xxh32 takes an unsigned 32-bit integer as seed"),
    (
        "Which flag makes approximate matching look for the best match rather than the next?",
        "regex",
        "search for the best match instead of the next match",
    ),
    ("Does the HTTP library open sockets itself?", "h11", "h11 contains no IO code"),
    ("Load a BM25 index without reading all of it into memory", "bm25s", "mmap=True"),
    ("How many rules does the Python linter support?", "ruff", "supports over 900 lint rules"),
    ("How many colors does the old Windows terminal show?", "rich", "classic terminal is limited to 16 colors"),
    ("Which Python interpreters does the process monitoring library run on?", "psutil", "Python versions are cPython"),
    (
        "What became of the slim version of the command line library?",
        "typer",
        "There used to be a slimmed-down version",
    ),
    ("How is a pattern of ignored files negated?", "pathspec", "negated by prefixing with exclamation mark"),
    ("Update the expected results that a test compares with", "syrupy", "pytest --snapshot-update"),
    ("Be warned of snapshots that no test uses, without failing", "syrupy", "Prints a warning on unused snapshots"),
    ("Encode field names of a dataclass in camel case", "dataclasses-json", "LetterCase.CAMEL"),
    ("How long does it take to tokenise a gigabyte of text?", "tokenizers", "less than 20 seconds to tokenize a GB"),
    ("Are the bounds of the length of a list inclusive?", "annotated-types", "lower and upper bounds are inclusive"),
    ("Which release no longer runs on Python 3.8?", "pydantic", "Remove Python 3.8 Support"),
    (
        "Are benchmarks run when the tests are distributed over processes?",
        "pytest-benchmark",
        "xdist`` is active|when xdist is on|if xdist is enabled by design",
    ),
    (
        "May covered software be combined with other code and distributed under other terms?",
        "orjson",
        "You may create and distribute a Larger Work under terms of Your choice",
    ),
    (
        "When does a patent license end because of litigation?",
        "transformers",
        "shall terminate as of the date such litigation is filed",
    ),
    (
        "May the name of the copyright holder be used to endorse products made from machine learning software?",
        "scikit-learn",
        "may be used to endorse or promote products",
    ),
)


def main() -> None:
    files = folder()
    asked = [question for question in QUESTIONS if any(name.startswith(f"{question[1]}/") for name in files)]
    if len(files) < 20 or len(asked) < 15:
        Console().print("Too few of the packages with these files are installed: nothing is asked.")
        return
    for question, package, answer in asked:
        texts = [document.text for name, document in files.items() if name.startswith(f"{package}/")]
        if not _holds(texts, answer, None):
            Console().print(f"The files of {package} no longer say {answer!r}: {question}")
    upr = UPR()
    texts = [chunk.text for document in files.values() for chunk in Chunker("fixed", 100)(document)]
    passages, bm25 = [Passage(text, id=str(number)) for number, text in enumerate(texts)], BM25Index(texts)
    [*views] = (chunk for of in MultiViewChunker().chunks(list(files.items())) for chunk in of)
    raw, index = {chunk.id: chunk.text for chunk in views if chunk.view == "raw"}, MultiViewIndex(views)
    methods: dict[str, Callable[[str], list[str]]] = {
        "three views": lambda question: [raw[hit.section_id] for hit in index.search(question, 40)],
        "D3, paragraphs": _drill_down(files, "paragraph"),
        "D3, passages": _drill_down(files, "passage"),
        "UPR, fixed 100": lambda question: [item.passage.text for item in upr.rank(question, passages, 60)],
        "BM25, fixed 100": lambda question: [texts[place] for place in top(bm25.scores(question), 60)],
    }
    table = Table("method", *(f"within {limit:,}" for limit in LIMITS), title=f"Of {len(asked)} questions")
    for name, method in methods.items():
        found = [(method(question), answer) for question, _, answer in asked]
        table.add_row(name, *(str(sum(_holds(read, answer, limit) for read, answer in found)) for limit in LIMITS))
    Console(width=140).print(table)


def _drill_down(files: dict[str, Document], unit: str) -> Callable[[str], list[str]]:
    d3 = D3(settings={"unit": unit})
    prepared = d3.prepare(list(files.values()), list(files))
    return lambda question: [ranked.passage.text for ranked in d3.retrieve(question, prepared, 60)]


def folder() -> dict[str, Document]:
    """README and licence files by `package/name`, in the order of the names."""
    files = {}
    for package in PACKAGES:
        try:
            known = metadata.distribution(package)
        except metadata.PackageNotFoundError:
            continue
        about = known.metadata
        text = about.get("Description") or str(about.get_payload())  # type: ignore[attr-defined]  # an email message
        format = "markdown" if "markdown" in about.get("Description-Content-Type", "") else "auto"
        files[f"{package}/README"] = parse_document(text, format)
        for file in known.files or ():
            if ".dist-info" in str(file) and file.name == LICENCES.get(package):
                files[f"{package}/{file.name}"] = parse_document(file.read_text(encoding="utf-8"), "auto")
    return files


def _holds(texts: Sequence[str], answer: str, limit: int | None = LIMIT) -> bool:
    read = _plain("\n".join(texts)[:limit])
    return any(_plain(way) in read for way in answer.split("|"))


def _plain(text: str) -> str:
    return " ".join(text.split())
