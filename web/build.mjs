// Puts what the page needs from npm where the gateway serves it: MapLibre, and the coastlines.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { feature } from "topojson-client";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "../src/nearcast/gateway/page/vendor");
const from = (name) => createRequire(import.meta.url).resolve(name);
mkdirSync(out, { recursive: true });

const dist = join(here, "node_modules/maplibre-gl/dist");
for (const name of ["maplibre-gl.mjs", "maplibre-gl-worker.mjs", "maplibre-gl.css"]) {
  copyFileSync(join(dist, name), join(out, name));
}
copyFileSync(join(here, "node_modules/maplibre-gl/LICENSE.txt"), join(out, "maplibre-gl.LICENSE.txt"));

// Natural Earth, public domain. Four decimals are ten metres, more than its lines are good for. The page
// begins with the coarse coastlines and goes on to the fine ones.
const round = (value) =>
  Array.isArray(value) ? value.map(round) : typeof value === "number" ? Math.round(value * 1e4) / 1e4 : value;
for (const [scale, name] of [["50m", "land.json"], ["10m", "land-fine.json"]]) {
  const world = JSON.parse(readFileSync(from(`world-atlas/land-${scale}.json`), "utf8"));
  const land = feature(world, world.objects.land);
  for (const one of land.features) one.geometry.coordinates = round(one.geometry.coordinates);
  writeFileSync(join(out, name), JSON.stringify(land));
}
