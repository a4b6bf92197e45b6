// Tuning and evaluation on the feedback: start a job, show its progress and its result.

import { ask, text } from "./api.js";
import { button, fill, h, keep, s } from "./dom.js";
import { ago, counted, signed, whole } from "./format.js";
import { change } from "./settings_history.js";
import { attempt } from "./notices.js";
import { bars } from "./plots.js";
import { guarded, guardedWhole, here, isBound, state, WHY_BOUND } from "./state.js";

const LOOK = 700; // milliseconds between two looks at a job that runs

export function learning() {
  const place = h("section", { "aria-label": "Tune and evaluate on the feedback" });
  const told = h("div");
  const result = h("div", { "aria-live": "polite" });
  let timer = 0;
  fill(place, h("h2", null, "Tune and evaluate"), told, result);

  async function refresh() {
    clearTimeout(timer);
    const jobsOf = isBound() ? { jobs: [] } : ask(here("/jobs"));
    const found = await attempt(() => Promise.all([ask(here("/qrels")), jobsOf]));
    if (!found || !place.isConnected) return;
    const [qrels, { jobs }] = found;
    const running = jobs.find((job) => job.state === "running");
    fill(told, judgements(qrels, running, begin));
    fill(
      result,
      jobs.length
        ? jobs.sort((one, other) => (one.started < other.started ? 1 : -1)).map((job) => shown(job, refresh))
        : isBound()
          ? h("p", { class: "quiet" }, `Tuning changes the settings. ${WHY_BOUND}`)
          : h(
              "p",
              { class: "quiet" },
              "Tuning tries about sixty settings on the judged queries. It changes nothing unless the gain holds on queries that were not used for tuning.",
            ),
    );
    if (running) timer = setTimeout(refresh, LOOK);
  }

  const begin = (kind) =>
    attempt(async () => {
      const profiles = kind === "evaluate" ? state.profiles.map((profile) => profile.name) : [];
      await ask(here("/jobs"), { method: "POST", body: { kind, profiles } });
      await refresh();
    });
  return { element: place, refresh, stop: () => clearTimeout(timer) };
}

function judgements(qrels, running, begin) {
  const judged = qrels.topics.length;
  const lock =
    running || judged < qrels.needed
      ? { disabled: true, title: running ? "A job is running" : `Judge ${qrels.needed - judged} more queries` }
      : guardedWhole();
  const next =
    judged < qrels.needed
      ? `${qrels.needed} are needed for tuning`
      : judged < qrels.few
        ? `with ${qrels.few} a gain can change the settings`
        : "enough to change the settings";
  return [
    h("p", null, h("b", null, counted(judged, "query", "queries")), ` with a good document; ${next}.`),
    h("meter", {
      min: 0,
      max: qrels.few,
      low: qrels.needed,
      value: Math.min(judged, qrels.few),
      "aria-label": `${judged} of ${qrels.few} queries`,
    }),
    qrels.notes.map((note) => h("p", { class: "quiet" }, note)),
    h(
      "p",
      { class: "actions" },
      button("Tune", () => begin("tune"), { class: "main", ...lock }),
      button("Evaluate all profiles", () => begin("evaluate"), lock),
      button("qrels", () => attempt(async () => keep("qrels.txt", await text(here("/qrels?format=trec")))), {
        class: "link",
        title: "The judgements as a TREC file",
      }),
    ),
  ];
}

function shown(job, refresh) {
  const stop = () =>
    attempt(async () => {
      await ask(here(`/jobs/${job.kind}`), { method: "DELETE" });
      await refresh();
    });
  const head = h(
    "h3",
    null,
    job.kind === "tune" ? "Tuning" : "Evaluation",
    h("small", { class: "quiet" }, ago(job.started)),
  );
  if (job.state === "running")
    return h(
      "article",
      { class: "job", data: { state: "running" } },
      head,
      h("progress", { max: job.total || 1, "aria-label": "Progress", value: job.done }),
      h(
        "p",
        { class: "actions" },
        h("span", { class: "quiet" }, `${job.step} ${whole(job.done)} of ${whole(job.total)}`),
        h("span", { class: "spacer" }),
        button("Stop", stop, guarded()),
      ),
    );
  if (job.state !== "done")
    return h(
      "article",
      { class: "job", data: { state: job.state } },
      head,
      h("p", { class: job.state === "failed" ? "wrong" : "quiet" }, job.error ?? "stopped"),
    );
  return h(
    "article",
    { class: "job", data: { state: "done", kind: job.kind } },
    head,
    job.kind === "tune" ? tuned(job.result) : evaluated(job.result),
  );
}

