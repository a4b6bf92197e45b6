// The Search view: hits, their explanation, and why a document is missing.

import { degraded, stages, why } from "./explanation.js";
import * as address from "./url.js";
import { ask, latest } from "./api.js";
import { formatOf, titled, whole } from "./document_text.js";
import { legend, longest } from "./score_bar.js";
import { button, fill, h } from "./dom.js";
import * as drawer from "./drawer.js";
import { date, ms, whole as number, plain } from "./format.js";
import { alone, hitRow, walk } from "./hit.js";
import { attempt, empty, trouble } from "./notices.js";
import * as question from "./query_box.js";
import { here, search, state } from "./state.js";

export const asks = true;
const PAGE = 10;
let list = null;
let place = null;
let found = null;
let asked = "";

export function enter(root) {
  place = h("div", { class: "column" });
  asked = "";
  found = null;
  fill(root, h("h1", { class: "unseen" }, "Search"), place);
}

const WEAK = "not likely to answer the query";
const ALL_WEAK = "None of these is likely to answer the query; they are the nearest documents.";
const isWeak = (hit) => hit.confidence === "weak";

const run = latest((signal, now, offset) => search({ query: now.q, k: PAGE, offset, where: now.where }, signal));

export async function update(now) {
  const wanted = JSON.stringify([state.collection, now.q, now.where]);
  if (wanted === asked) return;
  asked = wanted;
  drawer.hide();
  if (!now.q.trim()) {
    found = null;
    question.tell();
    await welcome();
    return;
  }
  if (!place.childElementCount) fill(place, h("p", { class: "quiet pad" }, "Searching…"));
  place.setAttribute("aria-busy", "true");
  try {
    const next = await run(now, 0);
    if (next === undefined) return; // somebody typed on
    found = next;
    draw(now);
  } catch (error) {
    asked = "";
    found = null;
    question.tell();
    fill(
      place,
      trouble(error, () => update(address.read())),
    );
  } finally {
    place.removeAttribute("aria-busy");
  }
}

function draw(now) {
  if (!found.hits.length) {
    tell();
    fill(
      place,
      degraded(found.degraded),
      empty(
        "No hits",
        now.where.length
          ? "A filter may exclude the document."
          : "No document is above the relevance threshold of the settings.",
      ),
      whyNot(now),
    );
    return;
  }
  list = h("ol", { class: "hits" });
  const note = isWeak(found.hits[0]) && h("p", { class: "weak-note", role: "note" }, h("b", null, "Only weak matches. "), ALL_WEAK);
  fill(place, degraded(found.degraded), note, list, h("div", { class: "after" }, more(now), whyNot(now)));
  append(found.hits);
  tell();
}

// Relevance never increases down the list, so one line is above all weak hits.
function append(hits) {
  const full = longest(found.hits);
  for (const hit of hits) {
    if (isWeak(hit) && !isWeak(found.hits[0]) && !list.querySelector(".weak-line"))
      list.append(h("li", { class: "weak-line" }, "Weak matches", h("small", null, WEAK)));
    list.append(hitRow(hit, full, { open }));
  }
}

function more(now) {
  const made = button("More", async () => {
    const next = await attempt(() => search({ query: now.q, k: PAGE, offset: found.hits.length, where: now.where }));
    if (!next) return;
    found.hits.push(...next.hits);
    append(next.hits);
    if (next.hits.length < PAGE) made.remove();
    list.querySelectorAll(".open")[found.hits.length - next.hits.length]?.focus();
    tell();
  });
  return found.hits.length === PAGE && made;
}

function tell() {
  const single = found.hits.filter(alone).length;
  question.tell(
    h("span", null, `${number(found.hits.length)} of ${number(found.candidates)} candidates in ${ms(found.ms)}`),
    single > 0 && h("span", null, `${single} found by one leg only`),
    legend(found.hits),
  );
}

