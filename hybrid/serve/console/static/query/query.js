// The Query page: tabs, the editor, and the runs of statements.

import { toast } from "../console.js";
import { createEditor } from "../editor.js";
import { CatalogNames, Completer } from "./completion.js";
import { pageAddress } from "./copying.js";
import { element, partsOf } from "../dom.js";
import { HistoryDialog } from "./history_dialog.js";
import { OutcomeView, sentenceOf } from "./outcome.js";
import { ask, cancelOnServer, Refused } from "./server.js";
import { History, newId, NO_ROOM, Tabs } from "./state.js";
import { errorRange, sentStatement, statementAt, statementsOf, titleOf } from "./text.js";
import { duration } from "./values.js";

const TICK_MS = 100;
const OUTCOMES_MAX = 6; // kept for going back to a tab
const ENDED_BACKFILLS = new Set(["DONE", "CANCELLED", "REVERTED"]);

class QueryPage {
  constructor(root) {
    this._part = partsOf(root);
    this._words = JSON.parse(this._part("words").textContent);
    this._tabs = new Tabs();
    this._history = new History();
    this._states = new Map(); // of the editor, by tab id: undo stays within its tab
    this._outcomes = new Map(); // by tab id
    this._runs = new Map(); // by tab id
    const runsAtOnce = this._openFromAddress() && !root.dataset.rendered;
    this._outcome = new OutcomeView(this._part, {
      settings: () => this._tab,
      keep: (fields) => this._keep(fields),
      pin: (revision) => this._pin(revision),
      addLimit: (run) => this._addLimit(run),
      hasAccounts: "accounts" in root.dataset,
    });
    this._editor = this._createEditor(root.dataset.nonce);
    this._wire();
    this._drawTabs();
    this._showTab();
    root.dataset.ready = "true";
    if (runsAtOnce) this.run();
  }

  get _tab() {
    return this._tabs.active;
  }

  get _running() {
    return this._runs.get(this._tab.id) ?? null;
  }

  // A link opens the tab that it came from, else a new one. Whether its statement is to run.
  _openFromAddress() {
    const query = new URLSearchParams(location.search);
    const linked = query.get("sql") ?? "";
    const typed = this._part("textarea").value; // perhaps somebody typed before this script came
    const same = linked && this._tabs.list.find((tab) => tab.address === location.pathname + location.search);
    if (same && typed.trim() === linked.trim()) {
      this._tabs.select(same);
      return same.text.trim() === linked.trim();
    }
    if (typed.trim()) {
      const fields = { text: typed, asOf: query.get("as_of") ?? "", plan: query.get("plan") ?? "", address: "" };
      if (!this._tabs.open(fields) && !this._openInstead(fields)) return false;
    }
    return linked !== "" && typed.trim() === linked.trim();
  }

  // There is no room, and a link is to be opened: the text of the active tab goes to the history, or the link waits.
  _openInstead(fields) {
    const { text, asOf, plan } = this._tab;
    if (!this._history.add({ sql: text, asOf, plan, at: Date.now(), tookMs: 0, rows: null, outcome: "not run" })) {
      toast(`${NO_ROOM} Then open the link again.`, "bad");
      return false;
    }
    toast("There was no room for another tab. The text of this one is in History now.");
    return this._tabs.replace(fields);
  }

  _createEditor(nonce) {
    const completer = new Completer(new CatalogNames(ask), this._words);
    const editor = createEditor(this._part("editor"), {
      text: this._tab.text,
      nonce,
      label: "SQL statement",
      placeholder: "select * from …",
      attributes: { "data-testid": "sql-editor" },
      words: this._words,
      complete: (text, position, isExplicit) => completer.complete(text, position, isExplicit),
      keys: [{ key: "Mod-Enter", run: () => this.run() }],
      onChange: (text) => this._onText(text),
      onCursor: () => this._markStatement(),
    });
    const textarea = this._part("textarea");
    textarea.hidden = true;
    textarea.removeAttribute("data-testid");
    textarea.removeAttribute("name");
    return editor;
  }

