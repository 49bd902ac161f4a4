// The dialog with the statements that were run in this browser.

import { element } from "../dom.js";
import { counted, duration } from "./values.js";

const SHOWN_CHARACTERS = 300;

/** Shows the history; `onChoose(entry)` is called for the chosen statement. */
export class HistoryDialog {
  constructor(part, history, onChoose) {
    this._part = part;
    this._history = history;
    this._onChoose = onChoose;
    part("history").addEventListener("click", () => this._open());
    part("history-filter").addEventListener("input", () => this._draw());
    part("history-clear").addEventListener("click", () => {
      history.clear();
      this._draw();
    });
  }

  _open() {
    this._part("history-filter").value = "";
    this._draw();
    this._part("history-dialog").showModal();
  }

  _draw() {
    const filter = this._part("history-filter").value.trim().toLowerCase();
    const entries = this._history.entries().filter((entry) => entry.sql.toLowerCase().includes(filter));
    this._part("history-list").replaceChildren(...entries.map((entry) => this._item(entry)));
    this._part("history-empty").hidden = entries.length > 0;
  }

  _item(entry) {
    const item = element("li");
    const button = element("button");
    button.type = "button";
    button.append(element("code", "", entry.sql.slice(0, SHOWN_CHARACTERS)), element("small", "", factsOf(entry)));
    button.addEventListener("click", () => {
      this._part("history-dialog").close();
      this._onChoose(entry);
    });
    item.append(button);
    return item;
  }
}

function factsOf(entry) {
  const outcome = typeof entry.rows === "number" ? counted(entry.rows, "row") : String(entry.outcome ?? "failed");
  return [
    new Date(entry.at).toLocaleString(), outcome, duration(Number(entry.tookMs) || 0),
    ...(entry.asOf ? [`as of ${String(entry.asOf).slice(0, 40)}`] : []), ...(entry.plan ? [`plan ${entry.plan}`] : []),
  ].join(" · ");
}
