// Times on an axis: where a moment stands, which ticks to draw, how a stretch is written. All times are UTC.

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const STEPS = [
  SECOND, 5 * SECOND, 15 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR,
  12 * HOUR, DAY, 2 * DAY, 7 * DAY,
];
const MONTHS = [1, 3, 6, 12, 60, 120];
const MONTH_DAYS = 30.44 * DAY;
const TICK_PIXELS = 110;
export const LONGEST = 1000 * 365 * DAY;

/** The ticks of a window on `width` pixels: [{at, text, isDay}]. */
export function ticks(start, end, width) {
  const wanted = ((end - start) / Math.max(width, 1)) * TICK_PIXELS;
  const step = STEPS.find((length) => length >= wanted);
  return step === undefined ? monthTicks(start, end, wanted) : evenTicks(start, end, step);
}

function evenTicks(start, end, step) {
  const found = [];
  const offset = step === 7 * DAY ? 4 * DAY : 0; // weeks begin on Monday; the epoch was a Thursday
  for (let at = Math.ceil((start - offset) / step) * step + offset; at < end; at += step) {
    const isDay = at % DAY === 0;
    found.push({ at, isDay, text: isDay ? dayText(at) : clockText(at, step) });
  }
  return found;
}

function monthTicks(start, end, wanted) {
  const months = MONTHS.find((count) => count * MONTH_DAYS >= wanted) ?? MONTHS.at(-1);
  const first = new Date(start);
  let count = Math.ceil((first.getUTCFullYear() * 12 + first.getUTCMonth()) / months) * months;
  const found = [];
  for (; found.length < 100; count += months) {
    const at = Date.UTC(Math.floor(count / 12), count % 12, 1);
    if (at >= end) break;
    if (at >= start) found.push({ at, isDay: true, text: months >= 12 ? iso(at).slice(0, 4) : iso(at).slice(0, 7) });
  }
  return found;
}

const iso = (at) => {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString();
};
const dayText = (at) => iso(at).slice(0, 10);
const clockText = (at, step) => iso(at).slice(11, step < MINUTE ? 19 : 16);

/** A moment, as short as it is exact: `2021-09-24`, `2021-09-24 06:00`. */
export function momentText(at) {
  const text = iso(at).replace("T", " ").replace(/(\.000)?Z$/, "");
  return text.replace(/:00$/, "").replace(/ 00:00$/, "");
}

/** A moment for a form or an address. */
export const momentIso = (at) => iso(at).replace(".000Z", "Z");

/** From one moment to another: the second without what both share. */
export function stretchText(start, end) {
  const [first, last] = [momentText(start), momentText(end)];
  const sameDay = first.slice(0, 10) === last.slice(0, 10) && last.length > 10 && first.length > 10;
  return `${first} – ${sameDay ? last.slice(11) : last}`;
}

/** A number of rows. */
export const countText = (value) => value.toLocaleString("en-US");

/** A number of bytes with its decimal unit, as everywhere in the product: 848 B, 2.8 kB, 28 MB. */
export function sizeText(value) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let amount = value, unit = 0;
  while (Number(amount.toFixed(amount < 10 ? 1 : 0)) >= 1000 && unit < units.length - 1) {
    amount /= 1000;
    unit += 1;
  }
  return `${amount.toFixed(unit && Number(amount.toFixed(1)) < 10 ? 1 : 0)} ${units[unit]}`;
}
