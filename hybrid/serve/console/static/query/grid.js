// The result as a table: only the rows in sight are in the document, so that any number scrolls smoothly.

import { element } from "../dom.js";
import { counted, isNumeric, textOf } from "./values.js";

const ROW_PX = 30; // as in query.css
const MARGIN_ROWS = 12;
const SAMPLE_ROWS = 200;
const WIDTH_CH = [6, 44];

/** Shows a result in `scroller`. `onSelect({row, column, text, isNull})` is called for the chosen cell. */
export class Grid {
  constructor(scroller, onSelect) {
    this._scroller = scroller;
    this._onSelect = onSelect;
    this._cell = null;
    this._drawn = null;
    scroller.addEventListener("scroll", () => this._schedule(), { passive: true });
    scroller.addEventListener("keydown", (event) => this._onKey(event));
    scroller.addEventListener("click", (event) => this._onClick(event));
    new ResizeObserver(() => this._schedule()).observe(scroller);
  }

  /** Shows the rows of a result: `{columns, types, rows}`. */
  show(result) {
    this._result = result;
    this._cell = null;
    this._drawn = null;
    const table = element("table", "result-grid");
    table.dataset.testid = "result-table";
    table.tabIndex = 0;
    table.setAttribute("role", "grid");
    table.setAttribute("aria-rowcount", String(result.rows.length + 1));
    table.setAttribute("aria-colcount", String(result.columns.length));
    table.setAttribute("aria-label", `Result: ${counted(result.rows.length, "row")}`);
    table.append(this._columnWidths(), this._head());
    this._table = table;
    this._body = table.createTBody();
    this._scroller.replaceChildren(table);
    this._scroller.scrollTop = 0;
    this._scroller.scrollLeft = 0;
    this._draw();
  }

  _columnWidths() {
    const { columns, types, rows } = this._result;
    const group = element("colgroup");
    group.append(numbered(element("col"), Math.max(4, String(rows.length).length + 2)));
    const sample = rows.length <= SAMPLE_ROWS ? rows : [...rows.slice(0, SAMPLE_ROWS), ...rows.slice(-SAMPLE_ROWS)];
    columns.forEach((name, index) => {
      const widest = sample.reduce(
        (most, row) => Math.max(most, textOf(row[index], types[index]).length), Math.max(name.length, types[index].length));
      group.append(numbered(element("col"), Math.min(Math.max(widest, WIDTH_CH[0]), WIDTH_CH[1]) + 3));
    });
    return group;
  }

  _head() {
    const head = element("thead");
    const row = head.insertRow();
    row.setAttribute("aria-rowindex", "1");
    row.append(heading("#", "row number", "grid-number"));
    this._result.columns.forEach((name, index) => {
      const type = this._result.types[index];
      const cell = heading(name, null, isNumeric(type) ? "is-number" : "");
      cell.title = `${name} (${type})`;
      cell.append(element("small", "grid-type", type.toLowerCase()));
      row.append(cell);
    });
    return head;
  }

  _schedule() {
    if (this._frame || !this._result) return;
    this._frame = requestAnimationFrame(() => {
      this._frame = null;
      this._draw();
    });
  }

  _draw() {
    const total = this._result.rows.length;
    const first = Math.max(0, Math.floor(this._scroller.scrollTop / ROW_PX) - MARGIN_ROWS);
    const height = this._scroller.clientHeight || 600;
    const last = Math.min(total, first + Math.ceil(height / ROW_PX) + 2 * MARGIN_ROWS);
    if (this._drawn && this._drawn[0] === first && this._drawn[1] === last) return;
    this._drawn = [first, last];
    const rows = document.createDocumentFragment();
    rows.append(spacer(first));
    for (let number = first; number < last; number++) rows.append(this._row(number));
    rows.append(spacer(total - last));
    this._body.replaceChildren(rows);
    this._markCell();
  }

