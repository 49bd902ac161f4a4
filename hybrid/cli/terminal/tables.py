"""Lists and objects as lines for a terminal: tables whose columns fit, records, nested objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from hybrid.cli.cells import CellKind, Row, View, printable
from hybrid.cli.terminal.fitting import GAP, Measured, fit, unbounded
from hybrid.cli.terminal.readable import NOT_OK, colour_of, kind_of, readable
from hybrid.cli.terminal.screen import Screen
from hybrid.runtime.text_table import is_numeric

_INDENT = 4
_NESTED = 2
_QUIET = "dim"
_VALUE_MIN = 24  # narrower values go below their names


@dataclass(frozen=True)
class TerminalColumn:
    """A column of a table on a terminal; `right` aligns its cells, as numbers are."""

    name: str
    kind: CellKind
    right: bool


def table_lines(rows: Sequence[Row], view: View, screen: Screen, *, wide: bool = False) -> Iterator[Text]:
    """The lines of a table in the form that fits; with `wide` every column and no line is broken."""
    names = [*view.columns, *view.more, *view.notes]
    kinds = view.kinds if view.kinds is not None else {name: kind_of(name) for name in names}
    yield from _table([_column(rows, name, kinds) for name in names], rows, view, screen, wide)


def object_lines(row: Row, names: Sequence[str], screen: Screen, *, wide: bool = False) -> Iterator[Text]:
    """An object: a line per value, longer ones wrapped beside their name, nested ones indented below it."""
    yield from _object(row, names, kind_of, screen, wide=wide)


def _column(rows: Sequence[Row], name: str, kinds: Mapping[str, CellKind]) -> TerminalColumn:
    return TerminalColumn(name, kinds.get(name, CellKind.PLAIN), is_numeric([row.get(name) for row in rows]))


def _table(
    columns: list[TerminalColumn], rows: Sequence[Row], view: View, screen: Screen, wide: bool
) -> Iterator[Text]:
    by_name = {column.name: column for column in columns}
    shown = [{column.name: readable(row.get(column.name), column.kind) for column in columns} for row in rows]
    sentences = [_take_sentences(cells, columns) for cells in shown]
    measured = [_measured(column, shown) for column in columns if column.name not in view.notes]
    found = (
        unbounded(measured) if wide else fit(measured, screen.width, drop=view.drop, below=view.below, more=view.more)
    )
    if found.as_records:
        yield from _records(rows, view, by_name, screen)
        return
    beside = [by_name[name] for name in found.widths]
    yield from _head(beside, found.widths)
    for cells, states in zip(shown, sentences, strict=True):
        yield from _row(beside, cells, found.widths, screen)
        below = {name: cells[name] for name in (*found.below, *view.notes) if cells[name]}
        yield from _below({**states, **below}, by_name, screen, wide)
    if found.dropped:
        note = Text(f"Not shown at this width: {', '.join(found.dropped)}. --wide shows all.", _QUIET)
        yield from screen.wrapped(note, screen.width)


def _take_sentences(cells: dict[str, str], columns: Sequence[TerminalColumn]) -> dict[str, str]:
    """The states that are sentences, by column: they go below the row, and their cells say that something is wrong."""
    found = {column.name: cells[column.name] for column in columns if column.kind is CellKind.STATE}
    found = {name: state for name, state in found.items() if " " in state}
    cells.update(dict.fromkeys(found, NOT_OK))
    return found


def _measured(column: TerminalColumn, shown: Sequence[Mapping[str, str]]) -> Measured:
    cells = max((cell_len(cells[column.name]) for cells in shown), default=0)
    words = column.name.split("_")
    can_wrap = column.kind in (CellKind.PLAIN, CellKind.PROSE) and not column.right
    name_width, broken_width = cell_len(column.name), max(map(cell_len, words))
    return Measured(column.name, cells, name_width, broken_width, column.kind is CellKind.PROSE, can_wrap)


def _head(columns: Sequence[TerminalColumn], widths: Mapping[str, int]) -> Iterator[Text]:
    """The names, on as many lines as the narrowest needs, and a rule."""
    names = [_broken(column.name, widths[column.name]) for column in columns]
    height = max(map(len, names), default=0)
    for line in range(height):
        parts = [[*[""] * (height - len(name)), *name][line] for name in names]
        yield _joined([Text(printable(part), "bold") for part in parts], columns, widths)
    if columns:
        yield _joined([Text("-" * widths[column.name], _QUIET) for column in columns], columns, widths)


def _broken(name: str, width: int) -> list[str]:
    """A column's name on lines of at most `width`, broken at its underscores, else anywhere."""
    lines = [""]
    for part in name.split("_") if cell_len(name) > width else [name]:
        joined = f"{lines[-1]}_{part}" if lines[-1] else part
        if cell_len(joined) <= width:
            lines[-1] = joined
        else:
            lines += [part[at : at + width] for at in range(0, len(part), width)]
    return [line for line in lines if line] or [""]


