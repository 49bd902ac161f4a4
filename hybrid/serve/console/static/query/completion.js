// Completion of statements: tables behind FROM, columns of the statement's tables, functions, keywords. No DOM.
// It offers what the interactive shell offers: hybrid/cli/shell/completion.py.

import { hasMeaning, lexemes, nameOf } from "./text.js";

const FRESH_MS = 10_000;
const ALL_TABLES_MAX = 20; // without a FROM the columns of so many tables are offered
const TABLE_KEYWORDS = new Set(["FROM", "JOIN"]);
const PLAIN = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
const HALVES = ["OFFLINE", "REALTIME"];

/** The tables and columns of the server. `ask(verb, arguments)` fetches them; they are kept for seconds. */
export class CatalogNames {
  constructor(ask, clock = () => performance.now()) {
    this._ask = ask;
    this._clock = clock;
    this._tables = { at: -Infinity, value: Promise.resolve([]) };
    this._columns = new Map();
  }

  /** The tables: `{name, isHybrid}`. */
  tables() {
    return this._fresh(this._tables, (entry) => { this._tables = entry; }, "table_list", {}, (found) =>
      found.map((table) => ({ name: table.name, isHybrid: table.halves.length > 1 })));
  }

  /** The columns of a table: `{name, type}`. */
  columns(table) {
    const known = this._columns.get(table) ?? { at: -Infinity, value: Promise.resolve([]) };
    return this._fresh(known, (entry) => this._columns.set(table, entry), "table_show", { table }, (found) =>
      Object.entries(found.columns).map(([name, type]) => ({ name, type })));
  }

  /** The table that a name in FROM means, in any case and with or without its half; null for another name. */
  async tableOf(written) {
    const tables = await this.tables();
    const lower = written.toLowerCase();
    const found = tables.find(({ name }) => name.toLowerCase() === lower)
      ?? tables.find(({ name }) => HALVES.some((half) => `${name}_${half}`.toLowerCase() === lower));
    return found?.name ?? null;
  }

  // Where the names cannot be fetched, the last ones are used: completion raises no errors.
  _fresh(entry, keep, verb, argumentsOf, read) {
    const now = this._clock();
    if (now - entry.at <= FRESH_MS) return entry.value;
    const value = this._ask(verb, argumentsOf).then(read).catch(() => entry.value);
    keep({ at: now, value });
    return value;
  }
}

/** Completes statements from a catalog and the words of the dialect (`keywords, reserved, functions, virtual, options`). */
export class Completer {
  constructor(names, words) {
    this._names = names;
    this._words = words;
    this._keywords = new Set(words.keywords);
    this._reserved = new Set(words.reserved);
  }

  /** The completions at a position: `{from, options}`, or null. `isExplicit`: asked for by a key. */
  async complete(text, position, isExplicit) {
    const parts = lexemes(text.slice(0, position));
    const end = parts.findLastIndex((part) => part.text === ";" && part.kind === "sign");
    const statement = parts.slice(end + 1);
    const last = statement.at(-1);
    const word = last && (last.kind === "word" || last.kind === "name") ? statement.pop() : undefined;
    if ((word?.kind === "name" && word.isClosed) || isUnfinished(statement.at(-1))) return null;
    const written = word?.text ?? "";
    const before = statement.filter(hasMeaning);
    if (!written && !isExplicit && before.at(-1)?.text !== ".") return null;
    const options = await this._options(before, written, [...statement, ...restOf(text.slice(position))]);
    return options.length ? { from: word?.from ?? position, options } : null;
  }

  async _options(before, written, statement) {
    const mentioned = await this._tablesIn(statement);
    if (before.at(-1)?.text === "." && before.length > 1) {
      return this._identifiers(await this._qualified(nameOf(before.at(-2)), mentioned), written);
    }
    if (before.length === 1 && before[0].text.toUpperCase() === "SET") {
      return this._words.options.map((label) => ({ label, type: "keyword" }));
    }
    if (this._expectsTable(before)) return this._identifiers(await this._tableNames(), written);
    return before.length || written ? this._expression(written, mentioned) : [];
  }

