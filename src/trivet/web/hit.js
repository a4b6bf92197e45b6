// One hit in a list: rank, text with marks, source, and its score bar.

import { way } from "./explanation.js";
import { stacked } from "./score_bar.js";
import { colour } from "./colours.js";
import { button, h } from "./dom.js";
import { date, percent, plain, score } from "./format.js";
import { excerpt, formatOf, titled } from "./document_text.js";

const SOURCES = ["source", "path", "url", "file", "project", "repository", "session", "author"]; // metadata that says where from, in this order
const SHOWN = 2;

export const origin = (document) =>
  SOURCES.filter((name) => document.meta[name] !== undefined)
    .slice(0, SHOWN)
    .map((name) => [name, plain(document.meta[name]).slice(0, 80)]);

export const alone = (hit) => (hit.contributions?.length === 1 ? hit.contributions[0].leg : null);

export function ranks(hit) {
  return h(
    "span",
    { class: "ranks" },
    (hit.contributions ?? []).map((part) =>
      h("span", { title: `${part.leg}: rank ${part.rank}`, css: { "--c": colour(part.leg) } }, h("i"), `${part.rank}`),
    ),
  );
}

export function hitRow(hit, full, { open, judge, verdict } = {}) {
  const { document: found } = hit;
  const only = alone(hit);
  const row = h(
    "li",
    { class: `hit is-${hit.confidence}`, data: { id: hit.id } },
    h("span", { class: "rank", "aria-hidden": "true" }, String(hit.rank)),
    h(
      "div",
      { class: "says" },
      h(
        "h2",
        null,
        button(titled(found), () => open(hit), {
          class: "open",
          dir: "auto",
          "aria-label": `${hit.rank}. ${titled(found)}`,
        }),
        h("span", { class: "kind" }, found.kind),
        only &&
          h(
            "span",
            {
              class: "only",
              title: `Only the ${only} leg found it`,
              css: { "--c": colour(only) },
            },
            `only ${only}`,
          ),
        hit.stands_for?.length > 0 &&
          h(
            "span",
            { class: "replaced", title: `Supersedes ${hit.stands_for.join(", ")}` },
            `replaces ${hit.stands_for[0]}`,
          ),
      ),
      excerpt(hit.text, hit.marks, formatOf(found)),
      only === "graph" && way(hit),
      h(
        "p",
        { class: "from" },
        h("time", { datetime: found.created }, date(found.created)),
        origin(found).map(([name, value]) => h("span", { title: name, dir: "auto" }, value)),
        h("code", null, hit.id),
        hit.location && h("span", { class: "place", title: "Where in the document", dir: "auto" }, hit.location),
        hit.resolved_by?.length > 0 && h("span", { class: "resolved" }, `resolved by ${hit.resolved_by.join(", ")}`),
      ),
    ),
    h(
      "div",
      { class: "made" },
      stacked(hit, full),
      h(
        "p",
        null,
        ranks(hit),
        h(
          "span",
          { class: hit.confidence, title: "Relevance: how likely it answers the query, comparable between queries" },
          `${percent(hit.relevance)} ${hit.confidence}`,
        ),
        h("b", { title: "Score: sets the order of this list" }, score(hit.score)),
      ),
    ),
    judge && verdicts(hit, verdict, judge),
  );
  row.addEventListener("click", (event) => {
    if (!event.target.closest("button, a, summary") && !String(getSelection())) open(hit);
  });
  return row;
}

function verdicts(hit, verdict, judge) {
  const one = (good, text, letter) =>
    button(text, () => judge(hit, verdict === good ? null : good), {
      class: `verdict ${good ? "good" : "bad"}`,
      "aria-pressed": String(verdict === good),
      title: `${text} (${letter})`,
    });
  return h(
    "div",
    { class: "verdicts", role: "group", "aria-label": `Is it a good hit? ${titled(hit.document)}` },
    one(true, "Good", "g"),
    one(false, "Bad", "b"),
  );
}

// Arrow keys move through the hits; Enter opens the one with the focus.
export function walk(list, event) {
  const rows = [...list.querySelectorAll(".open")];
  const at = rows.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
  if (!step || !rows.length) return false;
  const next = at < 0 ? (step > 0 ? 0 : -1) : at + step;
  if (next < 0) return "above";
  rows[Math.min(next, rows.length - 1)].focus();
  return true;
}
