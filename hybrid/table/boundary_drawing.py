"""A boundary as a small SVG for notebooks: both halves along time, and which rows of each a query sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hybrid.runtime.text_table import escaped

_WIDTH, _LANE_LEFT, _DIVIDER, _LANE_RIGHT = 640, 80, 360, 630
_LANE_HEIGHT, _OFFLINE_TOP, _REALTIME_TOP = 22, 24, 54
_LINE_HEIGHT, _FIRST_LINE = 14, 94
_PARTITIONS_MAX = 8
_VISIBLE, _HIDDEN = "#4c8c6b", "#e4e7ea"


def boundary_svg(
    limit: str | None,
    frontier: Mapping[str, int],
    set_by: str,
    *,
    hides_offline: bool = False,
    time_alone: bool = False,
) -> str:
    """The drawing. `limit` is the time between the halves as text (None: OFFLINE covers no time).

    `frontier` has offsets by partition. `hides_offline`: offline rows from the limit on are hidden. `time_alone`:
    offsets do not count.
    """
    lines = list(_frontier_lines(frontier))
    height = _FIRST_LINE + _LINE_HEIGHT * len(lines)
    before = "visible" if limit is None else "hidden" if time_alone else "from the frontier on"
    words = f"{limit or 'OFFLINE covers no time'} ({set_by})"
    parts = [
        _text(_DIVIDER, 14, words, anchor="middle"),
        _text(0, _OFFLINE_TOP + 15, "OFFLINE"),
        _lane(_LANE_LEFT, _DIVIDER, _OFFLINE_TOP, "visible", is_visible=True),
        _lane(
            _DIVIDER, _LANE_RIGHT, _OFFLINE_TOP, "hidden" if hides_offline else "visible", is_visible=not hides_offline
        ),
        _text(0, _REALTIME_TOP + 15, "REALTIME"),
        _lane(_LANE_LEFT, _DIVIDER, _REALTIME_TOP, before, is_visible=limit is None),
        _lane(_DIVIDER, _LANE_RIGHT, _REALTIME_TOP, "visible", is_visible=True),
        f'<line x1="{_DIVIDER}" x2="{_DIVIDER}" y1="18" y2="80" stroke="#b03a2e" stroke-width="2"/>',
        *(_text(0, _FIRST_LINE + _LINE_HEIGHT * at, line) for at, line in enumerate(lines)),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        f'font-family="sans-serif" font-size="12" role="img" data-testid="boundary">{"".join(parts)}</svg>'
    )


def _frontier_lines(frontier: Mapping[str, int]) -> Iterator[str]:
    entries = sorted(frontier.items())
    for key, offset in entries[:_PARTITIONS_MAX]:
        yield f"frontier of {key}: {offset}"
    if len(entries) > _PARTITIONS_MAX:
        yield f"and {len(entries) - _PARTITIONS_MAX} more partitions"


def _lane(left: int, right: int, top: int, content: str, *, is_visible: bool) -> str:
    fill, colour = (_VISIBLE, "#ffffff") if is_visible else (_HIDDEN, "#333333")
    box = f'<rect x="{left}" y="{top}" width="{right - left}" height="{_LANE_HEIGHT}" fill="{fill}"/>'
    return box + _text((left + right) // 2, top + 15, content, anchor="middle", fill=colour)


def _text(x: int, y: int, content: str, *, anchor: str = "start", fill: str = "#777777") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{fill}">{escaped(content)}</text>'
