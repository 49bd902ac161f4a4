// Small helpers for elements. Text is always set as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** A new element with a class and a text. */
export function element(name, className = "", text = undefined) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** A new element of SVG with its attributes and a text; null: without. */
export function svgElement(name, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
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
