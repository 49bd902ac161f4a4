// How a statement is answered, drawn small: two lanes, the boundary between them, segments read and pruned.

import { element, svgElement } from "../dom.js";
import { counted } from "./values.js";

const SEGMENTS_MAX = 2000; // tables with more files are drawn by counts: their segments would be megabytes
const LANE_PX = 46; // its name, then its marks
const NAME_PX = 18;
const WIDTH_MIN = 300;

/**
 * Draws the explanation of a statement into `target`. `revision` is that of the result. `ask(verb, arguments)` fetches
 * the segments of small tables; null for a statement on another state than today's, of which they are not.
 */
export async function showPlan(target, explanation, revision, ask) {
  const sections = explanation.plan.tables.map((table) => tableSection(table));
  const newer = explanation.plan.revision === revision ? [] : [
    element("p", "muted", `The plan is of revision ${explanation.plan.revision}, which is newer than the result.`),
  ];
  target.replaceChildren(...newer, ...sections.map(({ section }) => section), statementSection(explanation));
  await Promise.all(sections.map(async ({ table, figure }) => {
    if (ask === null || filesOf(table) > SEGMENTS_MAX || !table.halves.length) return;
    const segments = await ask("segments", { table: wholeName(table) }).catch(() => []);
    if (!hasSegmentsOf(table, segments)) return;
    const drawing = timeline(table, segments, Math.max(WIDTH_MIN, figure.clientWidth));
    if (drawing !== null) figure.replaceChildren(drawing, legend(true));
  }));
}

/** Whether `segments` have all that the plan reads of a table: they are of now, and the plan may be older. */
export function hasSegmentsOf(table, segments) {
  return table.halves.every(({ half, segments: read }) => {
    const names = new Set(segments.filter((segment) => segment.half === half).map((segment) => segment.name));
    return read.every((name) => names.has(name));
  });
}

/** Whether a run asks for the tables as they were, or as a plan would make them. */
export function isOfAnotherState({ sql, asOf, plan }) {
  return Boolean(asOf || plan) || /(?:^|;)\s*set\s+(?:asof|plan)\s*=/i.test(sql);
}

/** The lanes of a table over time, or null where its segments have no times. */
export function timeline(table, segments, width) {
  const dated = segments.filter((segment) => segment.start_ms !== null && segment.end_ms !== null);
  if (!dated.length) return null;
  const limit = isFiniteTime(table.limit_time_ms) ? table.limit_time_ms : null;
  const times = [...dated.flatMap((segment) => [segment.start_ms, segment.end_ms]), ...(limit === null ? [] : [limit])];
  const from = Math.min(...times);
  const to = Math.max(...times, from + 1);
  const x = (time) => 8 + ((time - from) / (to - from)) * (width - 16);
  const height = table.halves.length * LANE_PX + 26;
  const drawing = svgElement("svg", { viewBox: `0 0 ${width} ${height}`, class: "plan-drawing", role: "img" });
  drawing.setAttribute("aria-label", describe(table));
  table.halves.forEach((half, lane) => {
    const read = new Set(half.segments);
    const top = lane * LANE_PX;
    drawing.append(
      svgElement("text", { x: 0, y: top + 12, class: "plan-lane-name" }, half.half.toLowerCase()),
      svgElement("rect", { x: 0, y: top + NAME_PX, width, height: 24, rx: 5, class: "plan-lane" }),
    );
    for (const segment of dated.filter((each) => each.half === half.half)) {
      const isRead = read.has(segment.name);
      const left = x(segment.start_ms);
      const mark = svgElement("rect", {
        x: left, y: top + NAME_PX + 5, width: Math.max(3, x(segment.end_ms) - left), height: 14, rx: 2,
        class: `${isRead ? "plan-read" : "plan-pruned"} plan-${half.half.toLowerCase()}`,
      });
      mark.append(svgElement("title", {}, `${segment.name}: ${isRead ? "read" : "pruned"}, ${counted(segment.rows, "row")}`));
      drawing.append(mark);
    }
  });
  if (limit !== null) drawing.append(...boundaryMark(x(limit), table.halves.length * LANE_PX, width));
  drawing.append(
    svgElement("text", { x: 8, y: height - 6, class: "plan-tick" }, timeText(from, to - from)),
    svgElement("text", { x: width - 8, y: height - 6, class: "plan-tick", "text-anchor": "end" }, timeText(to, to - from)),
  );
  return drawing;
}

