// What a run brought: its rows as table or chart, its plan, its facts, copies and downloads; or its error.

import { closeMenus, copy } from "../console.js";
import { Chart, chartSettings, drawableColumns } from "./chart.js";
import { asCommandLine, asCurl, asPython, downloadAddress, twinAddress } from "./copying.js";
import { element, emptyNote } from "../dom.js";
import { Grid } from "./grid.js";
import { isOfAnotherState, showPlan } from "./plan.js";
import { ask, exported, Refused } from "./server.js";
import { counted, duration } from "./values.js";

const ROWS_MAX = 100_000; // shown; a download has all
const LIMITED = "Only the first "; // how the warning about the default LIMIT begins
const VIEWS = ["table", "chart", "plan"];
const KEEP_FILE_MS = 10_000;

/**
 * Shows outcomes: `{run, result, error, isCancelled, tookMs}`. `page` has `settings()` of the tab (`view`, `chart`),
 * `keep(fields)` for them, `hasAccounts`, `pin(revision)` and `addLimit(run)`.
 */
export class OutcomeView {
  constructor(part, page) {
    this._part = part;
    this._page = page;
    this._outcome = null;
    this._cell = null;
    this._grid = new Grid(part("grid"), (cell) => this._showCell(cell));
    this._chart = new Chart(part("chart"));
    const on = (name, type, act) => part(name).addEventListener(type, act);
    on("views", "click", (event) => this._onView(event));
    on("views", "keydown", (event) => this._onViewKey(event));
    on("chart-settings", "change", () => this._onChartSettings());
    on("chart-settings", "submit", (event) => event.preventDefault());
    on("copy-cell", "click", () => copy(this._cell.text));
    on("grid", "copy-cell", () => copy(this._cell.text));
    on("cell-close", "click", () => { part("cell").hidden = true; });
    on("pin", "click", () => page.pin(this._outcome.result.revision));
    on("more", "click", () => page.addLimit(this._outcome.run));
    on("result", "click", (event) => this._onCopy(event));
    on("downloads", "click", (event) => this._onDownload(event));
  }

  /** Shows an outcome; null: nothing has run. Returns the sentence for screen readers. */
  show(outcome) {
    const part = this._part;
    const result = outcome?.result ?? null;
    this._outcome = outcome;
    this._cell = null;
    if (outcome !== null) part("rendered")?.remove();
    part("empty").hidden = outcome !== null || part("rendered") !== null;
    part("result").hidden = result === null;
    part("cell").hidden = true;
    part("cancelled").hidden = !outcome?.isCancelled;
    part("error").replaceChildren(...(outcome?.error ? [errorNote(outcome.error)] : []));
    if (outcome?.isCancelled) part("cancelled").textContent = `Cancelled after ${duration(outcome.tookMs)}.`;
    if (result === null) {
      this._chart.clear();
      return outcome === null ? "" : outcome.isCancelled ? "Cancelled" : "The statement failed";
    }
    const count = result.rows.length;
    outcome.shown = count > ROWS_MAX ? { ...result, rows: result.rows.slice(0, ROWS_MAX) } : result;
    this._showFacts();
    this._showView(this._page.settings().view);
    return `${counted(count, "row")} in ${duration(outcome.tookMs)}`;
  }

  _showFacts() {
    const part = this._part;
    const { result, shown, run, tookMs } = this._outcome;
    const count = counted(result.rows.length, "row");
    const isCut = shown.rows.length < result.rows.length;
    part("rows").textContent = isCut ? `${shown.rows.length.toLocaleString("en-US")} of ${count}; a download has all` : count;
    part("took").textContent = duration(tookMs);
    part("source").textContent = result.source === "cache" ? "from memory" : `from ${result.source}`;
    part("read").textContent = readWords(result.stats);
    part("revision").textContent = result.revision;
    part("revision-row").hidden = !result.revision;
    part("permalink").hidden = run.link === null;
    part("json-twin").hidden = run.link === null;
    part("json-twin").href = twinAddress(run);
    part("warnings").replaceChildren(...result.warnings.map((warning) => element("li", "", warning)));
    part("warnings").hidden = !result.warnings.length;
    part("limited").hidden = !result.warnings.some((warning) => warning.startsWith(LIMITED));
    for (const link of part("downloads").querySelectorAll("a")) {
      link.href = downloadAddress(run, link.dataset.format) ?? "";
    }
  }

  // Views

  _showView(view) {
    for (const name of VIEWS) {
      const tab = this._part("views").querySelector(`[data-view="${name}"]`);
      tab.setAttribute("aria-selected", String(name === view));
      tab.tabIndex = name === view ? 0 : -1;
      this._part(`view-${name}`).hidden = name !== view;
    }
    if (view === "table") this._grid.show(this._outcome.shown);
    if (view === "chart") this._showChart();
    else this._chart.clear();
    if (view === "plan") this._explain();
  }