  _row(number) {
    const row = element("tr");
    row.setAttribute("aria-rowindex", String(number + 2));
    row.dataset.row = String(number);
    const label = element("th", "grid-number", (number + 1).toLocaleString("en-US"));
    label.scope = "row";
    row.append(label);
    this._result.rows[number].forEach((value, index) => row.append(valueCell(value, this._result.types[index])));
    return row;
  }

  _onClick(event) {
    const cell = event.target.closest("td");
    const row = cell?.closest("tr[data-row]");
    if (row) this._select(Number(row.dataset.row), cell.cellIndex - 1);
  }

  _onKey(event) {
    const { rows, columns } = this._result ?? { rows: [] };
    if (!rows.length) return;
    if ((event.ctrlKey || event.metaKey) && event.key === "c" && this._cell && !getSelection().toString()) {
      event.preventDefault();
      this._scroller.dispatchEvent(new CustomEvent("copy-cell", { bubbles: true }));
      return;
    }
    if (event.ctrlKey && !["Home", "End"].includes(event.key)) return;
    const page = Math.max(1, Math.floor(this._scroller.clientHeight / ROW_PX) - 2);
    const [row, column] = this._cell ?? [0, 0];
    const next = {
      ArrowDown: [row + 1, column], ArrowUp: [row - 1, column], ArrowRight: [row, column + 1], ArrowLeft: [row, column - 1],
      PageDown: [row + page, column], PageUp: [row - page, column],
      Home: [event.ctrlKey ? 0 : row, 0], End: [event.ctrlKey ? rows.length - 1 : row, columns.length - 1],
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const target = this._cell === null ? [0, 0] : next;
    this._select(clamp(target[0], rows.length), clamp(target[1], columns.length));
  }

  _select(row, column) {
    this._cell = [row, column];
    this._reveal(row);
    this._draw();
    this._markCell();
    const marked = this._body.querySelector(".is-selected");
    marked?.scrollIntoView({ block: "nearest", inline: "nearest" });
    const value = this._result.rows[row][column];
    const type = this._result.types[column];
    this._onSelect({
      row, column: this._result.columns[column], type, text: textOf(value, type), isNull: value === null,
    });
  }

  _reveal(row) {
    const head = this._scroller.querySelector("thead")?.offsetHeight ?? 0;
    const top = row * ROW_PX;
    const room = this._scroller.clientHeight - head - ROW_PX;
    if (top < this._scroller.scrollTop) this._scroller.scrollTop = top;
    else if (top > this._scroller.scrollTop + room) this._scroller.scrollTop = top - room;
  }

  _markCell() {
    for (const old of this._body.querySelectorAll(".is-selected")) {
      old.classList.remove("is-selected");
      old.removeAttribute("aria-selected");
      old.removeAttribute("id");
    }
    this._table.removeAttribute("aria-activedescendant");
    if (this._cell === null) return;
    const row = this._body.querySelector(`tr[data-row="${this._cell[0]}"]`);
    const cell = row?.cells[this._cell[1] + 1];
    if (!cell) return;
    cell.classList.add("is-selected");
    cell.setAttribute("aria-selected", "true");
    cell.id = "grid-cell";
    this._table.setAttribute("aria-activedescendant", cell.id);
  }
}

function valueCell(value, type) {
  const cell = element("td", isNumeric(type) ? "is-number" : "");
  if (value === null) {
    cell.classList.add("is-null");
    cell.textContent = "NULL";
  } else if (value === "") {
    cell.classList.add("is-null");
    cell.textContent = "''";
  } else {
    cell.textContent = textOf(value, type).slice(0, 400);
  }
  return cell;
}

function spacer(rows) {
  const row = element("tr", "grid-spacer");
  row.setAttribute("aria-hidden", "true");
  row.style.height = `${rows * ROW_PX}px`;
  return row;
}

function heading(text, label, className) {
  const cell = element("th", className);
  cell.scope = "col";
  cell.append(element("span", "grid-name", text));
  if (label !== null) cell.setAttribute("aria-label", label);
  return cell;
}

function numbered(column, width) {
  column.style.width = `${width}ch`;
  return column;
}

function clamp(value, count) {
  return Math.min(Math.max(value, 0), count - 1);
}
