// The result as a chart: lines or bars of columns over one column. Its settings are kept when the statement runs again.

import uPlot from "../vendor/uPlot.esm.min.js";
import { element, emptyNote } from "../dom.js";
import { axisOf, isNumeric, numberOf, secondsOf, textOf } from "./values.js";

const SERIES_MAX = 6;
const HEIGHT = 340;
const BAR_PART = 0.76; // of the room between two x values
const BAR_MAX_PX = 90;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000];

/** The settings of a chart for a result: `wanted`, as far as the result has its columns, else a guess. */
export function chartSettings(result, wanted) {
  const columns = result.columns;
  const numeric = drawableColumns(result);
  const axis = columns.map((name, index) => axisOf(result.types[index], valuesOf(result, index)));
  const guessed = columns[firstOf(axis, "time") ?? firstOf(axis, "category") ?? 0] ?? null;
  const x = columns.includes(wanted?.x) ? wanted.x : guessed;
  const keptY = Array.isArray(wanted?.y) ? wanted.y.filter((name) => numeric.includes(name)) : [];
  const others = numeric.filter((name) => name !== x);
  const y = keptY.length ? keptY.slice(0, SERIES_MAX) : others.slice(0, 2);
  const isCategory = axis[columns.indexOf(x)] === "category";
  const kind = ["line", "bar"].includes(wanted?.kind) ? wanted.kind : isCategory ? "bar" : "line";
  return { kind, x, y };
}

/** The numeric columns of a result, which can be drawn. */
export function drawableColumns(result) {
  return result.columns.filter((name, index) => isNumeric(result.types[index]));
}

/** The data of a chart: `{axis, labels, data}`; `data` are the x values, then one list per series. */
export function chartData(result, settings) {
  const place = result.columns.indexOf(settings.x);
  const values = valuesOf(result, place);
  const axis = axisOf(result.types[place], values);
  const series = settings.y.map((name) => valuesOf(result, result.columns.indexOf(name)).map(numberOf));
  if (axis === "category") {
    const labels = values.map((value) => (value === null ? "NULL" : textOf(value, result.types[place])));
    return { axis, labels, data: [labels.map((label, index) => index), ...series] };
  }
  const xs = values.map(axis === "time" ? secondsOf : numberOf);
  const order = [...xs.keys()].filter((index) => xs[index] !== null).sort((one, other) => xs[one] - xs[other]);
  return { axis, labels: null, data: [xs, ...series].map((list) => order.map((index) => list[index])) };
}

/** A moment on the axis, in UTC: the day at midnight, else the time of day. */
function timeText(at, step) {
  const iso = new Date(at * 1000).toISOString();
  if (step >= 86_400) return iso.slice(0, 10);
  if (iso.slice(11, 19) === "00:00:00") return iso.slice(5, 10);
  return step < 60 ? iso.slice(11, 19) : iso.slice(11, 16);
}

