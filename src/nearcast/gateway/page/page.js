// The live page of a service: what arrives, standing questions, the past, and the run itself.
import { Stream, posts, request } from "./api.js";
import { Tools } from "./draw.js";
import { City, TINTS, shapeOf } from "./map.js";

const byId = (id) => document.getElementById(id);
const number = (n) => n.toLocaleString("en");
const OFTEN = ["the", "a", "an", "in", "of", "and", "to", "at", "on", "is", "for", "with", "by", "near", "this", "it", "here", "from"];
const HOUR = 3_600_000;
const LIFE_MS = 24 * HOUR; // questions of a page that was closed end by themselves

const settings = await request("GET", "/v1/status");
const planar = settings.space === "planar";
const city = new City(settings);
await city.ready;
window.nearcast = { city, ready: true }; // for tests and the curious

// -- what arrives --------------------------------------------------------------------------------

const arrivals = [];
let view = null;
let pollTerms = 0;
posts((found) => {
  city.heard(found);
  arrivals.push([performance.now(), found.length]);
}, (state) => {
  if (state === "lost") setStatus("down", "the gateway is away, trying again");
});

async function look() {
  setTimeout(look, 2000);
  while (arrivals.length && performance.now() - arrivals[0][0] > 4000) arrivals.shift();
  byId("rate").textContent = number(Math.round(arrivals.reduce((sum, [, n]) => sum + n, 0) / 4));
  if (document.hidden) return;
  try {
    const [status, run] = await Promise.all([request("GET", "/v1/status"), request("GET", "/v1/run")]);
    showRun({ ...run, engine: status.as_of.engine, waiting_ms: status.waiting_ms });
  } catch {
    setStatus("down", "the gateway is away, trying again");
  }
}
look();

function setStatus(state, text) {
  byId("status").dataset.state = state;
  byId("status").textContent = text;
}

function showRun(said) {
  const words = { running: "live", starting: "the engine starts; posts are kept", down: "the engine is down; posts are kept" };
  setStatus(said.engine === "unknown" ? "running" : said.engine, words[said.engine] || "live");
  byId("batch").textContent = said.loads ? number(said.loads.batch) : "–";
  byId("lag").textContent = said.waiting_ms < 1000 ? `${said.waiting_ms} ms` : `${(said.waiting_ms / 1000).toFixed(1)} s`;
  byId("rejects").textContent = number(said.rejected);
  view = said;
  showShards();
}

function showShards() {
  if (!view) return;
  const shards = view.loads?.shards || [];
  const most = Math.max(1, ...shards.map((s) => s.objects));
  byId("shards").replaceChildren(...shards.map(({ shard, subscriptions, objects, moved }) => {
    const row = document.createElement("div");
    row.className = "shard";
    row.style.setProperty("--tint", TINTS[shard % TINTS.length]);
    row.title = `shard ${shard}: ${number(objects)} posts in the latest batch, ${number(subscriptions)} subscriptions${moved ? `, ${number(moved)} moved` : ""}`;
    const bar = document.createElement("i");
    bar.style.width = `${(100 * objects) / most}%`;
    const [name, count] = [document.createElement("span"), document.createElement("span")];
    name.textContent = `shard ${shard}`;
    count.textContent = moved ? `${number(moved)} moved` : `${number(subscriptions)} subs`;
    row.append(name, bar, count);
    return row;
  }));
  const parts = view.partitions;
  byId("partitions").textContent = parts
    ? `${parts.kind}, since batch ${number(parts.batch)}${parts.reason ? `: ${parts.reason}` : ""}`
    : "This run deals by id, or has decided nothing yet. With strategy range = \"ps2stream\" and a balance, each shard's part of the map shows here.";
  city.cells(byId("show-cells").checked && !byId("run").hidden ? parts : null);
}
byId("show-cells").addEventListener("change", showShards);

// -- standing questions --------------------------------------------------------------------------

const questions = new Map();
const stream = new Stream((note) => questions.get(note.id)?.heard(note));
const page = Math.random().toString(36).slice(2, 8);
let made = 0;

class Question {
  constructor(query, title) {
    this.id = `page-${page}-${++made}`;
    this.query = query;
    this.tint = TINTS[(made - 1) % TINTS.length];
    this.count = 0;
    this.objects = new Map(); // present result: id -> value
    this.row = document.createElement("li");
    this.row.dataset.id = this.id;
    this.row.style.setProperty("--tint", this.tint);
    const head = document.createElement("header");
    const name = document.createElement("b");
    name.textContent = title;
    this.n = document.createElement("span");
    this.n.className = "n";
    this.n.textContent = "0";
    const end = document.createElement("button");
    end.className = "end";
    end.type = "button";
    end.textContent = "×";
    end.setAttribute("aria-label", `End: ${title}`);
    end.addEventListener("click", () => this.end());
    head.append(name, this.n, end);
    this.latest = document.createElement("p");
    this.latest.textContent = "waiting for the first post";
    this.row.append(head, this.latest);
  }

