// The score of a hit as a stacked bar: the share of each leg and the change by each reranker.

import { about, colour } from "./colours.js";
import { h } from "./dom.js";
import { score, signed } from "./format.js";
import { numbersButton } from "./numbers.js";

function parts(hit) {
  const given = (hit.contributions ?? [])
    .filter((part) => part.share > 0)
    .map((part) => ({ name: part.leg, size: part.share }));
  const changes = (hit.adjustments ?? []).map((change) => ({
    name: change.reranker,
    size: change.after - change.before,
    reranker: true,
  }));
  return {
    up: [...given, ...changes.filter((change) => change.size > 0)],
    down: changes.filter((change) => change.size < 0),
  };
}

const sum = (items) => items.reduce((total, item) => total + Math.abs(item.size), 0);

export const longest = (hits) => Math.max(...hits.map((hit) => sum(parts(hit).up)), 1e-12);

export function stacked(hit, full) {
  const { up, down } = parts(hit);
  const told = [
    ...up.map((part) => `${part.name} ${part.reranker ? signed(part.size) : score(part.size)}`),
    ...down.map((part) => `${part.name} ${signed(part.size)}`),
  ];
  const piece = (part, kind) =>
    h("i", {
      class: kind,
      title: told.find((text) => text.startsWith(`${part.name} `)),
      data: { part: part.name },
      css: { "--c": colour(part.name), width: `${(Math.abs(part.size) / full) * 100}%` },
    });
  const lost = Math.min(sum(down), sum(up));
  return h(
    "div",
    {
      class: "bar",
      role: "img",
      "aria-label": `Parts of its score of ${score(hit.score)}: ${told.join(", ") || "nothing"}`,
    },
    up.map((part) => piece(part, part.reranker ? "lift" : "")),
    lost > 0 &&
      h("i", {
        class: "lost",
        title: told.slice(up.length).join(", "),
        css: { width: `${(lost / full) * 100}%`, "margin-inline-start": `-${(lost / full) * 100}%` },
      }),
  );
}

// All parts that appear in these hits, legs first, and the way to what they mean.
export function legend(hits) {
  const legs = new Set(hits.flatMap((hit) => (hit.contributions ?? []).map((part) => part.leg)));
  const rerankers = new Set(hits.flatMap((hit) => (hit.adjustments ?? []).map((part) => part.reranker)));
  const item = (name, kind) =>
    h("span", { class: "swatch", title: about(name) }, h("i", { class: kind, css: { "--c": colour(name) } }), name);
  return h(
    "span",
    { class: "legend" },
    [...legs].map((name) => item(name)),
    [...rerankers].map((name) => item(name, "lift")),
    numbersButton(),
  );
}