  _wire() {
    const on = (name, type, act) => this._part(name).addEventListener(type, act);
    on("form", "submit", (event) => {
      event.preventDefault();
      this.run();
    });
    on("cancel", "click", () => this.cancel());
    on("new-tab", "click", () => {
      this._changeTab(() => this._tabs.open());
      this._editor.focus();
    });
    on("close-tab", "click", () => {
      this._closeTab();
      this._editor.focus();
    });
    on("tabs", "keydown", (event) => this._onTabKey(event));
    on("as-of", "input", (event) => this._keep({ asOf: event.target.value.trim() }));
    on("plan", "input", (event) => this._keep({ plan: event.target.value.trim() }));
    on("plan", "focus", () => this._fillPlans());
    document.addEventListener("keydown", (event) => this._onKey(event));
    new HistoryDialog(this._part, this._history, (entry) => {
      const fields = { text: entry.sql, asOf: String(entry.asOf ?? ""), plan: String(entry.plan ?? ""), address: "" };
      if (!this._tab.text.trim()) this.cancel(); // the tab is replaced, and nobody could cancel its statement then
      this._changeTab(() => this._tabs.open(fields) ?? toast(NO_ROOM, "bad"));
      this._editor.focus();
    });
    setInterval(() => this._showElapsed(), TICK_MS);
  }

  // Tabs

  _drawTabs() {
    const list = this._part("tabs");
    const hadFocus = list.contains(document.activeElement);
    list.replaceChildren(...this._tabs.list.map((tab, index) => {
      const button = element("button", "query-tab", titleOf(tab.text) || `Query ${index + 1}`);
      button.type = "button";
      button.setAttribute("role", "tab");
      button.setAttribute("aria-selected", String(tab === this._tab));
      button.setAttribute("aria-controls", "query-panel");
      button.tabIndex = tab === this._tab ? 0 : -1;
      button.addEventListener("click", () => this._changeTab(() => this._tabs.select(tab)));
      return button;
    }));
    const active = list.querySelector('[aria-selected="true"]');
    if (hadFocus) active.focus();
    list.scrollLeft = Math.max(0, active.offsetLeft + active.offsetWidth - list.clientWidth);
    this._part("new-tab").disabled = !this._tabs.hasRoom;
  }

  _changeTab(act) {
    this._states.set(this._tab.id, this._editor.state());
    act();
    this._forgetClosed();
    this._drawTabs();
    this._showTab();
  }

  // Tabs that were closed, or made room for another one.
  _forgetClosed() {
    const open = new Set(this._tabs.list.map(({ id }) => id));
    for (const kept of [this._states, this._outcomes]) {
      for (const id of [...kept.keys()].filter((each) => !open.has(each))) kept.delete(id);
    }
  }

  _closeTab() {
    this.cancel();
    this._changeTab(() => this._tabs.close());
  }

  _onTabKey(event) {
    const list = this._tabs.list;
    const place = list.indexOf(this._tab);
    const next = {
      ArrowRight: list[(place + 1) % list.length], ArrowLeft: list.at(place - 1), Home: list[0], End: list.at(-1),
    }[event.key];
    if (!next && event.key !== "Delete") return;
    event.preventDefault();
    if (next) this._changeTab(() => this._tabs.select(next));
    else this._closeTab();
  }

  _showTab() {
    const tab = this._tab;
    this._editor.restore(this._states.get(tab.id) ?? null, tab.text);
    this._part("as-of").value = tab.asOf;
    this._part("plan").value = tab.plan;
    this._markStatement();
    this._showProgress();
    history.replaceState(null, "", tab.address || "/ui/query");
    this._showOutcome(this._outcomes.get(tab.id) ?? null);
  }

  _onText(text) {
    const title = titleOf(this._tab.text);
    this._keep({ text });
    if (titleOf(text) !== title) this._drawTabs();
  }

  _keep(fields) {
    Object.assign(this._tab, fields);
    this._tabs.save();
  }

  _markStatement() {
    const text = this._editor.text();
    const statement = statementsOf(text).length > 1 ? statementAt(text, this._editor.cursor()) : null;
    this._editor.markStatement(statement === null ? null : [statement.from, statement.to]);
  }

  async _fillPlans() {
    const plans = await ask("backfills", {}).catch(() => []);
    const open = plans.filter((plan) => !ENDED_BACKFILLS.has(String(plan.state).toUpperCase()));
    this._part("plans").replaceChildren(...open.map((plan) => new Option(`${plan.table}: ${plan.id}`, plan.id)));
  }

  // Runs

  /** Runs the selected statement, else the one under the cursor. */
  async run() {
    if (this._running) return;
    const tab = this._tab;
    const chosen = this._chosen();
    if (chosen === null) {
      const document = { error: "There is no statement to run.", hint: "Type one, for example: select * from TABLE" };
      this._showOutcome({ run: null, error: new Refused(document, 0) });
      return;
    }
    const run = {
      id: newId(), abort: new AbortController(), began: performance.now(), isCancelled: false, text: chosen.text,
      from: chosen.from, sql: sentStatement(chosen, tab.plan), asOf: tab.asOf, plan: tab.plan, link: null,
    };
    this._runs.set(tab.id, run);
    this._writeAddress(tab, run);
    this._editor.clearError();
    this._showProgress();
    const outcome = await outcomeOf(run);
    this._runs.delete(tab.id);
    this._remember(tab, chosen, outcome);
    if (this._tab !== tab) return;
    this._showProgress();
    this._showOutcome(outcome);
  }

