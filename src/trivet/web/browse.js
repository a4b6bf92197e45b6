// The Browse view: collections, documents, facets, timeline, superseded documents and duplicates; add and edit.

import * as address from "./url.js";
import { ask, home, latest, query } from "./api.js";
import { button, fill, h } from "./dom.js";
import * as drawer from "./drawer.js";
import { edit } from "./editor.js";
import { facetList, timeline } from "./facets.js";
import { counted, date, whole } from "./format.js";
import { origin, walk } from "./hit.js";
import { bring } from "./file_import.js";
import { attempt, empty, trouble } from "./notices.js";
import * as question from "./query_box.js";
import { guarded, here, mayManage, state } from "./state.js";
import { formatOf, titled } from "./document_text.js";
import { unlaid } from "./highlight.js";

export const asks = false;
const PAGE = 50;
let parts = null;
let asked = "";
let opened = null;
let redundancy = null; // by: id → what supersedes it; copies: id → its group

export function enter(root) {
  asked = "";
  opened = null;
  redundancy = null;
  parts = Object.fromEntries(
    ["collections", "facets", "time", "filters", "head", "list"].map((name) => [name, h("div", { class: name })]),
  );
  parts.facets = h("nav", { class: "sidebar", "aria-label": "Facets" });
  fill(
    root,
    h("h1", { class: "unseen" }, "Browse"),
    parts.collections,
    h(
      "div",
      { class: "library" },
      parts.facets,
      h("div", null, parts.time, h("div", { class: "bar-line" }, parts.filters, parts.head), parts.list),
    ),
  );
  collections();
}

const run = latest((signal, where) =>
  Promise.all([
    ask(here(`/documents${query({ where, limit: PAGE })}`), { signal }),
    ask(here(`/facets${query({ where, values: 30 })}`), { signal }),
    ask(here(`/timeline${query({ where })}`), { signal }),
  ]),
);

export async function update(now) {
  fill(parts.filters, h("div", { class: "chips" }, question.filterChips(now)));
  const wanted = JSON.stringify([state.collection, now.where]);
  if (wanted !== asked) {
    asked = wanted;
    await refresh(now);
  }
  if (now.id && now.id !== opened) {
    opened = now.id;
    redundancy ??= await readRedundancy();
    await edit(now.id, redundancy, changed);
  } else if (!now.id && opened) {
    opened = null;
    drawer.hide();
  }
}

async function refresh(now) {
  try {
    const found = await run(now.where);
    if (!found) return;
    const [page, { facets }, time] = found;
    redundancy ??= await readRedundancy();
    fill(
      parts.facets,
      facets[0].documents
        ? h(
            "details",
            { class: "all", open: matchMedia("(min-width: 56rem)").matches || now.where.length > 0 },
            h("summary", null, "Facets"),
            twice(),
            facetList(facets, now.where),
          )
        : [],
    );
    fill(
      parts.time,
      timeline(time, (from, to) =>
        address.write(
          { where: [...now.where.filter((text) => !/^created[<>]/.test(text)), `created>=${from}`, `created<${to}`] },
          { push: true },
        ),
      ),
    );
    fill(parts.head, h("span", { class: "quiet", role: "status" }, counted(facets[0].documents, "document")), adder());
    draw(page, now);
  } catch (error) {
    asked = "";
    fill(
      parts.list,
      trouble(error, () => update(address.read())),
    );
  }
}

async function readRedundancy() {
  const found = await attempt(() => ask(here("/standing")));
  return {
    by: new Map((found?.superseded ?? []).map((pair) => [pair.id, pair.by])),
    copies: new Map((found?.copies ?? []).flatMap((group) => group.map((id) => [id, group]))),
    groups: found?.copies ?? [],
  };
}

function draw(page, now) {
  if (!page.documents.length) {
    fill(
      parts.list,
      now.where.length
        ? empty(
            "No document matches the filters",
            button("Remove the filters", () => address.write({ where: [] }, { push: true })),
          )
        : empty(
            "This collection is empty",
            "Drop files here: PDF, Office, web pages, e-mail, tables, Markdown, text, code. Each line of JSONL is a document.",
          ),
    );
    return;
  }
  const rows = h("ul", { class: "documents" }, page.documents.map(row));
  let after = page.next;
  const more = button("More", async () => {
    const next = await attempt(() => ask(here(`/documents${query({ where: now.where, limit: PAGE, after })}`)));
    if (!next) return;
    rows.append(...next.documents.map(row));
    after = next.next;
    if (!after) more.remove();
  });
  fill(parts.list, rows, after && more);
}