def _row(
    columns: Sequence[TerminalColumn], cells: Mapping[str, str], widths: Mapping[str, int], screen: Screen
) -> Iterator[Text]:
    styled = [_styled(cells[column.name], column.kind) for column in columns]
    if all(cell_len(text.plain) <= widths[column.name] for text, column in zip(styled, columns, strict=True)):
        yield _joined(styled, columns, widths)
        return
    wrapped = [screen.wrapped(text, widths[column.name]) for text, column in zip(styled, columns, strict=True)]
    for line in range(max(map(len, wrapped))):
        parts = [texts[line] if line < len(texts) else Text() for texts in wrapped]
        yield _joined(parts, columns, widths)


def _styled(cell: str, kind: CellKind) -> Text:
    return Text(cell, colour_of(cell) if kind is CellKind.STATE else "")


def _joined(parts: Sequence[Text], columns: Sequence[TerminalColumn], widths: Mapping[str, int]) -> Text:
    line = Text()
    for part, column in zip(parts, columns, strict=True):
        space = " " * max(0, widths[column.name] - cell_len(part.plain))
        line.append(space).append_text(part) if column.right else line.append_text(part).append(space)
        line.append(" " * GAP)
    line.rstrip()
    return line


def _below(
    values: Mapping[str, str], columns: Mapping[str, TerminalColumn], screen: Screen, wide: bool
) -> Iterator[Text]:
    """What is below a row: a label and its text, which wraps beside it."""
    label_width = max(map(cell_len, values), default=0)
    for name, value in values.items():
        keeps = wide or _is_command(columns[name].kind, value)
        yield from _labelled(name, _styled(value, columns[name].kind), label_width, screen, _INDENT, keeps)


def _is_command(kind: CellKind, value: str) -> bool:
    """Whether a value is copied to a command line, so that its line is not broken."""
    return kind is CellKind.COMMAND and value.startswith("hybrid ")


def _labelled(name: str, value: Text, label_width: int, screen: Screen, indent: int, keeps: bool) -> Iterator[Text]:
    """A name and its value. `keeps`: the value is one line, however long."""
    label = Text(" " * indent + printable(name), _QUIET)
    room = screen.width - indent - label_width - GAP
    if room < _VALUE_MIN and not keeps and cell_len(value.plain) > room:
        yield label
        margin = Text(" " * (indent + GAP))
        yield from (margin + part for part in screen.wrapped(value, screen.width - indent - GAP))
        return
    label.append(" " * (label_width - cell_len(name) + GAP))
    for part in [value] if keeps else screen.wrapped(value, room):
        line = label + part
        line.rstrip()
        yield line
        label = Text(" " * cell_len(label.plain))


def _records(rows: Sequence[Row], view: View, columns: Mapping[str, TerminalColumn], screen: Screen) -> Iterator[Text]:
    for number, row in enumerate(rows):
        if number:
            yield Text()
        names = [*view.columns, *(name for name in view.notes if row.get(name) is not None)]
        yield from _object(row, names, lambda name: columns[name].kind if name in columns else CellKind.PLAIN, screen)


def _object(
    row: Row,
    names: Sequence[str],
    kind_by_name: Callable[[str], CellKind],
    screen: Screen,
    *,
    wide: bool = False,
    indent: int = 0,
) -> Iterator[Text]:
    label_width = max((cell_len(name) for name in names), default=0)
    for name in names:
        nested = _nested(row.get(name))
        if nested:
            yield Text(" " * indent + printable(name), _QUIET)
            for number, item in enumerate(nested):
                if number:
                    yield Text()
                yield from _object(item, list(item), kind_by_name, screen, wide=wide, indent=indent + _NESTED)
            continue
        kind = kind_by_name(name)
        shown = readable(row.get(name) if row.get(name) != {} else None, kind)  # as an empty list is
        keeps = wide or _is_command(kind, shown)
        yield from _labelled(name, _styled(shown, kind), label_width, screen, indent, keeps)


def _nested(value: object) -> list[Row]:
    """The objects that a value consists of; none for a plain value."""
    items = [value] if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else []
    return [item for item in items if item] if all(isinstance(item, Mapping) for item in items) else []
