// Tabs and history over stores in memory, one of which may be closed.
class Store {
  constructor(kept = {}, isClosed = false) {
    this.kept = kept;
    this.isClosed = isClosed;
  }

  getItem(key) {
    if (this.isClosed) throw new Error("closed");
    return this.kept[key] ?? null;
  }

  setItem(key, value) {
    if (this.isClosed) throw new Error("full");
    this.kept[key] = value;
  }
}

export async function tabsStory(module) {
  const { Tabs } = await import(module);
  const own = new Store();
  const shared = new Store();
  const tabs = new Tabs(own, shared);
  tabs.open({ text: "select 1" });
  tabs.open({ text: "select 2", asOf: "now" });
  let refused = 0;
  for (let more = 1; more < 30; more++) if (tabs.open({ text: `select ${more}` }) === null) refused += 1;
  const count = tabs.list.length;
  const again = new Tabs(own, shared);
  const other = new Tabs(new Store(), shared);
  const full = new Tabs(new Store(), new Store(shared.kept));
  const { id } = full.active;
  const link = full.replace({ text: "a link" });
  for (let each = 0; each < count; each++) again.close();
  return {
    count, first: tabs.list.map(({ text }) => text).slice(0, 2), active: other.active.text, kept: other.list.length,
    closed: again.list.map(({ text }) => text), refused,
    replaced: { text: link.text, count: full.list.length, keepsId: link.id === id },
  };
}

export async function reusedTab(module) {
  const { Tabs } = await import(module);
  const tabs = new Tabs(new Store(), new Store());
  const { id } = tabs.active;
  tabs.open({ text: "select 1" });
  return { count: tabs.list.length, keepsId: tabs.active.id === id };
}

export async function tabsOf(module, kept, isClosed) {
  const { Tabs } = await import(module);
  const store = new Store(kept === null ? {} : { "hybrid.query.tabs": kept }, isClosed);
  const tabs = new Tabs(store, store);
  tabs.open({ text: "select 1" });
  return tabs.list.map(({ text, view }) => [text, view]);
}

export async function historyStory(module, count) {
  const { History } = await import(module);
  const history = new History(new Store());
  for (let number = 0; number < count; number++) history.add({ sql: `select ${number}`, asOf: "", plan: "" });
  const added = [
    history.add({ sql: "select 5", asOf: "", plan: "" }), history.add({ sql: "x".repeat(20000), asOf: "", plan: "" }),
  ];
  const entries = history.entries();
  history.clear();
  return { newest: entries[0].sql, count: entries.length, fives: entries.filter(({ sql }) => sql === "select 5").length,
    left: history.entries().length, added };
}
