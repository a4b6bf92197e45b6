// The Judge view: feedback by keyboard, and tuning with it.

import { degraded } from "./explanation.js";
import * as address from "./url.js";
import { ask, latest, query } from "./api.js";
import { legend, longest } from "./score_bar.js";
import { button, fill, h } from "./dom.js";
import * as drawer from "./drawer.js";
import { learning } from "./tuning.js";
import { evaluations } from "./evaluations.js";
import { counted } from "./format.js";
import { hitRow, walk } from "./hit.js";
import { attempt, empty, notice, trouble } from "./notices.js";
import * as question from "./query_box.js";
import { open } from "./search.js";
import { here, mayWrite, search, state, WHY_NOT } from "./state.js";

export const asks = true;
const PAGE = 10;
let parts = null;
let said = []; // all feedback of the collection
let found = null;
let asked = "";
let learn = null;

export function enter(root) {
  asked = "";
  found = null;
  parts = { hits: h("div", { class: "column" }), judged: h("div") };
  learn = learning();
  fill(
    root,
    h("h1", { class: "unseen" }, "Judge"),
    h(
      "div",
      { class: "bench" },
      parts.hits,
      h(
        "div",
        { class: "learn" },
        learn.element,
        h("section", { "aria-label": "Judged queries" }, h("h2", null, "Judged queries"), parts.judged),
        evaluations(),
      ),
    ),
  );
}

export const leave = () => learn?.stop();

const run = latest((signal, now) => search({ query: now.q, k: PAGE, where: now.where }, signal));

export async function update(now) {
  const wanted = JSON.stringify([state.collection, now.q, now.where]);
  if (wanted === asked) return;
  const first = asked === "";
  asked = wanted;
  if (first) await heard();
  if (!now.q.trim()) {
    found = null;
    fill(
      parts.hits,
      empty(
        "Type a query that users would type",
        h(
          "p",
          null,
          "Then judge each hit: ",
          h("kbd", null, "g"),
          " good, ",
          h("kbd", null, "b"),
          " bad, ",
          h("kbd", null, "u"),
          " undo. The focus moves to the next hit.",
        ),
      ),
    );
    question.tell();
    return;
  }
  try {
    const next = await run(now);
    if (!next) return;
    found = next;
    draw();
  } catch (error) {
    asked = "";
    fill(
      parts.hits,
      trouble(error, () => update(address.read())),
    );
  }
}

async function heard() {
  said = (await attempt(() => ask(here("/feedback"))))?.feedback ?? [];
  list();
  learn.refresh();
}

const verdictOn = (id) => said.find((one) => one.query === found.query && one.id === id)?.good;

function draw() {
  if (!found.hits.length) return void fill(parts.hits, empty("No hits", "There is nothing to judge for this query."));
  const full = longest(found.hits);
  const rows = found.hits.map((hit) =>
    hitRow(hit, full, { open: (one) => open(one, found), judge, verdict: verdictOn(hit.id) }),
  );
  for (const [at, row] of rows.entries()) {
    const verdict = verdictOn(found.hits[at].id);
    row.classList.toggle("is-good", verdict === true);
    row.classList.toggle("is-bad", verdict === false);
    if (!mayWrite())
      for (const each of row.querySelectorAll(".verdict")) Object.assign(each, { disabled: true, title: WHY_NOT });
  }
  fill(parts.hits, degraded(found.degraded), h("ol", { class: "hits judging" }, rows));
  const given = said.filter((one) => one.query === found.query);
  question.tell(
    h(
      "span",
      null,
      given.length
        ? `${counted(given.filter((one) => one.good).length, "good hit")}, ${given.filter((one) => !one.good).length} bad`
        : "not judged yet",
    ),
    legend(found.hits),
  );
}

async function judge(hit, good) {
  if (!mayWrite()) return void notice(WHY_NOT, { kind: "wrong" });
  await attempt(async () => {
    if (good === null) await ask(here(`/feedback${query({ query: found.query, id: hit.id })}`), { method: "DELETE" });
    else await ask(here("/feedback"), { method: "POST", body: { query: found.query, id: hit.id, good } });
    const focused = document.activeElement?.closest(".hit")?.dataset.id;
    const onVerdict = document.activeElement?.classList.contains("verdict");
    await heard();
    draw();
    const row = [...parts.hits.querySelectorAll(".hit")].find((each) => each.dataset.id === focused);
    row?.querySelector(onVerdict ? `.verdict.${good === false ? "bad" : "good"}` : ".open")?.focus();
  });
}

function list() {
  const questions = new Map();
  for (const one of said) {
    const counts = questions.get(one.query) ?? { good: 0, bad: 0 };
    counts[one.good ? "good" : "bad"] += 1;
    questions.set(one.query, counts);
  }
  const row = ([text, counts]) =>
    h(
      "li",
      null,
      button(text, () => address.write({ q: text, where: [] }, { push: true }), { class: "link", dir: "auto" }),
      h(
        "span",
        { class: "n" },
        h("b", { class: "good" }, `${counts.good}`),
        " / ",
        h("b", { class: "bad" }, `${counts.bad}`),
      ),
    );
  fill(
    parts.judged,
    questions.size
      ? h("ul", { class: "questions" }, [...questions].reverse().slice(0, 200).map(row))
      : h("p", { class: "quiet" }, "None yet."),
  );
}

export function keys(event) {
  if (!found || drawer.isOpen()) return false;
  const verdict = { g: true, b: false, u: null }[event.key];
  if (verdict !== undefined) {
    const row = document.activeElement?.closest(".hit");
    if (!row) return false;
    const hit = found.hits.find((one) => one.id === row.dataset.id);
    judge(hit, verdict).then(() => verdict !== null && walk(parts.hits, { key: "ArrowDown" }));
    return true;
  }
  const moved = walk(parts.hits, event);
  if (moved === "above") question.focus();
  return Boolean(moved);
}
