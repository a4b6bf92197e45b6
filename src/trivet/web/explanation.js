// The explanation of a hit: ranks, raw, normalised and fused scores, rerankers; and the times of the search.

import { colour, stageColour } from "./colours.js";
import { h } from "./dom.js";
import { ms, percent, score, short, signed } from "./format.js";
import { numbersButton } from "./numbers.js";

const swatch = (name, kind = "") => h("i", { class: `dot ${kind}`, css: { "--c": colour(name) } });
const number = (value) => h("td", { class: "n" }, value);

// The path of the graph leg: a document, how it is connected, the next document.
export const way = (hit) =>
  hit.path?.length > 0 &&
  h(
    "p",
    { class: "way", css: { "--c": colour("graph") } },
    hit.path.map((step, at) => h(at % 2 ? "span" : "b", { dir: "auto" }, step)),
  );

export function why(hit) {
  const most = Math.max(...hit.contributions.map((part) => part.share), 1e-12);
  const rows = hit.contributions.map((part) =>
    h(
      "tr",
      { data: { leg: part.leg } },
      h("th", { scope: "row" }, swatch(part.leg), part.leg),
      number(String(part.rank)),
      number(score(part.raw)),
      number(score(part.normalised)),
      number(short(part.weight)),
      number(score(part.share)),
      h(
        "td",
        { class: "mini" },
        h("i", { css: { "--c": colour(part.leg), width: `${(Math.max(0, part.share) / most) * 100}%` } }),
      ),
    ),
  );
  const head = ["leg", "rank", "raw", "normalised", "weight", "share"].map((text, at) =>
    h("th", { scope: "col", class: at && "n" }, text),
  );
  return h(
    "section",
    { "aria-label": "Why it was found" },
    h("h3", null, "Why it was found"),
    hit.contributions.length
      ? h(
          "div",
          { class: "scroll", tabindex: "0", role: "region", "aria-label": "Scores of each leg" },
          h(
            "table",
            { class: "account" },
            h("thead", null, h("tr", null, head, h("td"))),
            h("tbody", null, rows),
            h(
              "tfoot",
              null,
              h(
                "tr",
                null,
                h("th", { scope: "row", colspan: "5" }, "fused: the sum of the shares"),
                number(score(hit.fused)),
                h("td"),
              ),
            ),
          ),
        )
      : h("p", { class: "quiet" }, "No leg found this document itself: it replaces a document that it supersedes."),
    way(hit),
    hit.adjustments.length > 0 &&
      h(
        "ol",
        { class: "steps" },
        hit.adjustments.map((change) =>
          h(
            "li",
            null,
            swatch(change.reranker, "lift"),
            h("b", null, change.reranker),
            ` ${score(change.before)} → ${score(change.after)} `,
            h(
              "span",
              { class: "quiet" },
              `(${signed(change.after - change.before)}${change.reason ? `; ${change.reason}` : ""})`,
            ),
          ),
        ),
      ),
    h(
      "p",
      { class: "sum" },
      "score ",
      h("b", null, score(hit.score)),
      h("span", { class: "quiet" }, " sets the order of this list"),
      " · relevance ",
      h("b", null, percent(hit.relevance)),
      h("span", { class: "quiet" }, " is comparable between queries"),
    ),
    h("p", null, numbersButton()),
  );
}

export function stages(found) {
  const parts = found.trace.filter((stage) => stage.name !== "total");
  const total = Math.max(found.ms, ...parts.map((stage) => stage.ms), 0.001);
  return h(
    "section",
    { "aria-label": "How the search ran" },
    h("h3", null, "How the search ran"),
    h(
      "ul",
      { class: "stages" },
      parts.map((stage) =>
        h(
          "li",
          null,
          h("span", null, stage.name),
          h(
            "span",
            { class: "track" },
            h("i", { css: { "--c": stageColour(stage.name), width: `${Math.max(0.5, (stage.ms / total) * 100)}%` } }),
          ),
          h("span", { class: "n" }, ms(stage.ms)),
          h("small", null, stage.detail),
        ),
      ),
    ),
    h("p", { class: "quiet" }, `${ms(found.ms)} in total, ${found.candidates} candidates; the legs run in parallel.`),
    h("p", null, h("code", { class: "identity" }, found.profile)),
    degraded(found.degraded),
  );
}

export const degraded = (items) =>
  items?.length > 0 &&
  h(
    "div",
    { class: "degraded", role: "note" },
    h("b", null, "Degraded: "),
    h(
      "ul",
      null,
      items.map((item) => h("li", null, h("b", null, item.part), ` ${item.reason}`)),
    ),
  );
