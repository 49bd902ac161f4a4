// Copies htmx and uPlot with their licences to ../../static/vendor: `npm ci && npm run build`.
import { copyFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "..", "..", "static", "vendor");
const files = {
  "htmx.org/dist/htmx.min.js": "htmx.min.js",
  "htmx.org/LICENSE": "htmx.LICENSE.txt",
  "uplot/dist/uPlot.esm.js": "uPlot.esm.js",
  "uplot/dist/uPlot.min.css": "uPlot.min.css",
  "uplot/LICENSE": "uPlot.LICENSE.txt",
};

mkdirSync(target, { recursive: true });
for (const [from, to] of Object.entries(files)) copyFileSync(join(here, "node_modules", from), join(target, to));
