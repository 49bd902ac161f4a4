// Calls of verbs on the server, as the command line makes them.

import { signIn } from "../console.js";
import { parseExactly } from "./values.js";

/** A refusal of the server: its sentence, and `hint`, what to do. */
export class Refused extends Error {
  constructor(document, status) {
    super(String(document?.error ?? `The server answered with status ${status}.`));
    this.hint = typeof document?.hint === "string" ? document.hint : "";
    this.status = status;
  }
}

/** The result of a verb. `id` names the request, so that it can be cancelled. */
export async function ask(verb, given, { id, signal } = {}) {
  const headers = { "Content-Type": "application/json", Accept: "application/json", ...(id ? { "X-Request-Id": id } : {}) };
  const response = await fetch(`/verbs/${verb}`, { method: "POST", headers, body: JSON.stringify(given), signal });
  if (response.status === 401) signIn();
  const text = await response.text();
  let document = null;
  try {
    document = parseExactly(text);
  } catch {
    throw new Refused(null, response.status);
  }
  if (!response.ok) throw new Refused(document, response.status);
  return document;
}

/** Stops a statement on the server. */
export async function cancelOnServer(id) {
  await fetch(`/query/${id}`, { method: "DELETE" }).catch(() => null);
}

/** All rows of a statement in a format, as a file in memory: for statements that are too long for an address. */
export async function exported({ sql, asOf }, format) {
  const body = JSON.stringify({ sql, format, ...(asOf ? { asOf } : {}) });
  const headers = { "Content-Type": "application/json" };
  const response = await fetch("/query/export", { method: "POST", headers, body });
  if (!response.ok) throw new Refused(await response.json().catch(() => null), response.status);
  return response.blob();
}