function boundaryMark(x, height, width) {
  const isRight = x > width / 2;
  return [
    svgElement("line", { x1: x, x2: x, y1: NAME_PX - 4, y2: height, class: "plan-boundary" }),
    svgElement("text", {
      x: isRight ? x - 6 : x + 6, y: 12, class: "plan-boundary-name", "text-anchor": isRight ? "end" : "start",
    }, "boundary"),
  ];
}

function tableSection(table) {
  const section = element("section", "plan-table");
  section.append(element("h3", "", table.alias === table.table ? table.table : `${table.table} as ${table.alias}`));
  const figure = element("figure", "plan-figure");
  figure.append(...table.halves.map((half) => halfBar(half)), legend(false));
  section.append(figure, facts(table));
  return { table, section, figure };
}

// Without times: how much of each half is read, as a bar.
function halfBar(half) {
  const pruned = prunedFiles(half);
  const row = element("div", "plan-bar");
  row.append(element("span", "plan-bar-name", half.half));
  const bar = element("div", "plan-bar-track");
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", `${counted(half.files, "file")} read, ${pruned} pruned`);
  const part = element("div", `plan-bar-read plan-${half.half.toLowerCase()}`);
  part.style.width = `${(100 * half.files) / Math.max(1, half.files + pruned)}%`;
  bar.append(part);
  row.append(bar, element("span", "plan-bar-count", `${half.files.toLocaleString("en-US")} of ${(half.files + pruned).toLocaleString("en-US")} files`));
  return row;
}

function facts(table) {
  const list = element("dl", "plan-facts");
  if (table.boundary_time !== null) {
    const setBy = table.override_time_ms !== null ? "an override" : `mode ${table.boundary_mode}`;
    fact(list, "Boundary", `${table.limit_time}, by ${setBy}`);
    const frontier = Object.entries(table.frontier).map(([key, offset]) => `${key}@${offset}`);
    fact(list, "Frontier", frontier.join(", ") || "none");
  }
  for (const half of table.halves) {
    const pruned = Object.entries(half.pruned).map(([reason, count]) => `; ${counted(count, "file")} pruned: ${reason}`);
    const read = `${counted(half.files, "file")} of ${counted(half.segments.length, "segment")}, ${counted(half.rows, "row")}`;
    fact(list, half.half === "OFFLINE" ? "Offline" : "Realtime", `${read}${pruned.join("")}`);
  }
  if (Object.keys(table.tail).length) {
    const ends = Object.entries(table.tail).map(([key, offset]) => `${key}@${offset}`);
    fact(list, "Tail", `${counted(table.tail_rows, "row")} up to ${ends.join(", ")}`);
  }
  if (table.stream) fact(list, "Stream", table.stream);
  if (table.filters.length) fact(list, "Filters on statistics", table.filters.join(", "));
  return list;
}

function fact(list, term, text) {
  list.append(element("dt", "", term), element("dd", "", text));
}

function statementSection(explanation) {
  const details = element("details", "plan-sql");
  details.append(element("summary", "", "SQL that the engine runs"));
  const relations = explanation.plan.tables.map((table) => `-- ${table.alias}\n${table.sql}`);
  const code = element("pre", "", [explanation.plan.sql, ...relations].join("\n\n"));
  code.tabIndex = 0;
  details.append(code);
  return details;
}

function legend(hasTimes) {
  const list = element("ul", "plan-legend");
  const marks = [["is-read", "read"], ["is-pruned", "pruned"], ...(hasTimes ? [["is-boundary", "boundary"]] : [])];
  for (const [className, words] of marks) {
    const entry = element("li", className);
    entry.append(element("i"), words);
    list.append(entry);
  }
  return list;
}

function describe(table) {
  return table.halves
    .map((half) => `${half.half}: ${counted(half.segments.length, "segment")} read, ${counted(prunedFiles(half), "file")} pruned`)
    .join("; ");
}

function prunedFiles(half) {
  return Object.values(half.pruned).reduce((sum, count) => sum + count, 0);
}

function filesOf(table) {
  return table.halves.reduce((sum, half) => sum + half.files + prunedFiles(half), 0);
}

// `orders_OFFLINE` in FROM reads one half of the table `orders`.
function wholeName(table) {
  return table.table.replace(/_(OFFLINE|REALTIME)$/i, "");
}

function isFiniteTime(ms) {
  return typeof ms === "number" && Math.abs(ms) <= 8.64e15;
}

function timeText(ms, span) {
  if (!isFiniteTime(ms)) return "";
  const text = new Date(ms).toISOString().replace("T", " ");
  return text.slice(0, span < 60_000 ? 23 : span < 3_600_000 ? 19 : 16);
}
