// Requests to the service: sends the key, reads problem details, and notices when the service does not respond.

const KEY = "trivet-key"; // in sessionStorage: gone with the tab

export class Problem extends Error {
  constructor(status, told) {
    super(told.detail || told.title || `the service returned status ${status}`);
    Object.assign(this, { status, title: told.title ?? "", id: told.request_id ?? "", errors: told.errors ?? [] });
  }
}

export class Offline extends Error {
  constructor() {
    super("the service does not respond");
  }
}

export const key = () => sessionStorage.getItem(KEY);
export const setKey = (text) => (text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY));

const heard = { offline: () => {}, online: () => {}, refused: () => {} };
export const hear = (handlers) => Object.assign(heard, handlers);

async function send(path, { method = "GET", body, type, signal } = {}) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = type ?? "application/json";
  if (key()) headers.Authorization = `Bearer ${key()}`;
  const sent = body === undefined || type ? body : JSON.stringify(body);
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: sent, signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    heard.offline();
    throw new Offline();
  }
  heard.online();
  if (!answer.ok) {
    const told = await answer.json().catch(() => ({}));
    if (answer.status === 401) heard.refused(told);
    throw new Problem(answer.status, told);
  }
  return answer;
}

export async function ask(path, options) {
  const answer = await send(path, options);
  return answer.status === 204 ? null : answer.json();
}

export const text = async (path, options) => (await send(path, options)).text();

// Reads NDJSON as it arrives and calls `each` with every line.
export async function lines(path, options, each) {
  const reader = (await send(path, options)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    const parts = (rest + (value ?? "")).split("\n");
    rest = done ? "" : parts.pop();
    for (const part of parts) if (part) each(JSON.parse(part));
    if (done) return;
  }
}

export function query(given) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    for (const item of Array.isArray(value) ? value : [value])
      if (item !== undefined && item !== null) found.append(name, item);
  }
  const text = String(found);
  return text ? `?${text}` : "";
}

export const home = (collection, rest = "") => `/v1/collections/${encodeURIComponent(collection)}${rest}`;
export const documentAt = (collection, id) => home(collection, `/documents/${encodeURIComponent(id)}`);

// Sends a request for each change of the query and drops responses that are out of date.
export function latest(work) {
  let running = null;
  return async (...given) => {
    running?.abort();
    const mine = (running = new AbortController());
    try {
      const found = await work(mine.signal, ...given);
      return mine.signal.aborted ? undefined : found;
    } catch (error) {
      if (mine.signal.aborted) return undefined;
      throw error;
    }
  };
}