/** Draws charts in an element; the size follows the element, the colours follow the page. */
export class Chart {
  constructor(target) {
    this._target = target;
    this._plot = null;
    new ResizeObserver(() => this._resize()).observe(target);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this._redraw());
    document.addEventListener("scheme", () => this._redraw());
  }

  /** Draws a result, with the first columns of those that are wanted. */
  show(result, wanted) {
    const settings = { ...wanted, y: wanted.y.slice(0, SERIES_MAX) };
    this._shown = [result, settings];
    this.clear();
    if (!settings.y.length) {
      this._target.append(emptyNote("A chart needs a column of numbers. Add an aggregate such as count(*) to the statement."));
      return;
    }
    const { axis, labels, data } = chartData(result, settings);
    if (!data[0].length) {
      this._target.append(emptyNote("The result has no rows to draw."));
      return;
    }
    this._plot = new uPlot(this._options(axis, labels, data[0], settings), data, this._target);
    this._target.setAttribute("role", "img");
    this._target.setAttribute("aria-label", `${settings.kind} chart of ${settings.y.join(", ")} by ${settings.x}`);
  }

  /** Takes the chart away. */
  clear() {
    this._plot?.destroy();
    this._plot = null;
    this._target.replaceChildren();
    this._target.removeAttribute("role");
    this._target.removeAttribute("aria-label");
  }

  _options(axis, labels, xs, settings) {
    const colour = (name) => resolved(this._target, name);
    const isBar = settings.kind === "bar";
    const grid = { stroke: colour("--line"), width: 1 };
    const lines = { stroke: colour("--ink-soft"), font: "12px system-ui, sans-serif", grid, ticks: { show: false } };
    const times = { values: (plot, splits) => splits.map((at) => timeText(at, splits[1] - splits[0])) };
    const across = labels === null ? (axis === "time" ? times : {}) : { incrs: STEPS, values: (plot, splits) => splits.map((at) => shorten(labels[at])) };
    return {
      width: this._width(),
      height: HEIGHT,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
      scales: {
        x: { time: axis === "time", ...(isBar || labels !== null ? { range: [xs[0] - 0.6 * gapOf(xs), xs.at(-1) + 0.6 * gapOf(xs)] } : {}) },
        y: isBar ? { range: (plot, low, high) => rangeOfBars(low, high) } : {},
      },
      axes: [
        { ...lines, grid: { show: !isBar, ...grid }, space: 80, ...across },
        { ...lines, size: 72, values: (plot, splits) => splits.map((value) => compact(value)) },
      ],
      series: [
        { label: settings.x, ...(labels === null ? {} : { value: (plot, at) => labels[at] ?? "–" }) },
        ...settings.y.map((name, place) => ({
          label: name,
          stroke: colour(`--chart-${place + 1}`),
          value: (plot, value) => (value ?? null) === null ? "–" : value.toLocaleString("en-US", { maximumFractionDigits: 6 }),
          ...(isBar
            ? { width: 0, fill: colour(`--chart-${place + 1}`), paths: groupedBars(place, settings.y.length), points: { show: false } }
            : { width: 2, points: { show: xs.length <= 60, size: 6, fill: colour(`--chart-${place + 1}`) } }),
        })),
      ],
    };
  }

  _width() {
    return Math.max(240, Math.floor(this._target.clientWidth));
  }

  _resize() {
    if (this._plot && Math.abs(this._plot.width - this._width()) > 1) {
      this._plot.setSize({ width: this._width(), height: HEIGHT });
    }
  }

  _redraw() {
    if (this._plot) this.show(...this._shown);
  }
}

function valuesOf(result, index) {
  return result.rows.map((row) => row[index]);
}

function firstOf(list, value) {
  const place = list.indexOf(value);
  return place < 0 ? null : place;
}

// A canvas knows no CSS variables: an element resolves them.
function resolved(parent, variable) {
  const probe = element("span");
  probe.style.color = `var(${variable})`;
  parent.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

// The smallest distance of two neighbours, which is the room of their bars.
function gapOf(xs) {
  let gap = Infinity;
  for (let index = 1; index < xs.length; index++) if (xs[index] > xs[index - 1]) gap = Math.min(gap, xs[index] - xs[index - 1]);
  return Number.isFinite(gap) ? gap : 1;
}

// The bars of one series beside those of the others.
function groupedBars(place, count) {
  return (plot, series) => {
    const [xs, ys] = [plot.data[0], plot.data[series]];
    const zero = plot.valToPos(0, "y", true);
    const room = Math.abs(plot.valToPos(xs[0] + gapOf(xs), "x", true) - plot.valToPos(xs[0], "x", true)) * BAR_PART;
    const width = Math.max(1, Math.min(room, BAR_MAX_PX * count) / count);
    const path = new Path2D();
    for (let index = 0; index < xs.length; index++) {
      if ((ys[index] ?? null) === null) continue;
      const left = plot.valToPos(xs[index], "x", true) + (place - count / 2) * width;
      const top = plot.valToPos(ys[index], "y", true);
      path.rect(left, Math.min(top, zero), Math.max(1, width - 1), Math.abs(zero - top));
    }
    return { stroke: null, fill: path, flags: 0 };
  };
}

function rangeOfBars(low, high) {
  const bottom = Math.min(0, low ?? 0);
  const top = Math.max(0, high ?? 1);
  const room = (top - bottom || 1) * 0.08;
  return [bottom < 0 ? bottom - room : 0, top > 0 ? top + room : 0];
}

function compact(value) {
  return Math.abs(value) >= 10_000
    ? value.toLocaleString("en-US", { notation: "compact", maximumFractionDigits: 2 })
    : value.toLocaleString("en-US", { maximumFractionDigits: 6 });
}

function shorten(label) {
  if (label === undefined) return "";
  return label.length > 14 ? `${label.slice(0, 13)}…` : label;
}
