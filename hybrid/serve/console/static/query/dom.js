// Small helpers for elements. Text is always set as text, never as HTML.

/** A new element with a class and a text. */
export function element(name, className = "", text = undefined) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** A centred note in place of something that is not there. */
export function emptyNote(text) {
  return element("p", "empty", text);
}

/** The parts of the page by their `data-part`. */
export function partsOf(root) {
  return (name) => root.querySelector(`[data-part="${name}"]`);
}
