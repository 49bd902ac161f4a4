// Copies htmx and uPlot with their licences to ../../static/vendor: `npm ci && npm run build`. uPlot's package has its
// module only at full length, so esbuild shortens it. The same lock file gives the same bytes.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "..", "..", "static", "vendor");
const files = {
  "htmx.org/dist/htmx.min.js": "htmx.min.js",
  "htmx.org/LICENSE": "htmx.LICENSE.txt",
  "uplot/dist/uPlot.min.css": "uPlot.min.css",
  "uplot/LICENSE": "uPlot.LICENSE.txt",
};

mkdirSync(target, { recursive: true });
for (const [from, to] of Object.entries(files)) copyFileSync(join(here, "node_modules", from), join(target, to));
const { code } = await transform(readFileSync(join(here, "node_modules", "uplot/dist/uPlot.esm.js"), "utf8"), {
  format: "esm",
  target: ["es2022"],
  minify: true,
  legalComments: "none",
  charset: "utf8",
  banner: "/* uPlot, MIT licence: see uPlot.LICENSE.txt. Shortened by assets/vendor/build.mjs. */",
});
writeFileSync(join(target, "uPlot.esm.min.js"), code);
