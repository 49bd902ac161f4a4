// What completion offers for a text whose cursor is at `|`: `offers(module, tables, words, text)`.
export async function offers(module, tables, words, text, isExplicit) {
  const { CatalogNames, Completer } = await import(module);
  const asked = async (verb, given) => {
    if (tables === null) throw new Error("The server does not answer.");
    if (verb === "table_list") return Object.entries(tables).map(([name, [halves]]) => ({ name, halves }));
    return { columns: Object.fromEntries(tables[given.table][1].map((column) => [column, "STRING"])) };
  };
  const position = text.indexOf("|");
  const completer = new Completer(new CatalogNames(asked), words);
  const found = await completer.complete(text.replace("|", ""), position, isExplicit);
  if (found === null) return null;
  const written = text.slice(found.from, position).replace(/^"/, "").toLowerCase();
  return found.options
    .filter(({ label }) => label.replace(/^"/, "").toLowerCase().startsWith(written))
    .map(({ apply, label }) => apply ?? label);
}
