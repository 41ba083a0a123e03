// The map: an offline base, posts as they come, regions of questions, results, partitions.
import * as maplibre from "./vendor/maplibre-gl.mjs";
import { places } from "./places.js";

export const TINTS = ["#d9541e", "#2477b8", "#23845a", "#9048a8", "#b8860b", "#c2376b", "#12808a", "#6f5bd0"];
const MOST_POSTS = 5000;
const FADE_MS = 120_000;
const dark = matchMedia("(prefers-color-scheme: dark)");
const empty = () => ({ type: "FeatureCollection", features: [] });
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const ringOf = ([x, y], metres, planar) => {
  const ring = [];
  const north = planar ? metres : metres / 111195;
  const east = planar ? metres : north / Math.max(Math.cos((y * Math.PI) / 180), 0.01);
  for (let i = 0; i <= 64; i++) {
    const turn = (i / 64) * 2 * Math.PI;
    ring.push([x + east * Math.cos(turn), y + north * Math.sin(turn)]);
  }
  return ring;
};

export const shapeOf = (region, planar) => {
  if (region.bbox) {
    const [a, b, c, d] = region.bbox;
    return [[a, b], [c, b], [c, d], [a, d], [a, b]];
  }
  if (region.circle) return ringOf(region.circle.at, region.circle.radius, planar);
  return region.coordinates[0];
};

export class City {
  constructor(settings) {
    this.settings = settings;
    this.posts = new Map(); // id -> {at, text, when, tint}
    this.dirty = false;
    const [x0, y0, x1, y1] = settings.bounds || [139.55, 35.52, 139.92, 35.82];
    const sources = Object.fromEntries(
      ["posts", "regions", "links", "results", "draft", "cells", "answers"].map((name) => [name, { type: "geojson", data: empty() }]),
    );
    sources.land = { type: "geojson", data: "vendor/land.json", attribution: "Coastlines: Natural Earth" };
    if (settings.tiles) sources.tiles = { type: "raster", tiles: [settings.tiles], tileSize: 256 };
    this.map = new maplibre.Map({
      container: "map",
      bounds: [[x0, y0], [x1, y1]],
      fitBoundsOptions: { padding: innerWidth > 700 ? { left: 340, right: 30, top: 90, bottom: 100 } : { left: 10, right: 10, top: 70, bottom: innerHeight / 2 } },
      attributionControl: { compact: false },
      maxPitch: 0,
      dragRotate: false,
      style: { version: 8, sources, layers: this.layers(Boolean(settings.tiles)) },
    });
    this.map.touchZoomRotate.disableRotation();
    this.map.addControl(new maplibre.NavigationControl({ showCompass: false }), "bottom-right");
    for (const [name, x, y] of places) {
      const element = document.createElement("div");
      element.className = "place";
      element.textContent = name;
      element.setAttribute("aria-hidden", "true");
      new maplibre.Marker({ element }).setLngLat([x, y]).addTo(this.map);
    }
    this.ready = new Promise((done) => this.map.once("load", done));
    this.map.once("idle", () => this.map.getSource("land").setData("vendor/land-fine.json"));
    dark.addEventListener("change", () => this.repaint());
    setInterval(() => this.draw(), 100);
    this.popup = new maplibre.Popup({ closeButton: false, offset: 10 });
    for (const layer of ["results", "posts", "answers"]) {
      this.map.on("mousemove", layer, (event) => this.point(event.features[0]));
      this.map.on("mouseleave", layer, () => this.popup.remove());
    }
  }