  _chosen() {
    const text = this._editor.text();
    const [from, to] = this._editor.selection();
    const around = statementAt(text, from);
    const within = from === to ? undefined : statementsOf(text.slice(from, to))[0];
    if (within === undefined) return around;
    const settings = within.settings.length ? within.settings : around?.settings ?? [];
    return { ...within, settings, from: within.from + from, to: within.to + from };
  }

  _remember(tab, chosen, outcome) {
    if (this._tabs.list.includes(tab)) this._outcomes.set(tab.id, outcome);
    for (const id of [...this._outcomes.keys()].slice(0, -OUTCOMES_MAX)) this._outcomes.delete(id);
    const { run, result } = outcome;
    this._history.add({
      sql: [...chosen.settings, chosen.text].join(";\n"), asOf: run.asOf, plan: run.plan, at: Date.now(),
      tookMs: outcome.tookMs, rows: result ? result.rows.length : null, outcome: outcome.isCancelled ? "cancelled" : "failed",
    });
  }

  /** Cancels the statement of the shown tab, on the server too. */
  async cancel() {
    const run = this._running;
    if (run === null || run.isCancelled) return;
    run.isCancelled = true;
    if (document.activeElement === this._part("cancel")) this._editor.focus();
    // A statement that waits for its turn is unknown yet: closing the connection takes it out of the queue.
    await cancelOnServer(run.id);
    run.abort.abort();
  }

  // The whole text, so that the link brings back what the tab has.
  _writeAddress(tab, run) {
    const address = pageAddress({ sql: tab.text, asOf: run.asOf, plan: run.plan });
    run.link = address === null ? null : new URL(address, location.href).href;
    tab.address = address ?? "";
    this._tabs.save();
    history.replaceState(null, "", address ?? "/ui/query");
  }

  _showProgress() {
    const isRunning = this._running !== null;
    this._part("run").disabled = isRunning;
    this._part("cancel").hidden = !isRunning;
    this._part("progress").hidden = !isRunning;
    this._part("outcome").setAttribute("aria-busy", String(isRunning));
    this._showElapsed();
    if (isRunning) this._say("Running");
  }

  _showElapsed() {
    const run = this._running;
    if (run !== null) this._part("elapsed").textContent = duration(performance.now() - run.began);
  }

  _showOutcome(outcome) {
    this._say(this._outcome.show(outcome));
    const run = outcome?.run;
    if (!outcome?.error || !run) return;
    const range = errorRange(sentenceOf(outcome.error), run.text);
    const isUnchanged = this._editor.text().startsWith(run.text, run.from);
    if (range !== null && isUnchanged) this._editor.markError(run.from + range[0], run.from + range[1]);
  }

  // Acts on a result

  _pin(revision) {
    this._part("as-of").value = revision;
    this._keep({ asOf: revision });
    toast("The next statements of this tab answer as of this revision.");
  }

  _addLimit(run) {
    const text = this._editor.text();
    if (!text.startsWith(run.text, run.from)) {
      toast("The statement has changed since. Add the LIMIT yourself.");
      return;
    }
    const end = run.from + run.text.length;
    this._editor.insert(end, "\nlimit 10000");
    this.run();
  }

  _onKey(event) {
    if (!(event.ctrlKey || event.metaKey) || event.defaultPrevented) return;
    if (event.key === "." && this._running) {
      event.preventDefault();
      this.cancel();
    } else if (event.key === "Enter" && !this._part("history-dialog").open) {
      event.preventDefault();
      this.run();
    }
  }

  _say(words) {
    this._part("status").textContent = words;
  }
}

async function outcomeOf(run) {
  try {
    const given = { sql: run.sql, ...(run.asOf ? { as_of: run.asOf } : {}) };
    const result = await ask("query", given, { id: run.id, signal: run.abort.signal });
    return { run, result, tookMs: performance.now() - run.began };
  } catch (error) {
    const isCancelled = run.isCancelled;
    return { run, error: isCancelled ? null : error, isCancelled, tookMs: performance.now() - run.began };
  }
}

const root = document.querySelector("[data-page=query]");
if (root) new QueryPage(root);
