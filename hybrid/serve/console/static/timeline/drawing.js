// Draws a timeline as SVG. Positions come from the window; colours and patterns from console.css.

import { svgElement } from "../dom.js";
import { STATES, rowLabel } from "./marks.js";
import { countText, momentText, ticks } from "./scale.js";

export const LEFT = 96, RIGHT = 16;
const TOP = 30, AXIS = 26, OFFLINE = 96, GAP = 34, ROW = 24, TAIL = 22;
const NARROW = 620, NARROW_LEFT = 60;
const GLYPH_MIN = 13, BAR_MIN = 4;
// Marks are made for a wider window than is seen, by this share on each side, and moved within it.
const MARGIN = 0.5;
const STRETCH_MAX = Math.log(1.25);
// What marks look like besides the window: where one of these is another, they are made again.
const KEYS = ["model", "marks", "unit", "highest"];

/** The geometry of a model on a width: where lanes are, and how times become positions. */
export function geometry(model, view, width) {
  const left = width < NARROW ? NARROW_LEFT : LEFT;
  const rows = Math.max(model.realtime.length, 1);
  const rowHeight = rows > 12 ? 16 : ROW;
  const realtimeTop = TOP + OFFLINE + GAP;
  const inner = Math.max(width - left - RIGHT, 50);
  const perMs = inner / (view.end - view.start);
  return {
    left, width, inner, rowHeight, realtimeTop,
    offlineTop: TOP, offlineHeight: OFFLINE,
    realtimeHeight: rows * rowHeight,
    height: realtimeTop + rows * rowHeight + AXIS + 8,
    axisTop: realtimeTop + rows * rowHeight + 6,
    x: (at) => left + (at - view.start) * perMs,
    at: (x) => view.start + (x - left) / perMs,
    perMs,
  };
}

