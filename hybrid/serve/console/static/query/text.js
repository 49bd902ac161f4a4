// The text of the editor: its lexemes, its statements, and where an error message points. No DOM.
// The lexemes are those of hybrid/cli/shell/lexer.py; tests/console/test_query_scripts.py compares them.

const LEXEME = new RegExp(
  [
    /(?<space>\s+)/,
    /(?<comment>--[^\n]*|\{#[\s\S]*?(?:#\}|$))/,
    /(?<string>[eE]'(?:[^'\\]|\\[\s\S]|'')*(?:'|\\?$)|'[^']*(?:'|$))/,
    /(?<name>"[^"]*(?:"|$))/,
    /(?<number>\p{Nd}+(?:\.\p{Nd}+)?(?:[eE][+-]?\p{Nd}+)?)/,
    /(?<word>[\p{L}\p{N}_$#]+)/,
    /(?<sign>[\s\S])/,
  ].map((part) => part.source).join("|"),
  "uy",
);
const SETTING = /^set\s+(\w+)\s*=\s*([\s\S]+)$/i;
const RESETTING = /^reset\s+(\w+)$/i;
const PLACE = /at line (\d+), column (\d+)(?:, near '([\s\S]*)')?/;
const QUOTED = /'([^'\n]{1,200})'/g;

/** The lexemes of a text: `{kind, text, from, to, isClosed}`. They never fail, and together are the text. */
export function lexemes(text) {
  const found = [];
  let position = 0;
  while (position < text.length) {
    const lexeme = text.startsWith("/*", position) ? blockComment(text, position) : plainLexeme(text, position);
    found.push(lexeme);
    position = lexeme.to;
  }
  return found;
}

function plainLexeme(text, position) {
  LEXEME.lastIndex = position;
  const groups = LEXEME.exec(text).groups;
  const kind = Object.keys(groups).find((name) => groups[name] !== undefined);
  const body = groups[kind];
  return { kind, text: body, from: position, to: position + body.length, isClosed: isClosed(kind, body) };
}

function isClosed(kind, body) {
  if (kind === "name") return body.length > 1 && body.endsWith('"');
  if (kind === "comment") return !body.startsWith("{#") || body.endsWith("#}");
  if (kind !== "string") return true;
  if (body.startsWith("'")) return body.length > 1 && body.endsWith("'");
  return /^[eE]'(?:[^'\\]|\\[\s\S]|'')*'$/u.test(body);
}

function blockComment(text, from) {
  const edge = /\/\*|\*\//g;
  edge.lastIndex = from;
  let depth = 0;
  for (let match = edge.exec(text); match !== null; match = edge.exec(text)) {
    depth += match[0] === "/*" ? 1 : -1;
    if (depth === 0) return comment(text, from, edge.lastIndex, true);
  }
  return comment(text, from, text.length, false);
}

function comment(text, from, to, closed) {
  return { kind: "comment", text: text.slice(from, to), from, to, isClosed: closed };
}

/** Whether a lexeme is more than a space or a comment. */
export function hasMeaning(lexeme) {
  return lexeme.kind !== "space" && lexeme.kind !== "comment";
}

/** The identifier that a lexeme spells, without its quotes. */
export function nameOf(lexeme) {
  return lexeme.kind === "name" ? lexeme.text.replace(/^"|"$/g, "") : lexeme.text;
}

/**
 * The statements of a text: `{from, to, text, settings}`. `settings` are the SET parts before it, which hold for it as
 * in the interactive shell. SET parts behind the last statement belong to it.
 */
