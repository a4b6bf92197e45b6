// The saved evaluations, each with its report.

import { ask, key, text } from "./api.js";
import { button, fill, h, keep } from "./dom.js";
import { ago, counted } from "./format.js";
import { attempt } from "./notices.js";
import { bars } from "./plots.js";
import { state } from "./state.js";

export function evaluations() {
  const place = h("section", { "aria-label": "Evaluations", hidden: true });
  if (state.caller.evaluations && !state.caller.collections && !state.caller.bound) load(place);
  return place;
}

async function load(place) {
  const found = await attempt(() => ask("/v1/evaluations"));
  if (!found) return;
  place.hidden = false;
  const sets = Map.groupBy(found.evaluations, (one) => one.dataset);
  fill(
    place,
    h("h2", null, "Evaluations"),
    found.evaluations.length
      ? [...sets].map(([name, items]) => set(name, items))
      : h(
          "p",
          { class: "quiet" },
          "No saved evaluations yet: run ",
          h("code", null, "trivet eval DATASET --save FOLDER"),
          ", or evaluate above.",
        ),
  );
}

function set(name, items) {
  const measure = Object.keys(items[0].overall)[0];
  const latest = [...new Map([...items].reverse().map((one) => [one.name, one])).values()].sort(
    (one, other) => (other.overall[measure] ?? 0) - (one.overall[measure] ?? 0),
  );
  return h(
    "article",
    { class: "job" },
    h(
      "h3",
      null,
      name.split(/[/#]/)[0],
      h("small", { class: "quiet" }, `${counted(items[0].topics, "query", "queries")} · ${measure} · ${ago(items[0].made.at)}`),
    ),
    bars(
      latest.slice(0, 8).map((one) => ({
        label: one.name,
        value: one.overall[measure] ?? 0,
        text: (one.overall[measure] ?? 0).toFixed(3),
      })),
      { most: 1 },
    ),
    h("p", { class: "actions" }, report(items[0])),
  );
}

// A link cannot send a key, so with a key the report is fetched and saved as a file.
function report(one) {
  const url = `/v1/evaluations/${encodeURIComponent(one.file)}/report`;
  if (!key()) return h("a", { href: url, target: "_blank", rel: "noopener" }, "Open the report with its plots");
  const save = async () => keep(one.file.replace(/\.json$/, ".html"), await text(url), "text/html");
  return button("Save the report with its plots", () => attempt(save));
}
