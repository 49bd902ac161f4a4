"""Values as text, and rows as a table of plain text or HTML: for the command line, `print` and notebooks."""

from __future__ import annotations

import html
import json
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal

from hybrid.runtime.json_values import json_value

# C0 and C1 controls move the cursor and start sequences; bidirectional ones show a text in another order than it has.
_BIDIRECTIONAL = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
CONTROL = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))},
    **{code: f"\\u{code:04x}" for code in _BIDIRECTIONAL},
    **{9: "\\t", 10: "\\n", 13: "\\r"},
}
_GAP = "  "


def text(value: object) -> str:
    """A value in a table or CSV cell: None is empty, bytes are hex, times ISO 8601, a float its shortest decimal."""
    match json_value(value):
        case None:
            return ""
        case bool() as flag:
            return "true" if flag else "false"
        case dict() | list() as nested:
            return json.dumps(nested, ensure_ascii=False)
        case plain:
            return str(plain)


def printable(text: str) -> str:
    """A text as one line that is safe for a terminal: control characters are escaped."""
    return text.translate(CONTROL)


def table_lines(names: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """The lines of a table: names, a rule, and a line per row with numbers to the right. No lines without columns."""
    cells = [[printable(text(value)) for value in row] for row in rows]
    widths = [max([width(name), *(width(line[at]) for line in cells)]) for at, name in enumerate(names)]
    right = [is_numeric([row[at] for row in rows]) for at in range(len(names))]
    for line in [names, ["-" * wide for wide in widths], *cells] if names else []:
        shown = zip(line, widths, right, strict=True)
        yield _GAP.join(padded(cell, wide, at) for cell, wide, at in shown).rstrip()


def html_table(names: Sequence[str], rows: Sequence[Sequence[object]], note: str = "") -> str:
    """A table in HTML, with a note below it. Every value is escaped."""
    right = [is_numeric([row[at] for row in rows]) for at in range(len(names))]
    sides = ["right" if is_right else "left" for is_right in right]
    head = "".join(_cell("th", name, side) for name, side in zip(names, sides, strict=True))
    lines = "".join(
        f"<tr>{''.join(_cell('td', text(value), side) for value, side in zip(row, sides, strict=True))}</tr>"
        for row in rows
    )
    below = f"<p>{escaped(note)}</p>" if note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>{below}"


def escaped(text: str) -> str:
    """A text for HTML, also inside an attribute: no markup of its own, control characters are visible."""
    return html.escape(printable(text))


def is_numeric(values: Sequence[object]) -> bool:
    """Whether a column holds numbers, and at least one."""
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in present
    )


def padded(cell: str, wide: int, right: bool = False) -> str:
    """A cell with blanks up to a width, before it where it is aligned to the right."""
    space = " " * max(0, wide - width(cell))
    return space + cell if right else cell + space


def width(cell: str) -> int:
    """Columns on a terminal: East Asian wide characters take two."""
    if cell.isascii():
        return len(cell)
    return sum(
        2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in cell if not unicodedata.combining(char)
    )


def _cell(tag: str, content: str, side: str) -> str:
    return f'<{tag} style="text-align:{side}">{escaped(content)}</{tag}>'
