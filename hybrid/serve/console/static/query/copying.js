// The statement for other clients: curl, the command line, Python, and the addresses of downloads. No DOM.

import { quoted } from "./text.js";

const URL_MAX = 8000; // longer addresses are refused by proxies

/** A text as one word of a POSIX shell. */
export function shellWord(text) {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A text as a literal of Python; several lines stay several lines. */
export function pythonLiteral(text) {
  if (!text.includes("\n")) return JSON.stringify(text);
  const inner = text.replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"').replace(/"$/, '\\"');
  return `"""${inner}"""`;
}

/** The command that sends the statement with curl. */
export function asCurl({ origin, sql, asOf, hasAccounts }) {
  const statement = asOf ? `${sql}\n;\nSET asOf = ${quoted(asOf)}` : sql;
  const body = JSON.stringify({ sql: statement });
  const token = hasAccounts ? ' -H "Authorization: Bearer $HYBRID_TOKEN"' : "";
  return `curl -sS${token} ${shellWord(`${origin}/query/sql`)} -H 'Content-Type: application/json' -d ${shellWord(body)}`;
}

/** The command that sends the statement with the command line. */
export function asCommandLine({ origin, sql, asOf }) {
  const moment = asOf ? ` --as-of ${shellWord(asOf)}` : "";
  return `hybrid --server ${shellWord(origin)} query${moment} ${shellWord(sql)}`;
}

/** The Python code that runs the statement. */
export function asPython({ origin, sql, asOf }) {
  const moment = asOf ? `, as_of=${JSON.stringify(asOf)}` : "";
  return [
    "import hybrid",
    "",
    `hy = hybrid.connect(${JSON.stringify(origin)})`,
    `df = hy.query(${pythonLiteral(sql)}${moment}).df()`,
  ].join("\n");
}

/** The address that downloads all rows of the statement; null where it would be too long. */
export function downloadAddress({ sql, asOf }, format) {
  const query = new URLSearchParams({ sql, format, ...(asOf ? { asOf } : {}) });
  const address = `/query/export?${query}`;
  return address.length <= URL_MAX ? address : null;
}

/** The address of the page that reproduces the statement; null where it would be too long. */
export function pageAddress({ sql, asOf, plan }) {
  const query = new URLSearchParams({
    ...(sql ? { sql } : {}), ...(asOf ? { as_of: asOf } : {}), ...(plan ? { plan } : {}),
  });
  const address = query.size ? `/ui/query?${query}` : "/ui/query";
  return address.length <= URL_MAX ? address : null;
}

/** The address of the page's twin, which answers the statement as JSON. */
export function twinAddress({ sql, asOf }) {
  return `/ui/query.json?${new URLSearchParams({ sql, ...(asOf ? { as_of: asOf } : {}) })}`;
}
