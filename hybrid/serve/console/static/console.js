// What every page does: updates of what is shown, the colour scheme, times, copies, menus, confirmations and toasts.

import { element } from "./dom.js";
import { pollAfterMs } from "./polling.js";
import { isJson, refusalOf } from "./refusals.js";

const POLL_TICK_MS = 250;
const TIMES_MS = 5000;
const TOAST_MS = 8000;
const SCHEMES = ["auto", "light", "dark"];

// Updates. An element with `data-poll="MS"` and `hx-trigger="poll"` is asked for while it can be seen.

const tags = new WeakMap();
const due = new WeakMap();

function isShown(element) {
  if (document.visibilityState !== "visible" || !element.checkVisibility()) return false;
  const box = element.getBoundingClientRect();
  return box.bottom >= 0 && box.top <= window.innerHeight;
}

function poll(now = performance.now(), all = false) {
  for (const element of document.querySelectorAll("[data-poll]")) {
    if (!isShown(element)) continue;
    const at = due.get(element);
    if (at === undefined && !all) {
      due.set(element, now + Number(element.dataset.poll));
    } else if (all || now >= at) {
      due.set(element, now + Number(element.dataset.poll));
      element.dispatchEvent(new CustomEvent("poll"));
    }
  }
}

setInterval(() => poll(), POLL_TICK_MS);
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") poll(performance.now(), true);
});
document.addEventListener("changed", () => setTimeout(() => poll(performance.now(), true), 50));

document.addEventListener("htmx:config:request", (event) => {
  const { ctx } = event.detail;
  const tag = ctx.sourceElement?.dataset?.poll ? tags.get(ctx.sourceElement) : undefined;
  if (tag) ctx.request.headers["If-None-Match"] = tag;
});
document.addEventListener("htmx:after:request", (event) => {
  const { ctx } = event.detail;
  const tag = ctx.response?.headers?.get("ETag");
  const source = ctx.sourceElement;
  if (source?.dataset?.poll && tag) tags.set(source, tag);
  if (source?.dataset?.poll) due.set(source, performance.now() + pollAfterMs(Number(source.dataset.poll), ctx.response?.headers?.get("Server-Timing")));
  setOnline(true);
  if (ctx.response?.status >= 400) refuse(event, ctx);
  else if (source?.dataset) delete source.dataset.refused;
});

// An error answers a request of htmx. A part that updates itself stays as it is, or it would never ask again; what a
// form asked for is answered with the note. A redirection, to the sign-in page, is followed.

function refuse(event, ctx) {
  const { sourceElement: source, response: { headers, status } } = ctx;
  if (headers.get("HX-Redirect")) return;
  const type = headers.get("Content-Type");
  const refusal = refusalOf(ctx.text, type, status);
  if (!source?.matches('[data-poll], [hx-swap$="Morph"]')) {
    if (isJson(type)) ctx.text = noteOf(refusal);
    return;
  }
  event.preventDefault();
  tags.delete(source);
  if (source.dataset.refused !== refusal) toast(`${refusal} What you see may be old.`, "bad");
  source.dataset.refused = refusal;
}

function noteOf(refusal) {
  const note = element("div", "note note-bad");
  note.dataset.testid = "error";
  note.setAttribute("role", "alert");
  note.append(element("p", "", refusal));
  return note.outerHTML;
}

document.addEventListener("htmx:error", (event) => {
  if (!event.detail?.ctx?.response) setOnline(false);
});
document.addEventListener("htmx:after:swap", () => showTimes());

function setOnline(online) {
  const was = document.documentElement.dataset.offline !== undefined;
  if (online && was) {
    delete document.documentElement.dataset.offline;
    toast("The server answers again.");
  } else if (!online && !was) {
    document.documentElement.dataset.offline = "";
    toast("The server does not answer. What you see may be old.", "bad");
  }
}

// Toasts: one sentence, read out, gone after a while.

export function toast(text, kind = "plain") {
  const box = document.getElementById("toasts");
  const note = document.createElement("p");
  note.className = `toast toast-${kind}`;
  note.textContent = text;
  box.append(note);
  setTimeout(() => note.remove(), TOAST_MS);
}