function tuned(result) {
  const { pair } = result;
  const [what, ...why] = result.reason.split(": ");
  const apply = () => attempt(() => change(() => ask(here("/jobs/tune/apply"), { method: "POST" })));
  return [
    h(
      "p",
      { class: result.changed ? "verdict-yes" : "verdict-no" },
      h("b", null, what),
      why.length ? `: ${why.join(": ")}` : "",
    ),
    interval(pair),
    h(
      "table",
      { class: "account" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h(
            "th",
            { scope: "col" },
            `${pair.n} queries, ${result.holdout ? "held out" : `${result.folds}-fold cross-validated`}`,
          ),
          h("th", { scope: "col", class: "n" }, pair.measure),
        ),
      ),
      h(
        "tbody",
        null,
        h("tr", null, h("th", { scope: "row" }, pair.baseline), h("td", { class: "n" }, pair.mean_baseline.toFixed(4))),
        h(
          "tr",
          null,
          h("th", { scope: "row" }, "tuned without these queries"),
          h("td", { class: "n" }, pair.mean_challenger.toFixed(4)),
        ),
        h("tr", null, h("th", { scope: "row" }, "one-sided p"), h("td", { class: "n" }, result.p.toFixed(4))),
        h(
          "tr",
          null,
          h("th", { scope: "row" }, "better / worse / same"),
          h("td", { class: "n" }, `${pair.wins} / ${pair.losses} / ${pair.ties}`),
        ),
      ),
    ),
    h(
      "h4",
      null,
      `What ${Object.values(result.votes).reduce((sum, count) => sum + count, 0)} folds chose, of ${result.tried} settings`,
    ),
    bars(told(Object.entries(result.votes).slice(0, 5)).map(([label, value]) => ({ label, value, text: `${value}` }))),
    [...result.warnings, ...result.notes].map((text) => h("p", { class: "quiet" }, text)),
    h(
      "p",
      { class: "actions" },
      button(
        "Apply",
        apply,
        result.changed
          ? { class: "main", ...guarded() }
          : { disabled: true, title: "The gain did not hold on queries that were not used for tuning" },
      ),
      h("details", null, h("summary", null, "The profile, as TOML"), h("pre", { tabindex: "0" }, result.toml)),
    ),
  ];
}

// Removes what all identities have in common.
function told(votes) {
  const parts = votes.map(([label]) => label.split(", "));
  const lists = parts.filter((list) => list.length > 1);
  const shared = lists.length > 1 ? lists[0].filter((part) => lists.every((list) => list.includes(part))) : [];
  return votes.map(([label, count], at) => [
    parts[at].filter((part) => !shared.includes(part)).join(", ") || label,
    count,
  ]);
}

// The gain on held-out queries with its 95 % interval; it counts if the interval excludes 0.
function interval(pair) {
  const most = Math.max(Math.abs(pair.low), Math.abs(pair.high), 0.01) * 1.15;
  const x = (value) => 160 + (value / most) * 150;
  const apart = Math.min(Math.abs(x(pair.low) - 160), Math.abs(x(pair.high) - 160)) > 24; // room for the 0 between
  return h(
    "figure",
    { class: "interval" },
    s(
      "svg",
      {
        viewBox: "0 0 320 48",
        role: "img",
        "aria-label": `Gain out of sample ${signed(pair.difference, 4)}, 95 % interval ${signed(pair.low, 4)} to ${signed(pair.high, 4)}`,
      },
      s("line", { class: "zero", x1: 160, x2: 160, y1: 2, y2: 34 }),
      s("line", { class: "span", x1: x(pair.low), x2: x(pair.high), y1: 18, y2: 18 }),
      s("circle", { cx: x(pair.difference), cy: 18, r: 5 }),
      apart && s("text", { x: 160, y: 46, "text-anchor": "middle" }, "0"),
      s("text", { x: x(pair.low), y: 46, "text-anchor": "middle" }, signed(pair.low)),
      s("text", { x: x(pair.high), y: 46, "text-anchor": "middle" }, signed(pair.high)),
    ),
  );
}

function evaluated(result) {
  const measure = Object.keys(result.evaluations[0].overall)[0];
  const rows = result.evaluations.map((one) => ({
    label: one.name,
    value: one.overall[measure],
    text: one.overall[measure].toFixed(3),
  }));
  return [
    h("h4", null, `${measure} on the judged queries`),
    bars(rows, { most: 1 }),
    result.pairs.length > 0 &&
      h(
        "details",
        null,
        h("summary", null, "Significance of the differences"),
        result.pairs.map((pair) => h("p", { class: "quiet" }, `${pair.challenger}: ${pair.verdict}`)),
      ),
  ];
}
