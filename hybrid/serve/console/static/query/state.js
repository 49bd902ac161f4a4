// What the page remembers in the browser: tabs, and the history of statements. Both are bounded. No DOM.

const TABS_KEY = "hybrid.query.tabs";
const HISTORY_KEY = "hybrid.query.history";
const TABS_MAX = 20;
const HISTORY_MAX = 200;
const TEXT_MAX = 100_000; // characters kept of one tab
const STATEMENT_MAX = 10_000; // characters kept of one statement of the history

/** A tab with nothing in it. */
export function emptyTab() {
  return { id: newId(), text: "", asOf: "", plan: "", address: "", chart: null, view: "table" };
}

/** An id that no other tab or request has. */
export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** How many tabs there may be, in words for a toast. */
export const NO_ROOM = `${TABS_MAX} tabs are open. Close one first.`;

/** The tabs of this window. A new window begins with those that were changed last. */
export class Tabs {
  constructor(own = storage(() => sessionStorage), shared = storage(() => localStorage)) {
    this._stores = [own, shared];
    const kept = read(own, TABS_KEY) ?? read(shared, TABS_KEY);
    const list = Array.isArray(kept?.list) ? kept.list.map(tabOf).filter(Boolean).slice(0, TABS_MAX) : [];
    this.list = list.length ? list : [emptyTab()];
    this.active = this.list.find(({ id }) => id === kept?.active) ?? this.list[0];
  }

  /** Whether another tab may be opened. */
  get hasRoom() {
    return this.list.length < TABS_MAX;
  }

  /** Opens a tab, in place of the active one where that is empty. Null where there is no room: nothing changes. */
  open(fields = {}) {
    const replaces = Object.keys(fields).length > 0 && !this.active.text.trim();
    return replaces || this.hasRoom ? this._put(fields, replaces) : null;
  }

  /** Opens a tab in place of the active one, whose id and text are gone. */
  replace(fields) {
    return this._put(fields, true);
  }

  _put(fields, replaces) {
    const tab = { ...emptyTab(), ...fields };
    const place = this.list.indexOf(this.active);
    this.list.splice(replaces ? place : place + 1, replaces ? 1 : 0, tab);
    this.active = tab;
    this.save();
    return tab;
  }

  /** Closes the active tab; the last one is emptied. */
  close() {
    const place = this.list.indexOf(this.active);
    this.list.splice(place, 1);
    if (!this.list.length) this.list.push(emptyTab());
    this.active = this.list[Math.min(place, this.list.length - 1)];
    this.save();
  }

  /** Makes a tab the active one. */
  select(tab) {
    this.active = tab;
    this.save();
  }

  /** Writes the tabs down, where the browser has room. */
  save() {
    const list = this.list.map((tab) => ({ ...tab, text: tab.text.slice(0, TEXT_MAX) }));
    for (const store of this._stores) write(store, TABS_KEY, { list, active: this.active.id });
  }
}

/** The statements that were run, newest first. */
export class History {
  constructor(store = storage(() => localStorage)) {
    this._store = store;
  }

  /** The entries: `{sql, asOf, plan, at, tookMs, rows, outcome}`. */
  entries() {
    const kept = read(this._store, HISTORY_KEY);
    return Array.isArray(kept) ? kept.filter((entry) => typeof entry?.sql === "string").slice(0, HISTORY_MAX) : [];
  }

  /** Adds an entry; an earlier one of the same statement goes. False where it is too long, or the browser refuses. */
  add(entry) {
    if (entry.sql.length > STATEMENT_MAX) return false;
    const others = this.entries().filter(
      (each) => each.sql !== entry.sql || each.asOf !== entry.asOf || each.plan !== entry.plan,
    );
    return write(this._store, HISTORY_KEY, [entry, ...others].slice(0, HISTORY_MAX));
  }

  /** Forgets all entries. */
  clear() {
    write(this._store, HISTORY_KEY, []);
  }
}

function tabOf(kept) {
  if (typeof kept?.text !== "string" || typeof kept.id !== "string") return null;
  const text = (name) => (typeof kept[name] === "string" ? kept[name] : "");
  const chart = typeof kept.chart === "object" ? kept.chart : null;
  const view = ["table", "chart", "plan"].includes(kept.view) ? kept.view : "table";
  return { id: kept.id, text: kept.text, asOf: text("asOf"), plan: text("plan"), address: text("address"), chart, view };
}

// A browser may refuse storage (private windows, a full disk): the page works without.
function storage(open) {
  try {
    return open();
  } catch {
    return null;
  }
}

function read(store, key) {
  try {
    return JSON.parse(store.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

function write(store, key, value) {
  try {
    store.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false; // the newest state is in memory
  }
}
