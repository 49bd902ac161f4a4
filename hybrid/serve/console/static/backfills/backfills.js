// Pages of backfills: what was planned is opened, parts follow each other's changes, and the author's name is kept.

const SETTLE_MS = 80;
const PARTS = ["plans", "work", "bucket-rows", "trail"];
const USER = "hybrid-user";

function refresh(...names) {
  for (const name of names) document.getElementById(name)?.dispatchEvent(new CustomEvent("refresh"));
}

function shownState() {
  return document.getElementById("work")?.dataset.state;
}

// After a change the parts show what it did. Runs are queued: what follows is polled.

document.addEventListener("changed", () => setTimeout(() => refresh(...PARTS), SETTLE_MS));

// What an action says may be below the screen, where it would not be updated either.

const grown = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.childElementCount) target.scrollIntoView({ block: "nearest" });
  }
});
for (const place of document.querySelectorAll("#planned, #done")) grown.observe(place);

// A run in `done` or `planned` that has ended: its plan is opened, or the page shows what it did.

let state = shownState();
let followed;

function follow(made) {
  if (made.closest("[data-open-made]")) location.assign(made.href);
  else refresh(...PARTS);
}

document.addEventListener("htmx:after:swap", () => {
  const made = document.querySelector("#planned [data-made], #done [data-made]");
  if (made && made !== followed) {
    followed = made;
    follow(made);
  }
  const now = shownState();
  if (now !== state) {
    state = now;
    refresh("result", "bucket-rows", "trail");
  }
  keepFocus();
  fillNames();
});

// A button that is gone leaves the focus where its part is, for whoever works by keyboard.

let focused = false;
document.addEventListener("focusin", (event) => {
  focused = Boolean(event.target.closest("#work"));
});

function keepFocus() {
  if (focused && document.activeElement === document.body) document.getElementById("work")?.focus();
}

// The name of an author without an account.

function fillNames() {
  let name = "";
  try {
    name = localStorage.getItem(USER) ?? "";
  } catch { /* not kept here */ }
  for (const field of document.querySelectorAll("[data-remember=user]")) {
    if (name && !field.value && document.activeElement !== field) field.value = name;
  }
}

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-remember=user]")) return;
  try {
    localStorage.setItem(USER, event.target.value);
  } catch { /* it lasts as long as the page */ }
});

// The statement to compare is part of the address.

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-compare]")) return;
  const address = new URL(location.href);
  address.searchParams.set("sql", event.target.elements.sql.value);
  history.replaceState(history.state, "", address);
}, true);

document.addEventListener("keydown", (event) => {
  const form = event.target.closest?.("[data-compare]");
  if (form && event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});

fillNames();
