// How often the server is asked for what is shown.

const SHARE = 50, MOST_MS = 30_000;

/** Milliseconds until it is asked again: the answers take at most a fiftieth of a processor of the server. `timing` is the Server-Timing of the last one. */
export function pollAfterMs(least, timing) {
  const taken = Number(/\bpage;dur=([\d.]+)/.exec(timing ?? "")?.[1] ?? 0);
  return Math.max(least, Math.min(SHARE * taken, MOST_MS));
}
