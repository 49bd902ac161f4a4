// What a mark is called and what is said about it. Each state has a word and a glyph beside its pattern.

import { countText, momentText, sizeText, stretchText } from "./scale.js";

export const STATES = {
  present: { word: "Present", glyph: "" },
  corrected: { word: "Corrected", glyph: "↻" },
  missing: { word: "Missing", glyph: "?" },
  running: { word: "Running", glyph: "▶" },
  failed: { word: "Failed", glyph: "✕" },
  consuming: { word: "Consuming", glyph: "…" },
  sealed: { word: "Sealed", glyph: "" },
  moved: { word: "Moved, kept until retention", glyph: "" },
  tail: { word: "In Kafka, not committed", glyph: "" },
  late: { word: "Holds late rows", glyph: "▲" },
};

/**
 * All marks of a model in reading order: the offline lane, then each row of the realtime lane with its tail.
 * `tails` are the messages that are not committed, by partition.
 */
export function marksOf(model, tails = {}) {
  const offline = model.offline.map((mark) => ({ ...mark, lane: "offline", row: 0, key: `o${mark.start_ms}` }));
  const ends = model.realtime.map((row) => Math.max(...row.marks.map((mark) => mark.end_ms)));
  const newest = Math.max(...ends);
  const showsEnd = model.window[1] >= model.reach[1]; // else the last segments may be missing
  const realtime = model.realtime.flatMap((row, place) => {
    const marks = row.marks.map((mark) => ({ ...mark, lane: "realtime", row: place, partitions: row.partitions, key: `r${place}.${mark.names[0]}` }));
    const end = row.marks.length ? ends[place] : newest; // a partition whose segments are gone, or out of the window
    const rows = row.partitions.reduce((sum, partition) => sum + (tails[partition] ?? 0), 0);
    return rows && showsEnd && Number.isFinite(end) ? [...marks, tailMark(row, place, end, rows)] : marks;
  });
  return [...offline, ...realtime];
}

const tailMark = (row, place, at, rows) => (
  { lane: "realtime", row: place, partitions: row.partitions, state: "tail", key: `t${place}`, start_ms: at, end_ms: at, rows, names: [], late_segments: 0 }
);

/**
 * The rows of the offline lane from one moment to another. A mark that joins several buckets and reaches beyond counts
 * by its share of time: then `isExact` is false.
 */
export function rowsBetween(offline, start, end) {
  let rows = 0, isExact = true;
  for (const mark of offline) {
    const within = Math.min(mark.end_ms, end) - Math.max(mark.start_ms, start);
    if (within <= 0) continue;
    const length = mark.end_ms - mark.start_ms;
    rows += mark.rows * (within / length);
    if (within < length && mark.rows) isExact = false;
  }
  return { rows: Math.round(rows), isExact };
}

/** The partitions of a row, as its label. */
export function rowLabel(partitions) {
  return partitions.length === 1 ? partitions[0] : `${partitions[0]} – ${partitions.at(-1)}`;
}

/** Lines about a mark: [name, text]. The first is its heading. */
export function factsOf(mark, model) {
  if (mark.state === "tail") return tailFacts(mark);
  return mark.lane === "offline" ? offlineFacts(mark, model) : realtimeFacts(mark);
}

function offlineFacts(mark, model) {
  const facts = [["Offline", stretchText(mark.start_ms, mark.end_ms)]];
  const states = Object.entries(mark.buckets);
  const several = states.reduce((sum, [, count]) => sum + count, 0) > 1;
  facts.push(["State", states.map(([state, count]) => (several ? `${countText(count)} ${STATES[state].word.toLowerCase()}` : STATES[state].word)).join(", ") || "Present"]);
  facts.push(["Rows", countText(mark.rows)], ["Size", sizeText(mark.bytes)]);
  if (mark.segments) facts.push([mark.segments === 1 ? "Segment" : `${countText(mark.segments)} segments`, named(mark)]);
  for (const work of mark.works) facts.push([STATES[work.state].word, `${work.id}: ${work.why}`]);
  for (const entry of mark.entries.slice(0, 3)) facts.push(["Written by", correctionText(entry, model)]);
  if (!mark.rows && mark.state === "missing") facts.push(["Why", "The boundary has passed this time, and OFFLINE has no row of it: none arrived, or they were removed."]);
  return facts;
}

function correctionText(entry, model) {
  const found = model.corrections.find((correction) => correction.id === entry);
  return found ? `${entry}${found.reason ? ` (${found.reason})` : ""}: ${found.result}` : entry;
}

function realtimeFacts(mark) {
  const facts = [["Realtime", `${momentText(mark.start_ms)} – ${momentText(mark.end_ms)}`]];
  facts.push(["State", STATES[mark.state].word], ["Partition", rowLabel(mark.partitions)]);
  facts.push(["Rows", countText(mark.rows)], ["Size", sizeText(mark.bytes)]);
  if (mark.start_offset !== null) facts.push(["Offsets", `${countText(mark.start_offset)} – ${countText(mark.end_offset - 1)}`]);
  facts.push([mark.segments === 1 ? "Segment" : `${countText(mark.segments)} segments`, named(mark)]);
  if (mark.late_segments) facts.push(["Late rows", `${mark.segments === 1 ? "It holds" : `${mark.late_segments} of them hold`} rows of times before the boundary. They are visible; the next move takes them.`]);
  return facts;
}

const tailFacts = (mark) => [
  ["Tail", rowLabel(mark.partitions)],
  ["Messages", countText(mark.rows)],
  ["State", `${STATES.tail.word}: the next batches of ingestion take them.`],
];

const named = (mark) => mark.names.join(", ") + (mark.segments > mark.names.length ? ", …" : "");

/** The facts of a mark as one sentence for screen readers. */
export const sentenceOf = (mark, model) => factsOf(mark, model).map(([name, text]) => `${name} ${text}`).join(". ");