/** Patterns, so that no state is told by colour alone. */
function patterns() {
  const defs = svgElement("defs");
  const corrected = svgElement("pattern", { id: "tl-corrected", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  corrected.append(svgElement("rect", { width: 6, height: 6, class: "tl-p-back" }), svgElement("rect", { width: 2, height: 6, class: "tl-p-line" }));
  const failed = svgElement("pattern", { id: "tl-failed", width: 8, height: 8, patternUnits: "userSpaceOnUse" });
  failed.append(svgElement("rect", { width: 8, height: 8, class: "tl-f-back" }), svgElement("path", { d: "M1 1l6 6M7 1l-6 6", class: "tl-f-line" }));
  const running = svgElement("pattern", { id: "tl-running", width: 12, height: 12, patternUnits: "userSpaceOnUse", patternTransform: "rotate(-45)" });
  running.append(svgElement("rect", { width: 12, height: 12, class: "tl-r-back" }), svgElement("rect", { width: 6, height: 12, class: "tl-r-line" }));
  const tail = svgElement("pattern", { id: "tl-tail", width: 5, height: 5, patternUnits: "userSpaceOnUse" });
  tail.append(svgElement("circle", { cx: 1.5, cy: 1.5, r: 1.2, class: "tl-t-dot" }));
  defs.append(corrected, failed, running, tail);
  return defs;
}

/** Draws into an SVG. While only the window changes, marks are moved and stretched a little instead of made again. */
export class Drawing {
  constructor(svg) {
    this.svg = svg;
    this.drawn = null;
  }

  /** The next time everything is made again, at its exact scale. */
  forget() {
    this.drawn = null;
  }

  /** `state`: {model, marks, view, unit, selection, focus}. Returns the geometry. */
  draw(state, width) {
    const place = geometry(state.model, state.view, width);
    if (!this.move(state, place)) this.make(state, place);
    const { view } = state;
    this.drawn.still.replaceChildren(axis(view, place), boundary(state, place), selection(state, place), focusRing(state, place));
    this.drawn.grid.replaceChildren(...gridLines(view, place));
    return place;
  }

  /** Moves the marks to another window; false where they have to be made for it. */
  move(state, place) {
    const { drawn } = this;
    if (drawn === null || drawn.width !== place.width || KEYS.some((key) => drawn.state[key] !== state[key])) return false;
    const { view } = drawn.state;
    const stretch = place.perMs / drawn.perMs;
    const more = (view.end - view.start) * MARGIN;
    if (Math.abs(Math.log(stretch)) > STRETCH_MAX || state.view.start < view.start - more || state.view.end > view.end + more) return false;
    const by = place.left * (1 - stretch) + (view.start - state.view.start) * place.perMs;
    drawn.moving.setAttribute("transform", `matrix(${stretch} 0 0 1 ${by} 0)`);
    return true;
  }

  make(state, place) {
    this.svg.setAttribute("viewBox", `0 0 ${place.width} ${place.height}`);
    this.svg.setAttribute("width", place.width);
    this.svg.setAttribute("height", place.height);
    const clip = svgElement("clipPath", { id: "tl-clip" });
    clip.append(svgElement("rect", { x: place.left, y: 0, width: place.inner, height: place.height }));
    const defs = patterns();
    defs.append(clip);
    const grid = svgElement("g", { class: "tl-grid" });
    const moving = svgElement("g");
    moving.append(offline(state, place), realtime(state, place));
    const clipped = svgElement("g", { "clip-path": "url(#tl-clip)" });
    clipped.append(lanes(place), grid, moving);
    const labels = svgElement("g", { class: "tl-labels" });
    laneLabels(labels, state, place);
    const still = svgElement("g");
    this.svg.replaceChildren(defs, labels, clipped, still);
    this.drawn = { state: { ...state }, width: place.width, perMs: place.perMs, grid, moving, still };
  }
}

function lanes(place) {
  const group = svgElement("g", { class: "tl-lanes" });
  group.append(
    svgElement("rect", { x: place.left, y: place.offlineTop, width: place.inner, height: place.offlineHeight, class: "tl-lane", "data-testid": "lane-offline" }),
    svgElement("rect", { x: place.left, y: place.realtimeTop, width: place.inner, height: place.realtimeHeight, class: "tl-lane", "data-testid": "lane-realtime" }),
  );
  return group;
}

function laneLabels(group, state, place) {
  const short = place.left < LEFT;
  group.append(
    svgElement("text", { x: 0, y: place.offlineTop + 14, class: "tl-name" }, "OFFLINE"),
    svgElement("text", { x: place.left, y: place.realtimeTop - 10, class: "tl-name" }, "REALTIME"),
  );
  state.model.realtime.forEach((row, number) => {
    const text = rowLabel(row.partitions);
    const y = place.realtimeTop + (number + 0.5) * place.rowHeight + 4;
    if (place.rowHeight >= ROW || number % 2 === 0) group.append(svgElement("text", { x: 0, y, class: "tl-row" }, short ? text.slice(0, 7) : `partition ${text}`.slice(-15)));
  });
}

function gridLines(view, place) {
  return ticks(view.start, view.end, place.inner).map(({ at, isDay }) => {
    const x = Math.round(place.x(at)) + 0.5;
    return svgElement("line", { x1: x, x2: x, y1: place.offlineTop, y2: place.realtimeTop + place.realtimeHeight, class: isDay ? "tl-day" : null });
  });
}

function axis(view, place) {
  const group = svgElement("g", { class: "tl-axis" });
  let free = place.left - 40;
  for (const { at, text, isDay } of ticks(view.start, view.end, place.inner)) {
    const x = place.x(at);
    const half = text.length * 3.4;
    if (x - half < free || x + half > place.width) continue;
    free = x + half + 12;
    group.append(svgElement("text", { x, y: place.axisTop + 14, class: isDay ? "tl-tick tl-tick-day" : "tl-tick" }, text));
  }
  group.append(svgElement("rect", { x: place.left, y: place.axisTop - 4, width: place.inner, height: AXIS, class: "tl-axis-hold", "data-part": "axis" }));
  return group;
}

/** The box of a mark. */
export function boxOf(mark, state, place) {
  const x = place.x(mark.start_ms);
  if (mark.lane === "offline") {
    const width = Math.max(place.x(mark.end_ms) - x - (place.x(mark.end_ms) - x > 4 ? 1.5 : 0), 1.5);
    const value = mark[state.unit];
    // By the square root: small buckets stay visible beside large ones.
    const share = value > 0 ? Math.sqrt(value / state.highest) : mark.state === "present" || mark.state === "corrected" ? 0 : 1;
    const height = Math.max(BAR_MIN, share * (place.offlineHeight - 8));
    const full = mark.state === "missing" && !value;
    const shown = full ? place.offlineHeight - 8 : height;
    return { x, y: place.offlineTop + place.offlineHeight - shown, width, height: shown };
  }
  const inset = place.rowHeight > 20 ? 4 : 2;
  const y = place.realtimeTop + mark.row * place.rowHeight + inset;
  const height = place.rowHeight - 2 * inset;
  if (mark.state === "tail") return { x: x + 3 - TAIL, y, width: TAIL, height }; // over the end of the newest segment
  return { x, y, width: Math.max(place.x(mark.end_ms) - x, 6), height };
}

function isNear(box, place) {
  const more = place.inner * MARGIN;
  return box.x + box.width >= place.left - more && box.x <= place.left + place.inner + more;
}

function offline(state, place) {
  const group = svgElement("g", { class: "tl-offline" });
  for (const mark of state.marks) {
    if (mark.lane !== "offline") continue;
    const box = boxOf(mark, state, place);
    if (!isNear(box, place)) continue;
    group.append(svgElement("rect", { ...box, rx: Math.min(3, box.width / 3), class: `tl-mark tl-${mark.state}`, "data-testid": "bucket", "data-state": mark.state, "data-key": mark.key }));
    const { glyph } = STATES[mark.state];
    if (glyph && box.width >= GLYPH_MIN) {
      const y = place.offlineTop + place.offlineHeight - 7;
      group.append(svgElement("text", { x: box.x + box.width / 2, y, class: `tl-glyph tl-glyph-${mark.state}` }, glyph));
    } else if (glyph && mark.state !== "missing") {
      group.append(svgElement("rect", { x: box.x, y: place.offlineTop - 5, width: box.width, height: 3, class: `tl-flag tl-flag-${mark.state}` }));
    }
  }
  return group;
}

function realtime(state, place) {
  const group = svgElement("g", { class: "tl-realtime" });
  for (const mark of state.marks) {
    if (mark.lane !== "realtime") continue;
    const box = boxOf(mark, state, place);
    if (!isNear(box, place)) continue;
    group.append(svgElement("rect", { ...box, rx: Math.min(4, box.width / 3), class: `tl-mark tl-${mark.state}`, "data-state": mark.state, "data-key": mark.key, "data-testid": mark.state === "tail" ? "tail" : null }));
    if (mark.state === "consuming" && box.width >= 8) {
      group.append(svgElement("line", { x1: box.x + box.width, x2: box.x + box.width, y1: box.y - 2, y2: box.y + box.height + 2, class: "tl-open" }));
    }
    if (mark.late_segments) group.append(svgElement("path", { d: `M${box.x + Math.min(box.width / 2, 7)} ${box.y + 2}l4.500 7h-9z`, class: "tl-late" }));
  }
  return group;
}

function boundary(state, place) {
  const group = svgElement("g", { class: "tl-boundary-group" });
  const at = state.model.boundary?.limit_ms;
  if (at === null || at === undefined) return group;
  const x = place.x(at);
  if (x < place.left - 1 || x > place.left + place.inner + 1) {
    const before = x < place.left;
    group.append(svgElement("text", { x: before ? place.left + 2 : place.left + place.inner - 2, y: 14, class: `tl-away${before ? "" : " tl-away-end"}`, "data-testid": "boundary" },
      before ? `← boundary ${momentText(at)}` : `boundary ${momentText(at)} →`));
    return group;
  }
  const offsets = Object.entries(state.model.frontier);
  const text = `Boundary ${momentText(at)}`;
  const more = offsets.length ? `moved up to ${offsets.length === 1 ? `offset ${countText(offsets[0][1])}` : `${offsets.length} partitions' offsets`}` : "";
  const anchorEnd = x > place.left + place.inner / 2;
  const isNarrow = place.inner < 420;
  const half = text.length * 3.6;
  const middle = Math.min(Math.max(x, place.left + half - 20), place.left + place.inner - half);
  const side = isNarrow ? middle : anchorEnd ? x - 7 : x + 7;
  const line = svgElement("g", { "data-testid": "boundary", class: "tl-boundary" });
  line.append(
    svgElement("line", { x1: x, x2: x, y1: 4, y2: place.realtimeTop + place.realtimeHeight }),
    svgElement("circle", { cx: x, cy: 6, r: 4 }),
    svgElement("text", { x: side, y: 14, class: isNarrow ? "tl-middle" : anchorEnd ? "tl-end" : null }, !isNarrow && more ? `${text} · ${more}` : text),
  );
  group.append(line);
  return group;
}

function selection(state, place) {
  const group = svgElement("g", { class: "tl-selection-group" });
  if (!state.selection) return group;
  const start = Math.max(place.x(state.selection.start), place.left);
  const end = Math.min(place.x(state.selection.end), place.left + place.inner);
  if (end > start) group.append(svgElement("rect", { x: start, y: place.offlineTop - 6, width: end - start, height: place.realtimeTop + place.realtimeHeight - place.offlineTop + 8, class: "tl-selection" }));
  return group;
}

function focusRing(state, place) {
  const group = svgElement("g", {});
  const mark = state.marks.find((one) => one.key === state.focus);
  if (!mark) return group;
  const box = boxOf(mark, state, place);
  group.append(svgElement("rect", { x: box.x - 2, y: box.y - 2, width: box.width + 4, height: box.height + 4, rx: 5, class: "tl-focus" }));
  return group;
}