  async _expression(written, mentioned) {
    if (written.startsWith("$")) {
      return this._words.virtual.map((label) => ({ label, type: "variable", detail: "virtual column" }));
    }
    const columns = await this._columnsOf(mentioned.map(({ table }) => table));
    const aliases = mentioned.map(({ alias }) => ({ name: alias, type: "" }));
    const names = this._identifiers([...columns, ...unique([...aliases, ...(await this._tableNames())])], written);
    if (!written || written.startsWith('"')) return names; // else keywords would hide the columns
    const isLower = written === written.toLowerCase();
    const spell = (label) => (isLower ? label.toLowerCase() : label);
    return [
      ...names,
      ...this._words.keywords.map((label) => ({ label: spell(label), type: "keyword", boost: -1 })),
      ...this._words.functions.map((label) => (
        { label: spell(label), apply: `${spell(label)}(`, type: "function", detail: "function", boost: -2 })),
    ];
  }

  async _tableNames() {
    const tables = await this._names.tables();
    const halves = tables.filter(({ isHybrid }) => isHybrid)
      .flatMap(({ name }) => HALVES.map((half) => ({ name: `${name}_${half}`, type: "half" })));
    return [...tables.map(({ name }) => ({ name, type: "table" })), ...halves];
  }

  async _columnsOf(tables) {
    let chosen = tables;
    if (!tables.length) {
      chosen = (await this._names.tables()).map(({ name }) => name);
      if (chosen.length > ALL_TABLES_MAX) return [];
    }
    return unique((await Promise.all(chosen.map((table) => this._names.columns(table)))).flat());
  }

  async _qualified(qualifier, mentioned) {
    const found = mentioned.find(({ alias }) => alias.toLowerCase() === qualifier.toLowerCase());
    const table = found?.table ?? await this._names.tableOf(qualifier);
    return table === null ? [] : this._names.columns(table);
  }

  async _tablesIn(parts) {
    const words = parts.filter(hasMeaning);
    const found = [];
    for (const [place, part] of words.entries()) {
      if ((part.kind !== "word" && part.kind !== "name") || !this._expectsTable(words.slice(0, place))) continue;
      const table = await this._names.tableOf(nameOf(part));
      if (table !== null) found.push({ table, alias: this._aliasBehind(words.slice(place + 1)) ?? nameOf(part) });
    }
    return found;
  }

  // Behind FROM or JOIN, or behind a comma in the list of FROM.
  _expectsTable(before) {
    const last = before.at(-1);
    if (last === undefined) return false;
    if (TABLE_KEYWORDS.has(this._keyword(last))) return true;
    if (last.text !== ",") return false;
    let depth = 0;
    for (const part of before.toReversed()) {
      depth += (part.text === ")") - (part.text === "(");
      if (depth < 0) return false;
      const keyword = this._keyword(part);
      if (depth === 0 && keyword !== null && keyword !== "AS") return TABLE_KEYWORDS.has(keyword);
    }
    return false;
  }

  _aliasBehind(words) {
    const rest = words.slice(0, 2);
    if (rest.length && this._keyword(rest[0]) === "AS") rest.shift();
    const named = rest.length && (rest[0].kind === "word" || rest[0].kind === "name") && this._keyword(rest[0]) === null;
    return named ? nameOf(rest[0]) : null;
  }

  _keyword(part) {
    const upper = part.text.toUpperCase();
    return part.kind === "word" && this._keywords.has(upper) ? upper : null;
  }

  _identifiers(names, written) {
    return names.map(({ name, type }) => {
      const isQuoted = written.startsWith('"') || !PLAIN.test(name) || this._reserved.has(name.toUpperCase());
      const spelled = isQuoted ? `"${name.replaceAll('"', '""')}"` : name;
      return { label: spelled, detail: type.toLowerCase(), type: "variable", boost: 1 };
    });
  }
}

function isUnfinished(last) {
  return last !== undefined && (!last.isClosed || (last.kind === "comment" && last.text.startsWith("--")));
}

function restOf(after) {
  const parts = lexemes(after);
  const end = parts.findIndex((part) => part.text === ";" && part.kind === "sign");
  return end < 0 ? parts : parts.slice(0, end);
}

function unique(names) {
  return [...new Map(names.map((entry) => [entry.name, entry])).values()];
}
