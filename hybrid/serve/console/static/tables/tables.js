// The form of a table's documents: an error leads to its line, and what was checked is forgotten when a text changes.

const LINE = /\(line (\d+)\)|: line (\d+)/;
const checked = document.getElementById("checked");
const fields = [...document.querySelectorAll("[data-source]")];

function fieldOf(message) {
  return fields.find((field) => message.startsWith(field.dataset.source));
}

function showLine(field, line) {
  const lines = field.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  field.focus();
  field.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
  field.scrollTop = (field.scrollHeight / lines.length) * Math.max(0, line - 4);
}

function addLink(element) {
  const message = element.textContent.trim();
  const field = fieldOf(message);
  if (!field) return;
  field.setAttribute("aria-invalid", "true");
  const match = LINE.exec(message);
  if (!match) return;
  const line = Number(match[1] ?? match[2]);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet to-line";
  button.textContent = `Go to line ${line}`;
  button.addEventListener("click", () => showLine(field, line));
  element.append(button);
}

function readOutcome() {
  for (const field of fields) field.removeAttribute("aria-invalid");
  for (const element of checked.querySelectorAll("[data-testid=error] li, [data-testid=error] > p:not(.note-hint)")) {
    if (!element.querySelector(".to-line")) addLink(element);
  }
  const made = checked.querySelector("[data-made]");
  if (made?.dataset.open !== undefined) location.assign(made.href);
  else if (checked.childElementCount && !checked.contains(document.activeElement)) checked.focus();
  checked.scrollIntoView({ block: "nearest" });
}

document.addEventListener("htmx:after:swap", () => {
  if (checked && !checked.querySelector("[data-poll], .run")) readOutcome();
});

document.addEventListener("input", (event) => {
  if (!checked || !event.target.closest("[data-documents]")) return;
  checked.replaceChildren();
  event.target.removeAttribute("aria-invalid");
});