export function open(hit, answer = found) {
  const { document: one } = hit;
  const meta = Object.entries(one.meta);
  const format = formatOf(one);
  const row = (name, value) =>
    value !== null &&
    value !== undefined &&
    value !== "" &&
    h("div", null, h("dt", null, name), h("dd", { dir: "auto" }, plain(value)));
  drawer.show(
    titled(one),
    [
      why(hit),
      h(
        "section",
        { "aria-label": "The document" },
        h("h3", null, "The document"),
        whole(hit.text, hit.marks, format),
        hit.context?.length > 0 &&
          h(
            "details",
            null,
            h("summary", null, "Text around the passage"),
            hit.context.map((passage) => whole(passage.text, [], format)),
          ),
        hit.text !== one.text &&
          h(
            "details",
            null,
            h("summary", null, "The whole document; the matching passage is above"),
            whole(one.text, [], format),
          ),
      ),
      h(
        "dl",
        { class: "facts" },
        row("id", one.id),
        row("kind", one.kind),
        row("created", date(one.created)),
        row("updated", date(one.updated)),
        row("valid from", date(one.valid_from)),
        row("valid to", date(one.valid_to)),
        row("importance", String(one.importance)),
        row("recalled", one.accesses ? `${one.accesses} times` : ""),
        meta.map(([name, value]) => row(name, value)),
      ),
      h(
        "p",
        null,
        button("Open in Browse", () => address.write({ view: "browse", id: one.id, where: [] }, { push: true })),
      ),
      stages(answer),
    ],
    { subtitle: `rank ${hit.rank} for “${answer.query.slice(0, 120)}”` },
  );
}

// The rank and score in every leg of a document that is not among the hits.
function whyNot(now) {
  const input = h("input", { id: "missing", placeholder: "id of the document", autocomplete: "off", spellcheck: "false" });
  const told = h("div", { "aria-live": "polite" });
  const submit = (event) => {
    event.preventDefault();
    if (!input.value.trim()) return;
    attempt(async () => {
      const said = await ask(here("/explain"), {
        method: "POST",
        body: { query: now.q, id: input.value.trim(), where: now.where },
      });
      const rows = said.verdicts.map((one) =>
        h(
          "li",
          null,
          h("b", null, one.leg),
          ` ${one.rank ? `rank ${one.rank}` : one.note || "not in its ranking"}`,
          h(
            "span",
            { class: "quiet" },
            one.score === null
              ? ""
              : ` · raw ${one.score.toFixed(3)}, weight ${one.weight.toFixed(2)}, depth ${one.depth}`,
          ),
        ),
      );
      fill(told, h("p", null, h("b", null, said.reason)), h("ul", null, rows));
    });
  };
  return h(
    "details",
    { class: "whynot" },
    h("summary", null, "Is a document missing?"),
    h(
      "form",
      { on: { submit } },
      h("label", { for: "missing" }, "Explain why a document is not in the list"),
      input,
      h("button", { type: "submit" }, "Explain"),
    ),
    told,
  );
}

async function welcome() {
  const wanted = asked;
  const stats = await attempt(() => ask(here("/stats")));
  if (!stats || asked !== wanted) return;
  if (!stats.documents) {
    fill(
      place,
      empty(
        "This collection is empty",
        h(
          "p",
          null,
          "Drop files on this page, or run ",
          h("code", null, "trivet import notes/"),
          ".",
        ),
      ),
    );
    return;
  }
  const page = await attempt(() => ask(here("/qrels")));
  if (asked !== wanted) return;
  const examples = (page?.topics ?? [])
    .slice(-5)
    .map((topic) =>
      button(topic.text, () => address.write({ q: topic.text }, { push: true }), { class: "link", dir: "auto" }),
    );
  fill(
    place,
    empty(
      `${number(stats.documents)} documents, searched by words and by meaning`,
      h(
        "p",
        { class: "keys" },
        "Type a query. Press ",
        h("kbd", null, "/"),
        " to return to it, ",
        h("kbd", null, "↓"),
        " to move through the hits, ",
        h("kbd", null, "?"),
        " for all shortcuts.",
      ),
      examples.length > 0 &&
        h(
          "ul",
          { class: "examples" },
          examples.map((one) => h("li", null, one)),
        ),
    ),
  );
}

// What is stored has changed.
export function renew() {
  asked = "";
  update(address.read());
}

export function keys(event) {
  if (!list?.isConnected) return false;
  const moved = walk(list, event);
  if (moved === "above") question.focus();
  return Boolean(moved);
}
