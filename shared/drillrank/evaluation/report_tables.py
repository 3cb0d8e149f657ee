"""Tables of a report: plain ones, whose columns a script on the page makes sortable by click and by keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

# A column of numbers is sorted as such, an interval by its lower end; what is not known stays last in both directions.
SORTING = """
for (const table of document.querySelectorAll("main > .scroll > table")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const turn = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", turn > 0 ? "ascending" : "descending");
      const texts = new Map([...body.rows].map(row => [row, row.cells[column].textContent]));
      const known = row => !["–", "nan"].includes(texts.get(row));
      const number = row =>
        Number((/^[+-]?[\\d,]+(\\.\\d+)?(?=$|%$| to )/.exec(texts.get(row)) ?? ["x"])[0].replaceAll(",", ""));
      const numeric = [...body.rows].every(row => !known(row) || !isNaN(number(row)));
      const compared = (a, b) => numeric ? number(a) - number(b)
        : texts.get(a).localeCompare(texts.get(b), undefined, {numeric: true});
      body.append(...[...body.rows].sort((a, b) =>
        known(a) && known(b) ? turn * compared(a, b) : known(b) - known(a)));
    });
  });
}
"""


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