  _changeView(view) {
    this._page.keep({ view });
    this._showView(view);
  }

  _onView(event) {
    const view = event.target.closest("[data-view]")?.dataset.view;
    if (view) this._changeView(view);
  }

  _onViewKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const place = VIEWS.indexOf(this._page.settings().view);
    this._changeView(VIEWS[(place + step + VIEWS.length) % VIEWS.length]);
    this._part("views").querySelector('[aria-selected="true"]').focus();
  }

  async _explain() {
    const outcome = this._outcome;
    const target = this._part("plan-drawing");
    target.replaceChildren(emptyNote("Explaining the statement…"));
    const { sql, asOf } = outcome.run;
    outcome.explained ??= ask("explain", { sql, ...(asOf ? { as_of: asOf } : {}) });
    try {
      const explanation = await outcome.explained;
      const asked = isOfAnotherState(outcome.run) ? null : ask;
      if (this._outcome === outcome) await showPlan(target, explanation, outcome.result.revision, asked);
    } catch (error) {
      if (this._outcome === outcome) target.replaceChildren(emptyNote(error.message));
    }
  }

  _showChart() {
    const { shown } = this._outcome;
    const settings = chartSettings(shown, this._page.settings().chart);
    this._part("chart-kind").value = settings.kind;
    this._part("chart-x").replaceChildren(...shown.columns.map((name) => new Option(name, name)));
    this._part("chart-x").value = settings.x;
    const columns = drawableColumns(shown);
    this._part("chart-y").replaceChildren(...columns.map((name) => checkbox(name, settings.y.includes(name))));
    this._chart.show(shown, settings);
  }

  _onChartSettings() {
    const y = [...this._part("chart-y").querySelectorAll("input:checked")].map((input) => input.value);
    const chart = { kind: this._part("chart-kind").value, x: this._part("chart-x").value, y };
    this._page.keep({ chart });
    this._chart.show(this._outcome.shown, chart);
  }

  // Cells, copies, downloads

  _showCell(cell) {
    this._cell = cell;
    this._part("cell").hidden = false;
    this._part("cell-name").textContent = `${cell.column}, row ${(cell.row + 1).toLocaleString("en-US")}`;
    this._part("cell-type").textContent = cell.type.toLowerCase();
    this._part("cell-text").textContent = cell.isNull ? "NULL" : cell.text;
    this._part("cell-text").classList.toggle("is-null", cell.isNull);
  }

  _onCopy(event) {
    const kind = event.target.closest("[data-copy-as]")?.dataset.copyAs;
    if (!kind) return;
    const { run, result } = this._outcome;
    const request = { origin: location.origin, sql: run.sql, asOf: run.asOf, hasAccounts: this._page.hasAccounts };
    const make = {
      curl: () => asCurl(request), cli: () => asCommandLine(request), python: () => asPython(request),
      link: () => run.link, revision: () => result.revision,
    }[kind];
    copy(make());
    closeMenus();
  }

  _onDownload(event) {
    const format = event.target.closest("a[data-format]")?.dataset.format;
    if (!format) return;
    closeMenus();
    if (downloadAddress(this._outcome.run, format) !== null) return; // the browser follows the link
    event.preventDefault();
    this._downloadLong(format);
  }

  async _downloadLong(format) {
    try {
      const link = element("a");
      link.href = URL.createObjectURL(await exported(this._outcome.run, format));
      link.download = `result.${format}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), KEEP_FILE_MS);
    } catch (error) {
      this._part("error").replaceChildren(errorNote(error));
    }
  }
}

/** The sentence of an error for the page. */
export function sentenceOf(error) {
  return error instanceof Refused ? error.message : `The server did not answer: ${error.message}`;
}

function errorNote(error) {
  const note = element("div", "note note-bad");
  note.dataset.testid = "error";
  note.append(element("p", "", sentenceOf(error)), ...(error.hint ? [element("p", "note-hint", error.hint)] : []));
  return note;
}

// What the engine read: segments and rows, of how many.
function readWords(stats) {
  const segments = Number(stats.num_segments_queried);
  const rows = Number(stats.total_docs);
  if (!segments && !rows) return "";
  const of = (part, whole) => `${Number(part).toLocaleString("en-US")} of ${whole.toLocaleString("en-US")}`;
  return `read ${of(stats.num_segments_processed, segments)} segments, ${of(stats.num_docs_scanned, rows)} rows`;
}

function checkbox(name, isChecked) {
  const label = element("label");
  const input = element("input");
  input.type = "checkbox";
  input.value = name;
  input.checked = isChecked;
  label.append(input, name);
  return label;
}
