// The Health view: size, backlog, time of each stage, degraded searches.

import { ask } from "./api.js";
import { stageColour } from "./colours.js";
import { fill, h } from "./dom.js";
import { clock, counted, ms, size, whole } from "./format.js";
import { empty, trouble } from "./notices.js";
import { quantile, stageColumns } from "./plots.js";
import { here, isBound, state, WHY_BOUND } from "./state.js";

export const asks = false;
const LOOK = 2500; // milliseconds
const KEPT = 600; // searches, of all workers that answered
const NO_TIMES = { worker: "", workers: 1, searches: [] }; // for a key that may not see those of others
let place = null;
let timer = 0;
let seen = null; // worker and moment → search: several workers answer in turn

export function enter(root) {
  place = h("div", { class: "column wide" });
  seen = { of: state.collection, searches: new Map(), workers: new Set() };
  fill(root, h("h1", { class: "unseen" }, "Health"), place);
}

export const leave = () => clearTimeout(timer);

export async function update() {
  clearTimeout(timer);
  if (seen.of !== state.collection) seen = { of: state.collection, searches: new Map(), workers: new Set() };
  try {
    const times = isBound() ? NO_TIMES : ask(here("/recent?limit=500"));
    const [stats, recent] = await Promise.all([ask(here("/stats")), times]);
    for (const one of recent.searches) seen.searches.set(`${recent.worker} ${one.at}`, one);
    seen.workers.add(recent.worker);
    if (place.isConnected) draw(stats, recent);
  } catch (error) {
    if (place.isConnected) fill(place, trouble(error, update));
  }
  if (place.isConnected && document.body.dataset.view === "health") timer = setTimeout(update, LOOK);
}

function draw(stats, recent) {
  const searches = [...seen.searches.values()].sort((one, other) => (one.at < other.at ? -1 : 1)).slice(-KEPT);
  if (isBound()) {
    fill(place, sizes(stats), h("p", { class: "quiet" }, `Times of searches are not shown. ${WHY_BOUND}`));
    return;
  }
  fill(
    place,
    sizes(stats),
    h(
      "section",
      { "aria-label": "Latency" },
      h("h2", null, "Searches, stage by stage"),
      searches.length
        ? [stageColumns(searches, stagesOf(searches)), table(searches)]
        : empty("No searches since this worker started", "Run a search to see its times here."),
      h(
        "p",
        { class: "quiet" },
        recent.workers > 1
          ? `${recent.workers} workers; each keeps the times of its own searches, and ${seen.workers.size} of them are shown so far. /metrics has the sums of all workers.`
          : "The last searches of this worker, at most 2,000. /metrics has the sums for Prometheus.",
      ),
    ),
    faults(searches),
  );
}

const stagesOf = (searches) => {
  const names = new Set(searches.flatMap((one) => Object.keys(one.stages)));
  const legs = state.choices.legs.filter((leg) => names.has(leg));
  return [...legs, ...[...names].filter((name) => !legs.includes(name))];
};

function sizes(stats) {
  const fact = (number, text, title) => h("div", { title }, h("dd", null, number), h("dt", null, text));
  const embedded = stats.passages ? stats.embedded / stats.passages : 1;
  return h(
    "section",
    { "aria-label": "Size" },
    h(
      "dl",
      { class: "figures" },
      fact(whole(stats.documents), stats.documents === 1 ? "document" : "documents"),
      fact(whole(stats.passages), "passages"),
      fact(whole(stats.links), "links"),
      fact(whole(stats.pending), "waiting to be embedded"),
      !isBound() && fact(size(stats.bytes_store), "store"),
      !isBound() && fact(size(stats.bytes_index), "indexes"),
    ),
    stats.model
      ? h(
          "div",
          { class: "embedded" },
          h("meter", { min: 0, max: 1, value: embedded, "aria-label": "Passages embedded" }),
          h(
            "p",
            { class: "quiet" },
            stats.pending
              ? `${whole(stats.embedded)} of ${whole(stats.passages)} passages are embedded; the rest follow in the background.`
              : "All passages are embedded.",
            " Model ",
            h("code", null, stats.model),
            `, language ${stats.language}.`,
          ),
        )
      : h("p", { class: "quiet" }, `This collection has no embedding model. Language ${stats.language}.`),
    stats.advice && h("div", { class: "degraded" }, stats.advice),
    stats.embed_error && h("div", { class: "degraded" }, h("b", null, "Embedding failed: "), stats.embed_error),
    h("p", null, h("code", { class: "identity" }, stats.profile)),
  );
}

function table(searches) {
  const row = (name, values, mark) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, mark, name),
      [0.5, 0.95, 1].map((part) =>
        h("td", { class: "n" }, ms(part === 1 ? Math.max(...values) : quantile(values, part))),
      ),
      h("td", { class: "n" }, whole(values.length)),
    );
  const stages = stagesOf(searches);
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Time of each stage" },
    h(
      "table",
      { class: "account" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["stage", "p50", "p95", "slowest", "searches"].map((text, at) =>
            h("th", { scope: "col", class: at && "n" }, text),
          ),
        ),
      ),
      h(
        "tbody",
        null,
        stages.map((name) =>
          row(
            name,
            searches.map((one) => one.stages[name]).filter((value) => value !== undefined),
            h("i", { class: "dot", css: { "--c": stageColour(name) } }),
          ),
        ),
      ),
      h(
        "tfoot",
        null,
        row(
          "the whole search",
          searches.map((one) => one.ms),
        ),
      ),
    ),
  );
}

function faults(searches) {
  const found = searches.flatMap((one) => one.degraded.map((item) => ({ ...item, at: one.at }))).reverse();
  return h(
    "section",
    { "aria-label": "Degraded" },
    h("h2", null, "Degraded searches"),
    found.length
      ? [
          h("p", { class: "quiet" }, `${counted(found.length, "time")} a part failed or timed out:`),
          h(
            "ul",
            { class: "faults" },
            found
              .slice(0, 30)
              .map((item) =>
                h(
                  "li",
                  null,
                  h("time", { datetime: item.at }, clock(item.at)),
                  h("b", null, item.part),
                  h("span", null, item.reason),
                ),
              ),
          ),
        ]
      : h("p", { class: "quiet" }, "None: no part failed in any search."),
  );
}