function row(one) {
  const by = redundancy.by.get(one.id);
  const copies = redundancy.copies.get(one.id);
  return h(
    "li",
    { data: { id: one.id }, class: by && "old" },
    h(
      "h2",
      null,
      button(titled(one), () => address.write({ id: one.id }, { push: true }), { class: "open", dir: "auto" }),
      h("span", { class: "kind" }, one.kind),
      by && h("span", { class: "replaced", title: `Superseded by ${by}` }, "superseded"),
      copies &&
        h(
          "span",
          { class: "replaced", title: `Duplicate of ${copies.filter((id) => id !== one.id).join(", ")}` },
          "duplicate",
        ),
    ),
    h(formatOf(one) === "code" ? "pre" : "p", { class: "text", dir: "auto" }, unlaid(one.text.slice(0, 500)).trim()),
    h(
      "span",
      { class: "from" },
      h("time", { datetime: one.created }, date(one.created)),
      origin(one).map(([name, value]) => h("span", { title: name, dir: "auto" }, value)),
    ),
    h("meter", {
      min: 0,
      max: 1,
      title: `importance ${one.importance}`,
      "aria-label": `importance ${one.importance}`,
      value: one.importance,
    }),
  );
}

function twice() {
  const ids = (found) => JSON.stringify({ id: { in: found.slice(0, 200) } });
  const item = (text, found, count) =>
    found.length > 0 &&
    h(
      "li",
      null,
      button(
        [h("span", null, text), h("b", null, whole(count))],
        () => address.write({ where: [ids(found)] }, { push: true }),
        { class: "facet" },
      ),
    );
  const old = [...redundancy.by.keys()];
  const same = [...redundancy.copies.keys()];
  return (
    (old.length > 0 || same.length > 0) &&
    h(
      "details",
      { class: "facets", open: true },
      h("summary", null, "to review"),
      h("ul", null, item("superseded", old, old.length), item("duplicates", same, same.length)),
    )
  );
}

function changed(id) {
  asked = "";
  opened = null;
  redundancy = null;
  const now = address.read();
  if (id === null && now.id) address.write({ id: null });
  else update({ ...now, id: id ?? now.id });
  collections();
}

async function collections() {
  const found = await Promise.all(
    state.collections.slice(0, 12).map((name) => ask(home(name, "/stats")).catch(() => null)),
  );
  const item = (stats) =>
    stats &&
    h(
      "li",
      null,
      button(
        [h("span", { dir: "auto" }, stats.collection), h("small", null, whole(stats.documents))],
        () => address.write({ collection: stats.collection, where: [], id: null }, { push: true }),
        { "aria-current": String(stats.collection === state.collection) },
      ),
    );
  fill(parts.collections, h("ul", { "aria-label": "Collections" }, found.map(item)), mayManage() && maker());
}

function maker() {
  const name = h("input", { "aria-label": "Name of a new collection", placeholder: "new collection", size: "14" });
  const submit = (event) => {
    event.preventDefault();
    const made = name.value.trim();
    if (made)
      attempt(async () => {
        await ask(home(made), { method: "PUT", body: {} });
        state.collections = (await ask("/v1/collections")).collections;
        address.write({ collection: made, where: [], id: null }, { push: true });
      });
  };
  return h("form", { on: { submit } }, name);
}

function adder() {
  const input = h("input", {
    type: "file",
    multiple: true,
    class: "unseen",
    tabindex: "-1",
    "aria-hidden": "true",
    on: { change: () => bring([...input.files]) },
  });
  return h(
    "span",
    null,
    button("Add files", () => input.click(), guarded()),
    input,
  );
}

export const renew = () => changed(undefined);

export const focus = () => parts.filters.querySelector(".filter")?.focus();
export const keys = (event) => !drawer.isOpen() && Boolean(walk(parts.list, event));
