// Builds ../../static/editor.js and its licences: `npm ci && npm run build`. The same lock file gives the same bytes.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "..", "..", "static");

const result = await build({
  absWorkingDir: here,
  entryPoints: ["editor.mjs"],
  bundle: true,
  format: "esm",
  target: ["es2022"],
  minify: true,
  legalComments: "none",
  charset: "utf8",
  metafile: true,
  banner: { js: "/* CodeMirror 6 and Lezer, MIT licence: see editor.LICENSES.txt. Built by assets/editor/build.mjs. */" },
  write: false,
});
writeFileSync(join(target, "editor.js"), result.outputFiles[0].contents);
writeFileSync(join(target, "editor.LICENSES.txt"), licences(bundledPackages(result.metafile)));

function bundledPackages(metafile) {
  const names = Object.keys(metafile.inputs)
    .map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
    .filter((name) => name !== undefined);
  return [...new Set(names)].sort();
}

function licences(names) {
  return names.map((name) => {
    const folder = join(here, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).sort().find((entry) => /^licen[cs]e/i.test(entry));
    if (file === undefined) throw new Error(`${name} ships no licence`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  }).join(`\n${"-".repeat(78)}\n\n`);
}