  async begin() {
    questions.set(this.id, this);
    byId("watched").prepend(this.row);
    if (settings.owner === null) stream.watch(questions.keys()); // before it begins, so nothing is missed
    try {
      await this.seed();
      const now = Date.now();
      const last = this.query.kind === "knn" && settings.retain_ms ? { last: Math.min(settings.retain_ms, HOUR) } : {};
      await request("PUT", `/v1/subscriptions/${this.id}`, { query: this.query, expires: now + LIFE_MS, ...last });
      if (settings.owner !== null) stream.watch(questions.keys());
      drawQuestions();
    } catch (error) {
      this.latest.textContent = error.message;
    }
  }

  // Where posts are that a first result may hold: the page has not seen them arrive.
  async seed() {
    if (!this.query.at || !settings.retain_ms) return;
    const said = await request("POST", "/v1/ask", { query: this.query, last: Math.min(settings.retain_ms, HOUR), fields: ["at", "text"] }).catch(() => null);
    this.known = new Map((said?.objects || []).map((o) => [o.id, { at: o.at, text: o.text }]));
  }

  where(id) {
    return city.posts.get(id) || this.known?.get(id);
  }

  heard(note) {
    this.count++;
    if (note.event === "match") {
      city.mark(note.object, this.tint);
      const post = this.where(note.object);
      setTimeout(() => { this.latest.textContent = this.where(note.object)?.text || post?.text || note.object; }, post ? 0 : 300);
      this.n.textContent = number(this.count);
    } else if (note.event === "enter") {
      this.objects.set(note.object, note.score ?? -note.distance);
    } else if (note.event === "leave") {
      this.objects.delete(note.object);
      this.known?.delete(note.object);
    }
    if (note.event !== "match") this.showResult();
  }

  // A change may come before the post itself is shown, which comes in quarters of a second.
  showResult(tries = 8) {
    let missing = false;
    for (const id of this.objects.keys()) {
      const post = city.posts.get(id);
      if (post) (this.known ||= new Map()).set(id, { at: post.at, text: post.text });
      else missing ||= !this.known?.has(id);
    }
    clearTimeout(this.again);
    if (missing && tries) this.again = setTimeout(() => this.showResult(tries - 1), 250);
    const ranked = [...this.objects].sort((a, b) => b[1] - a[1]);
    this.n.textContent = `${ranked.length}/${this.query.k}`;
    const first = ranked[0];
    if (first) {
      const value = this.query.kind === "topk" ? first[1].toFixed(3) : planar ? (-first[1]).toFixed(2) : `${Math.round(-first[1])} m`;
      this.latest.textContent = `${value} · ${this.where(first[0])?.text || first[0]}`;
    }
    clearTimeout(this.later);
    this.later = setTimeout(drawQuestions, 60);
  }

  async change(query) {
    this.query = query;
    this.objects.clear();
    this.known = new Map();
    await this.seed();
    await request("PUT", `/v1/subscriptions/${this.id}`, { query, expires: Date.now() + LIFE_MS }).catch((error) => { this.latest.textContent = error.message; });
    drawQuestions();
  }

  async end() {
    questions.delete(this.id);
    this.row.remove();
    stream.watch(questions.keys());
    drawQuestions();
    await request("DELETE", `/v1/subscriptions/${this.id}`).catch(() => {});
  }
}

function drawQuestions() {
  const regions = [], links = [], results = [];
  for (const { query, tint, objects, ...rest } of questions.values()) {
    const self = questions.get(rest.id);
    if (query.region) regions.push({ type: "Feature", properties: { tint }, geometry: { type: "Polygon", coordinates: [shapeOf(query.region, planar)] } });
    if (!query.at) continue;
    results.push({ type: "Feature", properties: { tint, size: 7, text: "" }, geometry: { type: "Point", coordinates: query.at } });
    for (const id of objects.keys()) {
      const post = self.where(id);
      if (!post?.at) continue;
      links.push({ type: "Feature", properties: { tint }, geometry: { type: "LineString", coordinates: [query.at, post.at] } });
      results.push({ type: "Feature", properties: { tint, size: 5, text: post.text }, geometry: { type: "Point", coordinates: post.at } });
    }
  }
  city.set("regions", regions);
  city.set("links", links);
  city.set("results", results);
}