  layers(tiles) {
    const tint = ["get", "tint"];
    return [
      { id: "ground", type: "background", paint: { "background-color": colour("--ground") } },
      { id: "land", type: "fill", source: "land", paint: { "fill-color": colour("--land") } },
      { id: "coast", type: "line", source: "land", paint: { "line-color": colour("--coast"), "line-width": 1 } },
      ...(tiles ? [{ id: "tiles", type: "raster", source: "tiles" }] : []),
      { id: "cells", type: "fill", source: "cells", paint: { "fill-color": tint, "fill-opacity": 0.16, "fill-antialias": false } },
      { id: "regions", type: "fill", source: "regions", paint: { "fill-color": tint, "fill-opacity": 0.1 } },
      { id: "edges", type: "line", source: "regions", paint: { "line-color": tint, "line-width": 1.8 } },
      { id: "posts", type: "circle", source: "posts", paint: {
        "circle-radius": ["case", ["has", "tint"], 5, ["interpolate", ["linear"], ["get", "age"], 0, 5, 0.02, 2.4, 1, 1.6]],
        "circle-color": ["case", ["has", "tint"], ["get", "tint"], colour("--ink")],
        "circle-opacity": ["interpolate", ["linear"], ["get", "age"], 0, ["case", ["has", "tint"], 1, 0.8], 0.04, ["case", ["has", "tint"], 0.9, 0.38], 1, ["case", ["has", "tint"], 0.45, 0.06]],
        "circle-stroke-color": colour("--land"), "circle-stroke-width": ["case", ["has", "tint"], 1.4, 0] } },
      { id: "links", type: "line", source: "links", paint: { "line-color": tint, "line-width": 1.6, "line-opacity": 0.75 } },
      { id: "answers", type: "circle", source: "answers", paint: { "circle-radius": 4, "circle-color": "transparent",
        "circle-stroke-color": colour("--accent"), "circle-stroke-width": 1.6 } },
      { id: "results", type: "circle", source: "results", paint: { "circle-radius": ["get", "size"], "circle-color": tint,
        "circle-stroke-color": colour("--land"), "circle-stroke-width": 2 } },
      { id: "draft", type: "line", source: "draft", paint: { "line-color": colour("--accent"), "line-width": 2, "line-dasharray": [2, 1.5] } },
    ];
  }

  repaint() {
    for (const layer of this.layers(Boolean(this.settings.tiles))) {
      for (const [name, value] of Object.entries(layer.paint || {})) this.map.setPaintProperty(layer.id, name, value);
    }
  }

  point(feature) {
    const [x, y] = feature.geometry.coordinates;
    if (feature.properties.text) this.popup.setLngLat([x, y]).setText(feature.properties.text).addTo(this.map);
  }

  heard(posts) {
    const when = Date.now();
    for (const { id, at, text, keywords } of posts) {
      this.posts.delete(id);
      this.posts.set(id, { at, text: text || (keywords || []).join(", "), when, tint: this.early?.get(id) });
      this.early?.delete(id);
    }
    for (const id of this.posts.keys()) {
      if (this.posts.size <= MOST_POSTS) break;
      this.posts.delete(id);
    }
    this.dirty = true;
  }

  // A match may come before the post itself is shown.
  mark(id, tint) {
    const post = this.posts.get(id);
    if (post) post.tint = tint;
    else {
      this.early ||= new Map();
      this.early.set(id, tint);
      if (this.early.size > 1000) this.early.delete(this.early.keys().next().value);
    }
    this.dirty = true;
  }

  draw() {
    const now = Date.now();
    if (document.hidden || !this.map.getSource("posts") || (!this.dirty && now - (this.drawn || 0) < 1000)) return;
    this.dirty = false;
    this.drawn = now;
    const features = [];
    for (const [id, post] of this.posts) {
      const age = (now - post.when) / FADE_MS;
      if (age > 1) {
        this.posts.delete(id);
        continue;
      }
      const properties = { age, text: post.text };
      if (post.tint) properties.tint = post.tint;
      features.push({ type: "Feature", properties, geometry: { type: "Point", coordinates: post.at } });
    }
    this.set("posts", features);
  }

  set(source, features) {
    this.map.getSource(source)?.setData({ type: "FeatureCollection", features });
  }

  cells(partitions) {
    const features = [];
    if (partitions) {
      const [x0, y0, x1, y1] = partitions.bounds;
      const rows = partitions.cells;
      const high = (y1 - y0) / rows.length;
      rows.forEach((row, j) => {
        const wide = (x1 - x0) / row.length;
        for (let i = 0; i < row.length; ) {
          let stop = i + 1; // one rectangle per run of cells with one owner
          while (stop < row.length && row[stop] === row[i]) stop++;
          const box = [x0 + i * wide, y0 + j * high, x0 + stop * wide, y0 + (j + 1) * high];
          const tint = row[i] < 0 ? "#888888" : TINTS[row[i] % TINTS.length];
          features.push({ type: "Feature", properties: { tint }, geometry: { type: "Polygon", coordinates: [shapeOf({ bbox: box })] } });
          i = stop;
        }
      });
    }
    this.set("cells", features);
  }
}
