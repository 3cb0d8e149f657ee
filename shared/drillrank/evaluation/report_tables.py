"""Tables of a report."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def table(caption: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells of rows are HTML; names and the caption are text."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>' for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
