"""What the stores hold in these tests: written texts in three formats, and papers of QASPER where they are at hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from benchmarks.data import data_folder, read
from drillrank.views import VIEWS

LIGHTHOUSE = """\
# The lighthouse at Kelp Point

Built in 1871 and automated in 1984, the light is kept by volunteers.

## Lamp and lens

The lens is a second-order Fresnel lens of 400 prisms, made in Paris. A mantle lamp burning paraffin stood behind it
until electricity came.

| Year | Source of light | Range |
|------|-----------------|-------|
| 1871 | rape oil        | 18 nm |
| 1903 | paraffin        | 21 nm |
| 1931 | electric bulb   | 24 nm |

## Fog signal

Two bells were followed by a steam siren. Its timing is kept in a file:

```ini
# seconds; this line is no heading
blast = 4
silence = 56
```

## Repairs

### Winter of 1953

A storm broke nine panes of the lantern room and flooded the cellar.

### Winter of 1978

Salt had eaten through the gallery railing, which was replaced by one of bronze.

## See also

- Harbour pilots
"""

BREAD = """\
<!doctype html>
<html><head><title>Sourdough at home</title><style>p { margin: 0 }</style></head>
<body><nav><a href="/">Home</a> | <a href="/shop">Shop</a></nav>
<main>
<h1>Sourdough at home</h1>
<p>Flour, water, salt and <em>time</em>.</p>
<h2>The starter</h2>
<p>Wild yeast and lactic acid bacteria live in the starter. Feed it <b>every</b> day with equal weights of
rye flour &amp; water.</p>
<h2>Kneading and proving</h2>
<ol><li>Knead for ten minutes.</li><li>Let the dough prove overnight in the refrigerator.</li></ol>
<h2>Baking</h2>
<p>Bake in a covered cast-iron pot at 250 &deg;C; take the lid off after 25 minutes, so that the crust
browns.</p>
<table><caption>Loss of weight</caption><tr><th>Minutes</th><th>Grams</th></tr><tr><td>25</td><td>60</td></tr></table>
</main>
<script>track("<h2>not a heading</h2>")</script>
</body></html>
"""

GLACIER = r"""\documentclass{article}
\title{Measuring a glacier}
\begin{document}
\maketitle
\begin{abstract}
We measured the retreat of a small alpine glacier for nine summers.
\end{abstract}
\section{Instruments}
Stakes were drilled into the ice with a steam drill. % \section{not a heading}
A drone took photographs of the tongue.
\subsection{Calibration}
The barometer drifted by $0.3$ hPa a month and was compared with that of the valley station.
\section{Results}
\begin{itemize}
\item The tongue retreated by 14 metres a year.
\item Ablation was strongest on the south-facing side.
\end{itemize}
\begin{verbatim}
\section{also not a heading}
\end{verbatim}
\appendix
\section{Stake positions}
Stake 7 was lost in a crevasse.
\end{document}
"""


@dataclass(frozen=True)
class Source:
    """A document, a question that one of its sections answers, and that section's path."""

    id: str
    name: str
    text: str
    question: str
    answer: str


WRITTEN = [
    Source(
        "light",
        "lighthouse.md",
        LIGHTHOUSE,
        "What did the storm break in the lantern room?",
        "The lighthouse at Kelp Point > Repairs > Winter of 1953",
    ),
    Source(
        "bread", "bread.html", BREAD, "How often is the starter fed with rye flour?", "Sourdough at home > The starter"
    ),
    Source(
        "ice",
        "glacier.tex",
        GLACIER,
        "With what was the drifting barometer compared?",
        "Measuring a glacier > Instruments > Calibration",
    ),
]


def papers(count: int) -> list[Source]:
    """The first papers of QASPER with a question whose evidence is in one section; none without the data."""
    if not (data_folder() / "longdoc" / "qasper_tune.jsonl.gz").exists():
        return []
    found = []
    for paper in read("longdoc/qasper_tune")[:count]:
        evidence = [
            (question["question"], places)
            for question in paper["questions"]
            for places in question["evidence"]
            if len({section for section, _ in places}) == 1
        ]
        if evidence:
            question, places = evidence[0]
            path = " > ".join([paper["title"], *paper["sections"][places[0][0]]["path"]])
            found.append(Source(paper["id"], f"{paper['id']}.md", paper["markdown"], question, path))
    return found


def changed(source: Source) -> Source:
    """The lighthouse a year later: two sections gone, one rewritten, one new, and all that follows moved."""
    text = source.text[: source.text.index("## Lamp")] + source.text[source.text.index("## Fog") :]
    for old, new in (
        ("Two bells were followed by a steam siren.", "A horn that runs on compressed air sounds since last year."),
        ("### Winter of 1953\n\nA storm broke nine panes of the lantern room and flooded the cellar.\n\n", ""),
        ("## See also", "## Visiting\n\nThe tower is open on Sundays from May to September.\n\n## See also"),
    ):
        assert old in text
        text = text.replace(old, new)
    return replace(source, text=text)


def writers(count: int) -> list[list[Source]]:
    """A list of documents for each of several writers, no document twice."""
    return [
        [
            replace(source, id=f"{source.id}-{number}", text=source.text.replace("1984", str(1984 + number)))
            for source in WRITTEN
        ]
        for number in range(count)
    ]


def check_matched(entry: str, k: int) -> None:
    """Views and ranks as in `raw:2 summary:1`."""
    ranks = dict(part.split(":") for part in entry.split(" "))
    assert ranks
    assert set(ranks) <= set(VIEWS)
    assert all(1 <= int(rank) <= k for rank in ranks.values())


def once(entries: list[tuple[str, str]]) -> set[tuple[str, str]]:
    """The entries as a set, after making sure that no id and no entry is there twice."""
    assert [id_ for id_, count in Counter(id_ for id_, _ in entries).items() if count > 1] == []
    return set(entries)
