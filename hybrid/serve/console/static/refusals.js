// Errors of the server as a part of a page gets them: a note in HTML, or JSON of a server that makes no page.

/** The sentence of an error and what to do about it, as one text. `type` is the content type of the answer. */
export function refusalOf(text, type, status) {
  const { error, hint } = isJson(type) ? ofJson(text) : ofNote(text);
  const sentence = typeof error === "string" && error ? error : `The server answers with status ${status}.`;
  return typeof hint === "string" && hint ? `${sentence} ${hint}` : sentence;
}

/** Whether an answer is JSON. */
export function isJson(type) {
  return /^application\/json\b/i.test(type ?? "");
}

function ofJson(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

// A document that is parsed but never shown: it loads nothing and runs no script.
function ofNote(text) {
  const note = new DOMParser().parseFromString(text, "text/html").querySelector('[data-testid="error"]');
  return { error: note?.querySelector("p, li")?.textContent.trim(), hint: note?.querySelector(".note-hint")?.textContent.trim() };
}