const wordsOf = (text) => (text.match(/[\p{L}\p{N}]+/gu) || []).filter((w) => !["AND", "OR", "NOT"].includes(w));
function ask(tool, where) {
  const words = byId("words").value.trim();
  const k = Math.max(1, Number(byId("k").value) || 5);
  let query, title;
  if (tool === "nearest") {
    query = { kind: "knn", ...where, k };
    title = `${k} nearest${words ? `: ${words}` : ""}`;
  } else if (tool === "best") {
    const keywords = wordsOf(words);
    if (!keywords.length) {
      byId("hint").textContent = "The best posts are those that fit your words: type some first.";
      byId("words").focus();
      return;
    }
    query = { kind: "topk", ...where, k, keywords, alpha: Number(byId("alpha").value), maxdist: planar ? undefined : 20000 };
    title = `${k} best: ${keywords.join(", ")}`;
  } else {
    query = { kind: "range", ...where };
    title = words || "anything";
  }
  if (words && tool !== "best") query.where = words;
  new Question(query, title).begin();
}
new Tools(city, ask);
byId("view-box").addEventListener("click", () => ask("box", { region: { bbox: inView() } }));
byId("question").addEventListener("submit", (event) => event.preventDefault());
byId("alpha").addEventListener("change", () => {
  for (const question of questions.values()) {
    if (question.query.kind === "topk") question.change({ ...question.query, alpha: Number(byId("alpha").value) });
  }
});
document.addEventListener("focusin", () => {
  const best = [...questions.values()].some((q) => q.query.kind === "topk");
  if (best) byId("ranked").hidden = byId("alpha-row").hidden = false;
});
addEventListener("pagehide", () => {
  for (const id of questions.keys()) fetch(`/v1/subscriptions/${id}`, { method: "DELETE", keepalive: true }).catch(() => {});
});

// -- the past ------------------------------------------------------------------------------------

function inView() {
  const bounds = city.map.getBounds();
  const clamp = (v, low, high) => Math.min(Math.max(v, low), high);
  const box = planar
    ? [bounds.getWest(), bounds.getSouth(), bounds.getEast(), bounds.getNorth()]
    : [clamp(bounds.getWest(), -180, 180), clamp(bounds.getSouth(), -90, 90), clamp(bounds.getEast(), -180, 180), clamp(bounds.getNorth(), -90, 90)];
  return box.map((v) => Math.round(v * 1e6) / 1e6);
}

const back = byId("back");
back.max = Math.max(1, Math.min(60, Math.floor(settings.retain_ms / 60_000)));
back.value = back.max;
back.addEventListener("input", () => { byId("back-out").textContent = `${back.value} min`; });
back.addEventListener("change", askPast);
byId("ask").addEventListener("click", askPast);
byId("past-words").addEventListener("keydown", (event) => event.key === "Enter" && askPast());
byId("clear").addEventListener("click", () => {
  city.set("answers", []);
  byId("answers").replaceChildren();
  byId("answer").textContent = "";
});
async function askPast() {
  const where = byId("past-words").value.trim();
  const query = { kind: "range", region: { bbox: inView() }, ...(where ? { where } : {}) };
  const began = performance.now();
  byId("answer").textContent = "asking";
  try {
    const said = await request("POST", "/v1/ask", { query, last: Number(back.value) * 60_000, limit: 1000, fields: ["at", "text", "time"] });
    const took = Math.round(performance.now() - began);
    byId("answer").textContent = `${number(said.objects.length)}${said.objects.length === 1000 ? " (the latest)" : ""} posts, in ${took} ms, as of batch ${number(said.as_of.batch)}`;
    city.set("answers", said.objects.map((o) => ({ type: "Feature", properties: { text: o.text || "" }, geometry: { type: "Point", coordinates: o.at } })));
    byId("answers").replaceChildren(...said.objects.slice(-12).reverse().map((o) => {
      const line = document.createElement("li");
      const when = document.createElement("span");
      when.textContent = new Date(o.time).toLocaleTimeString();
      line.append(when, o.text || o.id);
      return line;
    }));
  } catch (error) {
    byId("answer").textContent = error.message;
  }
}

// -- the words of what is in view ----------------------------------------------------------------

let before = new Map();
async function showTerms() {
  clearTimeout(pollTerms);
  pollTerms = setTimeout(showTerms, 6000);
  if (document.hidden || !settings.retain_ms) return;
  const last = Math.min(settings.retain_ms, 600_000);
  const query = { kind: "terms", region: { bbox: inView() }, k: 14, window: last, every: last, exclude: OFTEN };
  const said = await request("POST", "/v1/ask", { query, last }).catch(() => null);
  if (!said?.terms) return;
  const places = new Map(said.terms.map(([word], i) => [word, i]));
  byId("terms").replaceChildren(...said.terms.map(([word, count], i) => {
    const item = document.createElement("li");
    const button = document.createElement("button");
    const small = document.createElement("small");
    small.textContent = number(count);
    button.append(word, small);
    button.title = `Watch ${word} in what is in view`;
    button.className = before.size && (before.get(word) ?? 99) > i ? "up" : "";
    button.addEventListener("click", () => { byId("words").value = word; ask("box", { region: { bbox: inView() } }); });
    item.append(button);
    return item;
  }));
  before = places;
}
showTerms();
city.map.on("moveend", () => { clearTimeout(pollTerms); before = new Map(); pollTerms = setTimeout(showTerms, 400); });

// -- tabs ----------------------------------------------------------------------------------------

const tabs = [...document.querySelectorAll("[role=tab]")];
for (const tab of tabs) {
  tab.addEventListener("click", () => {
    for (const other of tabs) {
      other.setAttribute("aria-selected", String(other === tab));
      other.tabIndex = other === tab ? 0 : -1;
      byId(other.getAttribute("aria-controls")).hidden = other !== tab;
    }
    showShards();
  });
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
    next.focus();
    next.click();
  });
}
