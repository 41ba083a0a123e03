// Requests to the service, and streams that come back by themselves.
let token = sessionStorage.getItem("token") || "";

const askToken = () =>
  new Promise((done) => {
    const dialog = document.getElementById("token");
    dialog.addEventListener("close", () => {
      token = document.getElementById("token-text").value.trim();
      sessionStorage.setItem("token", token);
      done();
    }, { once: true });
    if (!dialog.open) dialog.showModal();
  });

export async function request(method, path, body) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (answer.status === 401) {
    await askToken();
    return request(method, path, body);
  }
  const said = answer.status === 204 ? null : await answer.json();
  if (!answer.ok) throw new Error(said?.detail || `${answer.status} from ${path}`);
  return said;
}

const withToken = (path) => (token ? `${path}${path.includes("?") ? "&" : "?"}access_token=${encodeURIComponent(token)}` : path);

// Posts as they come. EventSource comes back by itself, but for a gateway that refuses it.
export function posts(heard, state) {
  const source = new EventSource(withToken("/v1/posts"));
  source.onmessage = (event) => heard(JSON.parse(event.data));
  source.onopen = () => state("open");
  source.onerror = () => {
    state("lost");
    if (source.readyState === EventSource.CLOSED) setTimeout(() => posts(heard, state), 2000);
  };
}

// Notifications of the page's own questions. The cursor outlives the connection, so a gateway that
// comes back goes on behind the last one: nothing is lost, nothing comes twice.
export class Stream {
  constructor(heard) {
    this.heard = heard;
    this.ids = new Set();
    this.cursor = null;
    this.wait = 500;
    this.queue = Promise.resolve();
  }

  watch(ids) {
    this.ids = new Set(ids);
    if (this.socket?.readyState === WebSocket.OPEN) this.wish();
    else if (!this.socket && this.ids.size) this.open();
  }

  wish() {
    if (!this.ids.size) return;
    const wish = { subscribe: [...this.ids] };
    if (this.cursor !== null) wish.after = this.cursor;
    this.socket.send(JSON.stringify(wish));
  }

  open() {
    const url = new URL(withToken("/v1/stream"), location.href);
    url.protocol = url.protocol.replace("http", "ws");
    this.socket = new WebSocket(url);
    this.socket.onopen = () => {
      this.wait = 500;
      this.wish();
    };
    this.socket.onmessage = (event) => {
      const note = JSON.parse(event.data);
      if (note.cursor) this.cursor = note.cursor;
      if (note.id && this.ids.has(note.id)) this.heard(note);
    };
    this.socket.onclose = () => {
      this.socket = null;
      if (this.ids.size) setTimeout(() => this.socket || this.open(), this.wait);
      this.wait = Math.min(this.wait * 2, 8000);
    };
  }
}