// JSON of this server; null for 304. Throws an Error with the server's sentence; `hint` is what to do about it.

export async function fetchJson(url, options = {}) {
  const { onAnswer: _, ...request } = options;
  const headers = { Accept: "application/json", ...options.headers };
  let answer;
  try {
    answer = await fetch(url, { cache: "no-cache", ...request, headers });
  } catch {
    setOnline(false);
    throw Object.assign(new Error("The server does not answer."), { offline: true });
  }
  setOnline(true);
  options.onAnswer?.(answer);
  if (answer.status === 304) return null;
  const body = await answer.json().catch(() => ({}));
  if (answer.status === 401) signIn();
  if (!answer.ok) throw Object.assign(new Error(body.error ?? `HTTP ${answer.status}`), { hint: body.hint, status: answer.status });
  return body;
}

// The way to the sign-in page, and back to this one.

export function signIn() {
  location.assign(`/ui/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);
}

// The colour scheme.

const button = document.querySelector("[data-theme-switch]");

function scheme() {
  return document.documentElement.dataset.theme ?? "auto";
}

function setScheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("hybrid-theme", name);
  } catch { /* it lasts as long as the page */ }
  nameScheme();
  document.dispatchEvent(new CustomEvent("scheme"));
}

function nameScheme() {
  const text = { auto: "automatic", light: "light", dark: "dark" }[scheme()];
  button?.setAttribute("aria-label", `Colour scheme: ${text}`);
  button?.setAttribute("title", `Colour scheme: ${text}`);
}

button?.addEventListener("click", () => setScheme(SCHEMES[(SCHEMES.indexOf(scheme()) + 1) % SCHEMES.length]));
nameScheme();

// Times: `<time datetime data-relative>` says how long ago, or how soon.

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

function duration(seconds) {
  const size = Math.abs(seconds);
  const at = UNITS.findIndex(([, length]) => size >= length);
  if (at < 0) return "0 s";
  const [unit, length] = UNITS[at];
  const whole = Math.floor(size / length);
  const next = UNITS[at + 1];
  const rest = next && whole < 10 ? Math.floor((size % length) / next[1]) : 0;
  return rest ? `${whole} ${unit} ${rest} ${next[0]}` : `${whole} ${unit}`;
}

function relative(iso, now = Date.now()) {
  const seconds = (now - Date.parse(iso)) / 1000;
  if (Number.isNaN(seconds)) return iso;
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `${duration(seconds)} ago` : `in ${duration(seconds)}`;
}

function showTimes() {
  for (const element of document.querySelectorAll("time[data-relative]")) {
    const text = relative(element.dateTime);
    if (element.textContent !== text) element.textContent = text;
  }
}

setInterval(() => document.visibilityState === "visible" && showTimes(), TIMES_MS);
showTimes();

// Copies, menus, confirmations.

const OPEN_MENUS = "details[data-menu][open]";

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no permission, or not a secure context
    if (!copyBySelection(text)) {
      toast("The browser does not allow to copy here. Select the text instead.", "bad");
      return;
    }
  }
  toast("Copied.");
}

function copyBySelection(text) {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  return isCopied;
}

// Closes all menus but the one around an element.

export function closeMenus(around = null) {
  for (const menu of document.querySelectorAll(OPEN_MENUS)) {
    if (!menu.contains(around)) menu.open = false;
  }
}

// A form in a menu has done its work: what it did is shown elsewhere.

document.addEventListener("changed", (event) => {
  const menu = event.target.closest?.(OPEN_MENUS);
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

document.addEventListener("click", (event) => {
  const copied = event.target.closest("[data-copy]");
  if (copied) copy(copied.dataset.copy);
  closeMenus(event.target);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll(OPEN_MENUS)) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

function checkConfirmations() {
  for (const field of document.querySelectorAll("[data-confirm]")) {
    const danger = field.form?.querySelector(".danger");
    if (danger) danger.disabled = field.value !== field.dataset.confirm;
  }
}

document.addEventListener("input", checkConfirmations);
document.addEventListener("input", (event) => {
  const choice = document.getElementById(event.target.dataset?.chooses);
  if (choice) choice.checked = true;
});
document.addEventListener("htmx:after:swap", checkConfirmations);
checkConfirmations();
