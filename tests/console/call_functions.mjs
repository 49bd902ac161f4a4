// Calls exported functions of a module: the module and `[[name, argument, ...], ...]` come as JSON on standard input.
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const { module, calls } = JSON.parse(Buffer.concat(chunks).toString("utf8"));
const found = await import(module);
const results = [];
for (const [name, ...given] of calls) results.push((await found[name](...given)) ?? null);
process.stdout.write(JSON.stringify(results));
