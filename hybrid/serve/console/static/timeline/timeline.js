// A table's timeline: zoom, pan, hover, keyboard, a range for a backfill, and updates while data arrives.

import { fetchJson, toast } from "../console.js";
import { element, svgElement } from "../dom.js";
import { pollAfterMs } from "../polling.js";
import { Drawing, boxOf } from "./drawing.js";
import { STATES, factsOf, marksOf, rowsBetween, sentenceOf } from "./marks.js";
import { LONGEST, countText, momentIso, momentText, sizeText, stretchText } from "./scale.js";

const POLL_MS = 2000, POLL_TICK_MS = 250, SETTLE_MS = 140, ZOOM = 1.6, SHORTEST = 1000, CLICK_PIXELS = 4, PAN_SHARE = 0.25;
const LEGEND = ["present", "corrected", "missing", "running", "failed", "consuming", "sealed", "moved", "tail", "late"];

/** The messages in Kafka that are not committed, by partition, as JSON: of the status, which comes by itself and maybe later. */
const tailsNow = () => document.querySelector("[data-tails]")?.dataset.tails ?? "{}";
/** What the cards below the marks show: it stays the same while rows only arrive. */
const factsNow = (model) => JSON.stringify([model.boundary, model.frontier, model.corrections]);

class Timeline {
  constructor(root) {
    this.root = root;
    this.parts = Object.fromEntries([...root.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
    this.state = { model: null, marks: [], view: null, unit: "rows", selection: null, focus: null, highest: 1 };
    this.drag = "select";
    this.drawing = new Drawing(this.parts.svg);
    this.tag = null;
    this.asked = 0;
    this.refusal = null;
    this.due = performance.now() + POLL_MS;
    this.frame = null;
    this.take(JSON.parse(this.parts.model.textContent));
    this.state.view = { start: this.state.model.window[0], end: this.state.model.window[1] };
    this.listen();
    new ResizeObserver(() => this.redraw()).observe(this.parts.stage);
    this.redraw();
    root.dataset.ready = "true";
  }

  // Data

  follow(model) {
    const isSame = factsNow(model) === factsNow(this.state.model);
    this.take(model);
    if (isSame) return;
    const facts = document.getElementById("facts");
    facts?.setAttribute("hx-get", this.pageAddress());  // of the window in sight, as the marks are
    facts?.dispatchEvent(new CustomEvent("refresh"));
  }

  take(model) {
    const wasWhole = this.state.view !== null && this.isWhole();
    this.state.model = model;
    this.tails = tailsNow();
    this.state.marks = marksOf(model, JSON.parse(this.tails));
    this.measure();
    this.legend();
    this.countSelection();
    if (wasWhole) this.state.view = { start: model.reach[0], end: model.reach[1] };
    this.list();
    this.redraw();
  }

  measure() {
    this.state.highest = Math.max(1, ...this.state.model.offline.map((mark) => mark[this.state.unit]));
  }

  isWhole() {
    const { view, model } = this.state;
    return view.start <= model.reach[0] && view.end >= model.reach[1];
  }

  address() {
    const { view } = this.state;
    if (this.isWhole()) return this.root.dataset.url;
    // A little more than is seen, so that panning shows marks at once.
    const more = (view.end - view.start) * PAN_SHARE;
    return `${this.root.dataset.url}?start=${Math.floor(view.start - more)}&end=${Math.ceil(view.end + more)}`;
  }

  async refresh() {
    const address = this.address();
    const number = ++this.asked;
    this.waits = true;
    this.due = performance.now() + POLL_MS; // also after an error
    const headers = this.tag?.address === address ? { "If-None-Match": this.tag.value } : {};
    try {
      const model = await fetchJson(address, { headers, cache: "no-store", onAnswer: (answer) => this.noteAnswer(address, answer) });
      this.refusal = null;
      if (model && number === this.asked) {
        if (model.reach) this.follow(model);
        else location.reload();
      }
    } catch (error) {
      if (!error.offline && number === this.asked) this.refuse(`${error.message}${error.hint ? ` ${error.hint}` : ""}`);
    } finally {
      if (number === this.asked) this.waits = false;
    }
  }

  /** Says an error once, however often it answers. */
  refuse(refusal) {
    if (refusal !== this.refusal) toast(refusal, "bad");
    this.refusal = refusal;
  }

  isDue() {
    return document.visibilityState === "visible" && !this.dragging && !this.waits && performance.now() >= this.due;
  }

  noteAnswer(address, answer) {
    const value = answer.headers.get("ETag");
    this.due = performance.now() + pollAfterMs(POLL_MS, answer.headers.get("Server-Timing"));
    if (answer.ok && value) this.tag = { address, value };
  }

  /** After a pause: marks at their exact scale, the address, and the marks of the new window. */
  settle() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      this.drawing.forget();
      this.redraw();
      // Not in each frame: it costs more than the drawing, and browsers ignore it when it is called too often.
      history.replaceState(null, "", this.pageAddress());
      this.refresh();
    }, SETTLE_MS);
  }

  pageAddress() {
    const { view } = this.state;
    return this.isWhole() ? location.pathname : `${location.pathname}?start=${Math.round(view.start)}&end=${Math.round(view.end)}`;
  }

  // The window

  setView(start, end) {
    const { model } = this.state;
    const length = Math.min(Math.max(end - start, SHORTEST), LONGEST);
    const middle = (start + end) / 2;
    // Some of the data always stays in sight.
    const low = Math.min(Math.max(middle - length / 2, model.reach[0] - length * 0.9), model.reach[1] - length * 0.1);
    this.state.view = { start: low, end: low + length };
    this.tip(null);
    this.redraw();
    this.settle();
  }

  zoom(factor, at = null) {
    const { view } = this.state;
    const place = at ?? (view.start + view.end) / 2;
    this.setView(place - (place - view.start) / factor, place + (view.end - place) / factor);
  }

  pan(share) {
    const { view } = this.state;
    const by = (view.end - view.start) * share;
    this.setView(view.start + by, view.end + by);
  }

  all() {
    const { reach } = this.state.model;
    this.state.view = { start: reach[0], end: reach[1] };
    this.redraw();
    this.settle();
  }

  // Drawing

  redraw() {
    if (this.frame !== null || !this.state.view) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      const width = Math.floor(this.parts.stage.clientWidth);
      if (width < 50) return;
      this.place = this.drawing.draw(this.state, width);
      const { view } = this.state;
      this.parts.window.textContent = `${stretchText(Math.round(view.start), Math.round(view.end))} UTC`;
    });
  }

  legend() {
    const there = new Set(this.state.marks.map((mark) => mark.state));
    if (this.state.marks.some((mark) => mark.late_segments)) there.add("late");
    this.parts.legend.replaceChildren(...LEGEND.filter((state) => there.has(state) || state === "missing" || state === "corrected").map((state) => {
      const item = element("li");
      const swatch = svgElement("svg", { viewBox: "0 0 18 14", "aria-hidden": "true" });
      swatch.append(state === "late"
        ? svgElement("path", { d: "M9 2l5 9H4z", class: "tl-late" })
        : svgElement("rect", { x: 1, y: 1, width: 16, height: 12, rx: 3, class: `tl-${state}` }));
      const glyph = state === "late" ? "" : STATES[state].glyph; // the swatch is the triangle already
      item.append(swatch, `${glyph} ${STATES[state].word}`.trim());
      return item;
    }));
  }

  list() {
    if (!this.parts.list.open) return;
    const table = element("table");
    const head = table.createTHead().insertRow();
    for (const name of ["Half", "Time", "State", "Rows", "Size", "Segments"]) {
      const cell = element("th", ["Rows", "Size"].includes(name) ? "num" : "", name);
      cell.scope = "col";
      head.append(cell);
    }
    const body = table.createTBody();
    for (const mark of this.state.marks) {
      const row = body.insertRow();
      const half = mark.lane === "offline" ? "Offline" : `Realtime ${mark.partitions.join(", ")}`;
      const state = STATES[mark.state].word + (mark.late_segments ? ", late rows" : "");
      const cells = [half, mark.state === "tail" ? "" : stretchText(mark.start_ms, mark.end_ms), state, countText(mark.rows), mark.state === "tail" ? "" : sizeText(mark.bytes), mark.names.join(", ")];
      row.append(...cells.map((text, number) => element("td", number === 3 || number === 4 ? "num" : "", text)));
    }
    this.parts.rows.replaceChildren(table);
  }

  // Hover

  markAt(x, y) {
    for (let number = this.state.marks.length - 1; number >= 0; number -= 1) {
      const mark = this.state.marks[number];
      const box = boxOf(mark, this.state, this.place);
      // A bucket is hit over the whole height of its lane.
      const top = mark.lane === "offline" ? this.place.offlineTop : box.y - 3;
      const bottom = mark.lane === "offline" ? this.place.offlineTop + this.place.offlineHeight : box.y + box.height + 3;
      if (x >= box.x - 1 && x <= box.x + box.width + 1 && y >= top && y <= bottom) return mark;
    }
    return null;
  }

  tip(lines, x = 0, y = 0) {
    const { tip, stage } = this.parts;
    tip.hidden = !lines;
    if (!lines) return;
    const [head, ...facts] = lines;
    const list = element("dl");
    for (const [name, text] of facts) list.append(element("dt", "", name), element("dd", "", text));
    tip.replaceChildren(element("b", "", head.join(" · ")), list);
    const base = stage.offsetLeft;
    const left = Math.min(Math.max(base + x - tip.offsetWidth / 2, 4), this.root.clientWidth - tip.offsetWidth - 4);
    tip.style.left = `${left}px`;
    tip.style.top = `${stage.offsetTop + y + 14}px`;
  }

  boundaryLines() {
    const { boundary, frontier } = this.state.model;
    const offsets = Object.entries(frontier).slice(0, 8).map(([partition, offset]) => [`Partition ${partition}`, `moved up to offset ${countText(offset)}`]);
    return [["Boundary", momentText(boundary.limit_ms)], ["Mode", boundary.mode], ...offsets, ["So", "Before this time and below these offsets OFFLINE answers; REALTIME answers for the rest."]];
  }

  hover(event) {
    if (!this.place || this.dragging) return;
    const { x, y } = this.point(event);
    const at = this.state.model.boundary?.limit_ms;
    const isLine = at !== null && at !== undefined && Math.abs(this.place.x(at) - x) < 5 && y < this.place.axisTop;
    const mark = isLine ? null : this.markAt(x, y);
    if (!isLine && !mark) return this.tip(null);
    this.tip(isLine ? this.boundaryLines() : factsOf(mark, this.state.model), x, isLine ? 20 : mark.lane === "offline" ? this.place.offlineTop + this.place.offlineHeight : y);
  }

  point(event) {
    const box = this.parts.svg.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  // Dragging

  press(event) {
    if (event.button !== 0 || !this.place) return;
    const { x, y } = this.point(event);
    const pans = (this.drag === "pan") !== event.shiftKey || y >= this.place.axisTop - 4 || event.pointerType === "touch";
    this.dragging = { x, pans, from: this.place.at(x), view: { ...this.state.view }, moved: false };
    this.parts.stage.setPointerCapture(event.pointerId);
    this.tip(null);
  }

  move(event) {
    if (!this.dragging) return this.hover(event);
    const { x } = this.point(event);
    const { dragging } = this;
    if (Math.abs(x - dragging.x) > CLICK_PIXELS) dragging.moved = true;
    if (!dragging.moved) return undefined;
    if (dragging.pans) {
      const by = (dragging.x - x) / this.place.perMs;
      this.setView(dragging.view.start + by, dragging.view.end + by);
    } else this.select(dragging.from, this.place.at(x));
    return undefined;
  }

  release(event) {
    const { dragging } = this;
    this.dragging = null;
    if (!dragging) return;
    if (!dragging.moved) {
      const { x, y } = this.point(event);
      const mark = this.markAt(x, y);
      this.focus(mark?.key ?? null);
      if (mark?.lane === "offline") this.select(mark.start_ms, mark.end_ms - 1);
      else this.select(null);
    }
  }

  /** Selects whole buckets from one moment to another, in either order; null: nothing. */
  select(from, to) {
    const { selection, backfill } = this.parts;
    if (from === null) {
      this.state.selection = null;
      selection.hidden = true;
      return this.redraw();
    }
    const length = this.state.model.bucket_ms;
    const start = Math.floor(Math.min(from, to) / length) * length;
    const end = (Math.floor(Math.max(from, to) / length) + 1) * length;
    this.state.selection = { start, end };
    this.countSelection();
    backfill.href = `${this.root.dataset.backfills}?start=${encodeURIComponent(momentIso(start))}&end=${encodeURIComponent(momentIso(end))}`;
    backfill.hidden = this.root.dataset.mayCorrect === undefined;
    selection.hidden = false;
    return this.redraw();
  }

  /** Says what is selected. A model of a window without all of it says nothing new. */
  countSelection() {
    const { selection, model } = this.state;
    if (!selection) return;
    const { start, end } = selection;
    const isSeen = model.window[0] <= Math.max(start, model.reach[0]) && model.window[1] >= Math.min(end, model.reach[1]);
    const isSaid = this.said?.start === start && this.said.end === end;
    if (isSaid && !isSeen) return;
    this.said = selection;
    const { rows, isExact } = rowsBetween(model.offline, start, end);
    const buckets = (end - start) / model.bucket_ms;
    this.parts.selected.textContent = `${stretchText(start, end)} · ${countText(buckets)} bucket${buckets > 1 ? "s" : ""} · ${isExact && isSeen ? "" : "about "}${countText(rows)} offline rows`;
  }

  // Keyboard

  focus(key) {
    this.state.focus = key;
    const mark = this.state.marks.find((one) => one.key === key);
    this.parts.said.textContent = mark ? sentenceOf(mark, this.state.model) : "";
    if (mark) this.showMark(mark);
    this.redraw();
  }

  showMark(mark) {
    const { view } = this.state;
    if (mark.end_ms < view.start || mark.start_ms > view.end) {
      const length = view.end - view.start;
      this.setView(mark.start_ms - length / 2, mark.start_ms + length / 2);
    }
    requestAnimationFrame(() => {
      if (!this.place || this.state.focus !== mark.key) return;
      const box = boxOf(mark, this.state, this.place);
      this.tip(factsOf(mark, this.state.model), box.x + box.width / 2, box.y + box.height);
    });
  }

  step(by, extend) {
    const { marks, focus } = this.state;
    if (!marks.length) return;
    const now = marks.findIndex((mark) => mark.key === focus);
    const next = marks[now < 0 ? 0 : Math.min(Math.max(now + by, 0), marks.length - 1)];
    if (extend && next.lane === "offline") {
      this.anchor ??= marks[Math.max(now, 0)].start_ms;
      this.select(Math.min(this.anchor, next.start_ms), Math.max(this.anchor, next.end_ms - 1));
    } else this.anchor = undefined;
    this.focus(next.key);
  }

  lane(down) {
    const { marks, focus } = this.state;
    const now = marks.find((mark) => mark.key === focus) ?? marks[0];
    const order = now.lane === "offline" ? -1 : now.row;
    const others = marks.filter((mark) => (mark.lane === "offline" ? -1 : mark.row) === order + (down ? 1 : -1));
    const near = others.toSorted((one, two) => Math.abs(one.start_ms - now.start_ms) - Math.abs(two.start_ms - now.start_ms))[0];
    if (near) this.focus(near.key);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      ArrowRight: () => this.step(1, event.shiftKey),
      ArrowLeft: () => this.step(-1, event.shiftKey),
      ArrowDown: () => this.lane(true),
      ArrowUp: () => this.lane(false),
      Home: () => this.step(-Infinity, false),
      End: () => this.step(Infinity, false),
      PageDown: () => this.pan(PAN_SHARE * 2),
      PageUp: () => this.pan(-PAN_SHARE * 2),
      "+": () => this.zoom(ZOOM),
      "=": () => this.zoom(ZOOM),
      "-": () => this.zoom(1 / ZOOM),
      0: () => this.all(),
      Enter: () => this.choose(),
      " ": () => this.choose(),
      Escape: () => this.clear(),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  choose() {
    const mark = this.state.marks.find((one) => one.key === this.state.focus);
    if (mark?.lane === "offline") this.select(mark.start_ms, mark.end_ms - 1);
    if (mark) this.parts.said.textContent = this.parts.selected.textContent || this.parts.said.textContent;
  }

  clear() {
    this.select(null);
    this.focus(null);
    this.tip(null);
  }

  // Wiring

  listen() {
    const { stage, list } = this.parts;
    stage.addEventListener("pointerdown", (event) => this.press(event));
    stage.addEventListener("pointermove", (event) => this.move(event));
    stage.addEventListener("pointerup", (event) => this.release(event));
    stage.addEventListener("pointercancel", () => { this.dragging = null; });
    stage.addEventListener("pointerleave", () => this.tip(null));
    stage.addEventListener("keydown", (event) => this.key(event));
    stage.addEventListener("blur", () => this.tip(null));
    stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    stage.addEventListener("dblclick", (event) => this.zoom(ZOOM * ZOOM, this.place.at(this.point(event).x)));
    list.addEventListener("toggle", () => this.list());
    this.parts.clear.addEventListener("click", () => this.clear());
    this.parts["zoom-selection"].addEventListener("click", () => {
      const { start, end } = this.state.selection;
      this.setView(start - (end - start) * 0.1, end + (end - start) * 0.1);
    });
    for (const button of this.root.querySelectorAll("[data-unit]")) button.addEventListener("click", () => this.setUnit(button));
    for (const button of this.root.querySelectorAll("[data-drag]")) button.addEventListener("click", () => this.setDrag(button));
    for (const button of this.root.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => ({ in: () => this.zoom(ZOOM), out: () => this.zoom(1 / ZOOM), all: () => this.all() })[button.dataset.zoom]());
    }
    setInterval(() => this.isDue() && this.refresh(), POLL_TICK_MS);
    document.addEventListener("changed", () => setTimeout(() => this.refresh(), 100));
    document.addEventListener("htmx:after:swap", () => {
      if (tailsNow() === this.tails) return;
      this.tails = tailsNow();
      this.state.marks = marksOf(this.state.model, JSON.parse(this.tails));
      this.legend();
      this.list();
      this.redraw();
    });
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 300), this.place.at(this.point(event).x));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan(event.deltaX / this.place.inner);
    }
  }

  setUnit(button) {
    this.state.unit = button.dataset.unit;
    for (const other of this.root.querySelectorAll("[data-unit]")) other.setAttribute("aria-pressed", String(other === button));
    this.measure();
    this.redraw();
  }

  setDrag(button) {
    this.drag = button.dataset.drag;
    this.parts.stage.dataset.drags = this.drag;
    for (const other of this.root.querySelectorAll("[data-drag]")) other.setAttribute("aria-pressed", String(other === button));
  }
}

function start() {
  for (const root of document.querySelectorAll("[data-page='timeline']:not([data-ready])")) new Timeline(root);
}

document.addEventListener("htmx:after:swap", start); // the first rows of an empty table have arrived
start();