export function statementsOf(text) {
  const found = [];
  const settings = new Map();
  const behind = new Map(); // since the last statement
  for (const part of partsOf(text)) {
    const words = lexemes(part.text).filter((lexeme) => lexeme.kind !== "comment").map((lexeme) => lexeme.text);
    const plain = words.join("").trim();
    const setting = SETTING.exec(plain);
    const resetting = RESETTING.exec(plain);
    if (setting !== null) {
      for (const each of [settings, behind]) keepLast(each, setting[1].toLowerCase(), plain);
    } else if (resetting !== null) {
      for (const each of [settings, behind]) forget(each, resetting[1].toLowerCase());
    } else {
      behind.clear();
      found.push({ ...part, settings: new Map(settings) });
    }
  }
  for (const [name, plain] of found.length ? behind : []) keepLast(found.at(-1).settings, name, plain);
  return found.map((statement) => ({ ...statement, settings: [...statement.settings.values()] }));
}

function keepLast(settings, name, plain) {
  settings.delete(name);
  settings.set(name, plain);
}

function forget(settings, name) {
  if (name === "all") settings.clear();
  else settings.delete(name);
}

function partsOf(text) {
  const parts = [];
  let from = 0;
  let begun = false;
  const close = (to) => {
    if (begun) {
      const body = text.slice(from, to);
      const start = from + body.length - body.trimStart().length;
      parts.push({ from: start, to: start + body.trim().length, text: body.trim() });
    }
    begun = false;
  };
  for (const lexeme of lexemes(text)) {
    if (lexeme.kind === "sign" && lexeme.text === ";") {
      close(lexeme.from);
      from = lexeme.to;
    } else {
      begun ||= hasMeaning(lexeme) || !lexeme.isClosed;
    }
  }
  close(text.length);
  return parts;
}

/** The statement that the cursor is in or before; behind the last statement that one. Null for an empty text. */
export function statementAt(text, position) {
  const statements = statementsOf(text);
  // Right behind the `;` of a line the cursor still means that line's statement.
  const onLine = statements.find(
    (statement) => position >= statement.from && /^[ \t;]*$/.test(text.slice(statement.to, Math.max(position, statement.to))),
  );
  return onLine ?? statements.find((statement) => position <= statement.to) ?? statements.at(-1) ?? null;
}

/** The statement as it is sent: its settings follow it, where they change no position that an error names. */
export function sentStatement(statement, plan) {
  const settings = plan ? [...statement.settings, `SET plan = ${quoted(plan)}`] : statement.settings;
  return [statement.text, ...settings].join("\n;\n");
}

/** A text as an SQL literal. */
export function quoted(text) {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The range `[from, to]` of a statement's text that an error's message means, or null. */
export function errorRange(message, text) {
  const place = PLACE.exec(message);
  if (place !== null) return placedRange(Number(place[1]), Number(place[2]), text);
  const parts = lexemes(text).filter((lexeme) => lexeme.kind === "word" || lexeme.kind === "name");
  for (const [, mentioned] of message.matchAll(QUOTED)) {
    const lower = mentioned.toLowerCase();
    const found = parts.find((lexeme) => nameOf(lexeme).toLowerCase() === lower);
    if (found !== undefined) return [found.from, found.to];
  }
  const call = /^([A-Z_][A-Z0-9_]*)\b(?:\(| takes| cannot take)/.exec(message);
  const called = call && parts.find((lexeme) => lexeme.text.toUpperCase() === call[1]);
  return called ? [called.from, called.to] : null;
}

// The server counts code points, a JavaScript string counts UTF-16 units.
function placedRange(line, column, text) {
  const lines = text.split("\n");
  if (line > lines.length) return null;
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  const from = Math.min(before + [...lines[line - 1]].slice(0, column - 1).join("").length, text.length);
  const lexeme = lexemes(text).find((each) => each.to > from && hasMeaning(each));
  return lexeme === undefined ? [Math.max(0, text.length - 1), text.length] : [Math.max(from, lexeme.from), lexeme.to];
}

/** A short title for a statement: the table it reads, else its first words. */
export function titleOf(text) {
  const words = lexemes(text).filter(hasMeaning);
  const at = words.findIndex((word) => word.kind === "word" && /^from$/i.test(word.text));
  const table = words[at + 1];
  const title = at >= 0 && table && (table.kind === "word" || table.kind === "name") ? nameOf(table) : text.trim();
  return title.replace(/\s+/g, " ").slice(0, 24);
}
