// The documents linked with a document, as a small graph; a click opens a neighbour.

import { ask, query } from "./api.js";
import { h, s } from "./dom.js";
import { here } from "./state.js";
import { titled } from "./document_text.js";

const MOST = 12; // neighbours drawn
const WIDTH = 420;

export async function neighbours(document) {
  const around = new Map();
  for (const link of document.links) {
    const other = link.source === document.id ? link.target : link.source;
    if (other !== document.id && !around.has(other))
      around.set(other, { id: other, type: link.type, out: link.source === document.id });
  }
  const ids = [...around.keys()].slice(0, MOST);
  if (!ids.length) return { found: [], left: 0 };
  const page = await ask(here(`/documents${query({ where: JSON.stringify({ id: { in: ids } }), limit: MOST })}`));
  const known = new Map(page.documents.map((one) => [one.id, one]));
  return { found: ids.map((id) => ({ ...around.get(id), document: known.get(id) })), left: around.size - ids.length };
}

const cut = (text, room) => (text.length > room ? `${text.slice(0, room - 1)}…` : text);

export function graph(document, { found, left }, go) {
  if (!found.length) return h("p", { class: "quiet" }, "No links to other documents.");
  const height = found.length > 2 ? 260 : 96;
  const [x, y] = [WIDTH / 2, height / 2];
  const spots = found.map((one, at) => {
    const angle = (at / found.length) * 2 * Math.PI - (found.length > 2 ? Math.PI / 2 : 0);
    return { ...one, x: x + Math.cos(angle) * (found.length > 2 ? 140 : 115), y: y + Math.sin(angle) * 98 };
  });
  const node = (one) => {
    const title = one.document ? titled(one.document) : one.id;
    const walk = () => one.document && go(one.id);
    const made = s(
      "g",
      {
        class: one.document ? "node" : "node gone",
        transform: `translate(${one.x} ${one.y})`,
        tabindex: one.document ? "0" : undefined,
        role: one.document ? "link" : "img",
        "aria-label": `${one.out ? `${one.type} →` : `← ${one.type}`} ${title}${one.document ? "" : " (not found)"}`,
      },
      s("title", null, `${one.out ? "this" : title} ${one.type} ${one.out ? title : "this"}`),
      s("circle", { r: 6 }),
      s("text", { y: one.y < y ? -12 : 20, "text-anchor": "middle" }, cut(title, 24)),
    );
    made.addEventListener("click", walk);
    made.addEventListener("keydown", (event) => event.key === "Enter" && walk());
    return made;
  };
  const edge = (one) => [
    s("line", {
      class: `edge ${one.type}`,
      x1: one.out ? x : one.x,
      y1: one.out ? y : one.y,
      x2: one.out ? one.x : x,
      y2: one.out ? one.y : y,
      "marker-end": "url(#arrow)",
    }),
    s(
      "text",
      { class: "type", x: x + (one.x - x) * 0.55, y: y + (one.y - y) * 0.55 - 4, "text-anchor": "middle" },
      one.type,
    ),
  ];
  return h(
    "figure",
    { class: "graph" },
    s(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${height}`, role: "group", "aria-label": "Linked documents" },
      s(
        "defs",
        null,
        s(
          "marker",
          { id: "arrow", viewBox: "0 0 8 8", refX: 15, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" },
          s("path", { d: "M0 0 8 4 0 8z" }),
        ),
      ),
      spots.map(edge),
      s("circle", { class: "self", cx: x, cy: y, r: 8 }),
      spots.map(node),
    ),
    left > 0 && h("figcaption", { class: "quiet" }, `${left} more are not shown`),
  );
}
