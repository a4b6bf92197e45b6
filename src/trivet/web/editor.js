// Shows, changes, links, deletes and restores a document.

import * as address from "./url.js";
import { ask, documentAt } from "./api.js";
import { button, field, h, range } from "./dom.js";
import * as drawer from "./drawer.js";
import { date } from "./format.js";
import { graph, neighbours } from "./link_graph.js";
import { attempt, notice } from "./notices.js";
import { guarded, here, mayWrite, state, WHY_NOT } from "./state.js";
import { formatOf, titled, whole } from "./document_text.js";

const TYPES = ["see-also", "supersedes", "resolved-by", "part-of"];
let trail = [];

export async function edit(id, redundancy, changed) {
  const one = await attempt(() => ask(documentAt(state.collection, id)));
  if (!one) return;
  const around = await attempt(() => neighbours(one));
  trail = trail.includes(id) ? trail.slice(0, trail.indexOf(id) + 1) : [...trail, id].slice(-6);
  const go = (other) => address.write({ id: other }, { push: true });
  const crumbs =
    trail.length > 1 &&
    h(
      "nav",
      { class: "crumbs", "aria-label": "Path to this document" },
      trail.slice(0, -1).map((step) => button(step, () => go(step), { class: "link" })),
      h("span", { "aria-current": "page" }, id),
    );
  drawer.show(
    titled(one),
    [
      crumbs,
      marksOf(one, redundancy, go),
      formatOf(one) === "markdown" &&
        h("details", null, h("summary", null, "Formatted text"), whole(one.text, [], "markdown")),
      form(one, changed),
      h(
        "section",
        { "aria-label": "Links" },
        h("h3", null, "Links"),
        graph(one, around ?? { found: [], left: 0 }, go),
        linker(one, changed),
      ),
    ],
    {
      subtitle: `${one.kind} · created ${date(one.created)} · updated ${date(one.updated)}${one.accesses ? ` · recalled ${one.accesses} times` : ""}`,
      onClose: () => {
        trail = [];
        if (address.read().id) address.write({ id: null });
      },
    },
  );
}

function marksOf(one, redundancy, go) {
  const by = redundancy?.by.get(one.id);
  const copies = redundancy?.copies.get(one.id)?.filter((id) => id !== one.id) ?? [];
  if (!by && !copies.length) return null;
  return h(
    "p",
    { class: "redundancy" },
    by && ["Superseded by ", button(by, () => go(by), { class: "link" }), ". A search shows that one instead. "],
    copies.length > 0 && [
      "Duplicate of ",
      copies.map((id, at) => [at > 0 && ", ", button(id, () => go(id), { class: "link" })]),
      ".",
    ],
  );
}

// One line for each field, also for lists.
const written = (meta) =>
  Object.keys(meta).length
    ? `{\n${Object.entries(meta)
        .map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`)
        .join(",\n")}\n}`
    : "{}";

// null removes a key, because the service merges metadata.
function metaChanges(before, after) {
  const found = Object.fromEntries(
    Object.entries(after).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name])),
  );
  for (const name of Object.keys(before)) if (!(name in after)) found[name] = null;
  return found;
}

function form(one, changed) {
  const lock = mayWrite() ? {} : { disabled: true };
  const title = h("input", { value: one.title, dir: "auto", ...lock });
  const text = h("textarea", { rows: "9", value: one.text, dir: "auto", ...lock });
  const kind = h("input", { value: one.kind, ...lock });
  const meta = h("textarea", {
    rows: Math.min(12, 2 + Object.keys(one.meta).length),
    value: written(one.meta),
    spellcheck: "false",
    class: "code",
    ...lock,
  });
  const weight = h("output", null, String(one.importance));
  const importance = range({
    min: 0,
    max: 1,
    step: 0.05,
    value: one.importance,
    ...lock,
    on: { input: () => (weight.textContent = importance.value) },
  });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    wrong.textContent = "";
    let parsed;
    try {
      parsed = JSON.parse(meta.value || "{}");
    } catch (error) {
      wrong.textContent = `metadata: not JSON (${error.message})`;
      return;
    }
    const said = {};
    if (title.value !== one.title) said.title = title.value;
    if (text.value !== one.text) said.text = text.value;
    if (kind.value !== one.kind) said.kind = kind.value;
    if (importance.valueAsNumber !== one.importance) said.importance = importance.valueAsNumber;
    const fields = metaChanges(one.meta, parsed);
    if (Object.keys(fields).length) said.meta = fields;
    if (!Object.keys(said).length) return void notice("No changes to save");
    try {
      await ask(documentAt(state.collection, one.id), { method: "PATCH", body: said });
    } catch (error) {
      wrong.textContent = error.message;
      return;
    }
    notice(`Saved ${one.id}`, { undo: () => putBack(one, changed) });
    changed(one.id);
  };
  return h(
    "form",
    { class: "edit", on: { submit } },
    !mayWrite() && h("p", { class: "quiet" }, WHY_NOT),
    field("Title", title),
    field("Text", text),
    h(
      "div",
      { class: "two" },
      field("Kind", kind),
      h(
        "div",
        { class: "field" },
        h("label", { for: (importance.id = "importance") }, "Importance ", weight),
        importance,
      ),
    ),
    field("Metadata, as JSON", meta),
    wrong,
    h(
      "p",
      { class: "actions" },
      h("button", { type: "submit", class: "main", ...guarded() }, "Save"),
      h("span", { class: "spacer" }),
      button("Delete", () => remove(one, changed), { class: "danger", ...guarded() }),
    ),
  );
}

async function remove(one, changed) {
  await attempt(async () => {
    await ask(documentAt(state.collection, one.id), { method: "DELETE" });
    drawer.hide();
    notice(`Deleted ${one.id}`, { undo: () => putBack(one, changed) });
    changed(null);
  });
}

// Restores text, times and links in both directions. Feedback was never deleted.
export async function putBack(one, changed) {
  const fields = [
    "text",
    "title",
    "kind",
    "meta",
    "importance",
    "created",
    "updated",
    "accessed",
    "valid_from",
    "valid_to",
  ];
  const body = Object.fromEntries(
    fields.filter((name) => one[name] !== null && one[name] !== undefined).map((name) => [name, one[name]]),
  );
  body.links = one.links
    .filter((link) => link.source === one.id)
    .map(({ target, type, weight }) => ({ target, type, weight }));
  await ask(documentAt(state.collection, one.id), { method: "PUT", body });
  for (const link of one.links.filter((each) => each.source !== one.id))
    await attempt(() => ask(here("/links"), { method: "POST", body: link }));
  notice(`${one.id} was restored`);
  changed(one.id);
}

function linker(one, changed) {
  const target = h("input", { placeholder: "id of another document", "aria-label": "Link to", autocomplete: "off" });
  const type = h("input", { value: TYPES[0], list: "types", "aria-label": "Type of the link", size: "12" });
  const submit = (event) => {
    event.preventDefault();
    if (target.value.trim())
      attempt(async () => {
        await ask(here("/links"), {
          method: "POST",
          body: { source: one.id, target: target.value.trim(), type: type.value },
        });
        notice(`Linked to ${target.value.trim()}`);
        changed(one.id);
      });
  };
  return h(
    "form",
    { class: "linker", on: { submit } },
    type,
    h(
      "datalist",
      { id: "types" },
      TYPES.map((name) => h("option", { value: name })),
    ),
    target,
    h("button", { type: "submit", ...guarded() }, "Link"),
  );
}
