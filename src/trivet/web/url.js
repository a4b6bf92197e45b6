// The state in the URL: view, collection, query and filters. A link shows the same page to others.

const listeners = new Set();

export function read() {
  const given = new URLSearchParams(location.search);
  return {
    view: given.get("view") ?? "search",
    collection: given.get("c"),
    q: given.get("q") ?? "",
    where: given.getAll("where"),
    id: given.get("id"),
    left: given.get("left"),
    right: given.get("right"),
  };
}

export function write(changes, { push = false } = {}) {
  const now = { ...read(), ...changes };
  const given = new URLSearchParams();
  if (now.view !== "search") given.set("view", now.view);
  if (now.collection) given.set("c", now.collection);
  if (now.q) given.set("q", now.q);
  for (const item of now.where) given.append("where", item);
  for (const name of ["id", "left", "right"]) if (now[name]) given.set(name, now[name]);
  const text = String(given);
  const next = text ? `/?${text}` : "/";
  if (next !== location.pathname + location.search) history[push ? "pushState" : "replaceState"](null, "", next);
  for (const listener of listeners) listener(now);
}

export const follow = (listener) => listeners.add(listener);

addEventListener("popstate", () => {
  const now = read();
  for (const listener of listeners) listener(now);
});
