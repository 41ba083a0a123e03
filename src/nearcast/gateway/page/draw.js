// Drawing a region, or choosing a place: by mouse, by touch, or by keys with the middle of the map.
import { shapeOf } from "./map.js";

const HINTS = {
  box: "Drag over the map, or press at two corners. Escape leaves.",
  circle: "Press in the middle, then at the edge.",
  polygon: "Press at each corner; Enter or a double press ends.",
  nearest: "Press where you are. Enter takes the middle of the map.",
  best: "Press where you are. Enter takes the middle of the map.",
};
const metres = ([x0, y0], [x1, y1], planar) => {
  if (planar) return Math.hypot(x1 - x0, y1 - y0);
  const rad = Math.PI / 180;
  const h = Math.sin(((y1 - y0) * rad) / 2) ** 2 + Math.cos(y0 * rad) * Math.cos(y1 * rad) * Math.sin(((x1 - x0) * rad) / 2) ** 2;
  return 2 * 6371008.8 * Math.asin(Math.min(1, Math.sqrt(h)));
};

export class Tools {
  constructor(city, done) {
    this.city = city;
    this.map = city.map;
    this.planar = city.settings.space === "planar";
    this.done = done;
    this.tool = null;
    this.hint = document.getElementById("hint");
    this.usual = this.hint.textContent;
    this.buttons = [...document.querySelectorAll("[data-tool]")];
    for (const button of this.buttons) {
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => this.choose(this.tool === button.dataset.tool ? null : button.dataset.tool));
    }
    this.map.on("mousedown", (event) => this.down(event));
    this.map.on("touchstart", (event) => event.points.length === 1 && this.down(event));
    this.map.on("mousemove", (event) => this.move(event));
    this.map.on("touchmove", (event) => this.move(event));
    this.map.on("mouseup", (event) => this.up(event));
    this.map.on("touchend", (event) => this.up(event));
    addEventListener("keydown", (event) => this.key(event));
  }

  choose(tool) {
    this.tool = tool;
    this.points = [];
    this.dragging = false;
    for (const button of this.buttons) button.setAttribute("aria-pressed", String(button.dataset.tool === tool));
    document.getElementById("map").classList.toggle("drawing", tool !== null);
    document.getElementById("ranked").hidden = tool !== "nearest" && tool !== "best";
    document.getElementById("alpha-row").hidden = tool !== "best";
    this.hint.textContent = tool ? HINTS[tool] : this.usual;
    this.map.dragPan[tool ? "disable" : "enable"]();
    this.map.doubleClickZoom[tool ? "disable" : "enable"]();
    this.city.set("draft", []);
    if (tool) this.map.getCanvas().focus({ preventScroll: true });
  }

  at(event) {
    return [event.lngLat.lng, event.lngLat.lat].map((v) => Math.round(v * 1e6) / 1e6);
  }

  down(event) {
    if (!this.tool) return;
    event.preventDefault();
    const at = this.at(event);
    if (this.tool === "nearest" || this.tool === "best") return this.finish({ at });
    const last = this.points.at(-1);
    if (this.tool === "polygon" && last && this.near(last, at)) return this.finish();
    this.points.push(at);
    this.dragging = this.points.length === 1;
    if (this.tool !== "polygon" && this.points.length === 2) this.finish();
  }

  near(a, b) {
    const [p, q] = [this.map.project(a), this.map.project(b)];
    return Math.hypot(p.x - q.x, p.y - q.y) < 6;
  }

  move(event) {
    if (!this.tool || !this.points.length) return;
    const at = this.at(event);
    const draft = this.tool === "polygon" ? [...this.points, at] : shapeOf(this.region([this.points[0], at]), this.planar);
    this.city.set("draft", [{ type: "Feature", properties: {}, geometry: { type: "LineString", coordinates: draft } }]);
  }

  up(event) {
    if (!this.tool || !this.dragging || this.tool === "polygon") return;
    this.dragging = false;
    const at = this.at(event);
    if (!this.near(this.points[0], at)) {
      this.points.push(at);
      this.finish();
    }
  }

  region(points) {
    if (this.tool === "circle") return { circle: { at: points[0], radius: Math.max(metres(...points, this.planar), 1) } };
    if (this.tool === "polygon") return { type: "Polygon", coordinates: [[...points, points[0]]] };
    const [[x0, y0], [x1, y1]] = points;
    return { bbox: [Math.min(x0, x1), Math.min(y0, y1), Math.max(x0, x1), Math.max(y0, y1)] };
  }

  finish(place) {
    const tool = this.tool;
    if (tool === "polygon" && this.points.length < 3) return;
    const where = place || { region: this.region(this.points) };
    this.choose(null);
    this.done(tool, where);
  }

  key(event) {
    const typing = /INPUT|TEXTAREA/.test(event.target.tagName) || event.metaKey || event.ctrlKey || event.altKey;
    if (event.key === "Escape") return this.choose(null);
    if (typing && event.target.type !== "range") return;
    const tool = { b: "box", c: "circle", p: "polygon", n: "nearest", t: "best" }[event.key];
    if (tool) return this.choose(tool);
    if (event.key === "Enter" && this.tool && event.target.tagName !== "BUTTON") {
      const { lng, lat } = this.map.getCenter();
      if (this.tool === "polygon") this.finish();
      else if (this.tool === "nearest" || this.tool === "best") this.finish({ at: [lng, lat] });
      else this.down({ lngLat: { lng, lat }, preventDefault() {} });
    }
  }
}

