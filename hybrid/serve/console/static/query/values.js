// The values of a result as text. No DOM.

const NUMERIC = new Set(["INT", "LONG", "FLOAT", "DOUBLE", "BIG_DECIMAL"]);
const EPOCH_MS = [946_684_800_000, 4_102_444_800_000]; // the years 2000 to 2100

/** Reads JSON with all digits of integers that a JavaScript number cannot hold. */
export function parseExactly(text) {
  return JSON.parse(text, (key, value, context) => {
    if (typeof value !== "number" || Number.isSafeInteger(value) || !/^-?\d+$/.test(context?.source ?? "")) return value;
    return BigInt(context.source);
  });
}

/** Whether the values of a type are numbers. */
export function isNumeric(type) {
  return NUMERIC.has(type);
}

/** A value as the table shows it. NULL has no text: the table draws it. */
export function textOf(value, type) {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (typeof value === "number" && (type === "DOUBLE" || type === "FLOAT") && Number.isInteger(value)) {
    return Math.abs(value) < 1e16 ? value.toFixed(1) : String(value);
  }
  if (typeof value === "object") return JSON.stringify(value, (key, each) => (typeof each === "bigint" ? `${each}` : each));
  return String(value);
}

/** A value as a number for a chart; null where it is none. */
export function numberOf(value) {
  if (value === null || value === undefined || value === "" || typeof value === "boolean") return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/** How a column lies on the x axis of a chart: `time`, `number` or `category`. */
export function axisOf(type, values) {
  const present = values.filter((value) => value !== null && value !== undefined);
  if (!present.length) return "category";
  if (type === "TIMESTAMP" || /^\d{4}-\d\d-\d\d([ T]|$)/.test(String(present[0]))) {
    return present.every((value) => secondsOf(value) !== null) ? "time" : "category";
  }
  if (!isNumeric(type)) return "category";
  const numbers = present.map(Number);
  return type === "LONG" && numbers.every((value) => value >= EPOCH_MS[0] && value < EPOCH_MS[1]) ? "time" : "number";
}

/** A time as epoch seconds: epoch milliseconds, or a date and time without a zone, which is UTC. */
export function secondsOf(value) {
  if (value === null || value === undefined) return null;
  if (typeof value !== "string") return Number(value) / 1000;
  const text = value.trim().replace(" ", "T");
  const hasZone = /(Z|[+-]\d\d:?\d\d)$/.test(text) || text.length <= 10;
  const time = Date.parse(hasZone ? text : `${text}Z`);
  return Number.isNaN(time) ? null : time / 1000;
}

/** A number of things: `1 row`, `1,234 rows`. */
export function counted(number, noun) {
  return `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;
}

/** A duration in milliseconds for people. */
export function duration(ms) {
  // Each is rounded first, so that no `1000 ms`, `60.0 s` and `1 min 60 s` are left.
  if (Math.round(ms) < 1000) return `${Math.round(ms)} ms`;
  const hundredths = Math.round(ms / 10), tenths = Math.round(ms / 100), seconds = Math.round(ms / 1000);
  if (hundredths < 1000) return `${(hundredths / 100).toFixed(2)} s`;
  if (tenths < 600) return `${(tenths / 10).toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
