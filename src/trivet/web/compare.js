// The Compare view: two rankings of one query, and controls that change the second profile live.

import { degraded } from "./explanation.js";
import * as address from "./url.js";
import { ask, key, latest } from "./api.js";
import { legend, longest, stacked } from "./score_bar.js";
import { controls } from "./profile_controls.js";
import { offer } from "./copy_dialog.js";
import { button, debounced, fill, h, s, select } from "./dom.js";
import * as draft from "./profile_draft.js";
import * as drawer from "./drawer.js";
import { ms, percent } from "./format.js";
import { change, past } from "./settings_history.js";
import { walk } from "./hit.js";
import { attempt, empty, notice, trouble } from "./notices.js";
import * as question from "./query_box.js";
import * as ribbon from "./rank_lines.js";
import { open } from "./search.js";
import { guardedWhole, here, search, settings, state } from "./state.js";
import { titled } from "./document_text.js";

export const asks = true;
const QUIET = 40; // milliseconds: a slider that is dragged asks with every step it rests on
const START = { left: draft.SETTINGS, right: "memories" };
let parts = null; // the elements of this view
let sides = null; // left, right: { name, base, draft, found }
let now = null;
let watcher = null;

export function enter(root) {
  sides = null;
  parts = {
    desk: h("div", { class: "desk" }),
    glance: h("p", { class: "glance", role: "status" }),
    left: column("left"),
    right: column("right"),
    svg: s("svg", { class: "ribbon", "aria-hidden": "true" }),
    history: h("div"),
  };
  fill(
    root,
    h("h1", { class: "unseen" }, "Compare two profiles"),
    parts.desk,
    parts.glance,
    h("div", { class: "beside" }, parts.left, parts.svg, parts.right),
    h(
      "details",
      { class: "history", on: { toggle: (event) => event.target.open && past(parts.history, inForce) } },
      h("summary", null, "History of the settings"),
      parts.history,
    ),
  );
  watcher = new ResizeObserver(() => join());
  watcher.observe(parts.svg);
}

export const leave = () => watcher?.disconnect();

const column = (side) =>
  h("section", { class: `side ${side}`, "aria-label": side === "left" ? "Profile A" : "Profile B" });

export async function update(given) {
  now = given;
  const wanted = [given.left ?? START.left, given.right ?? START.right];
  if (!sides || sides.left.asked !== wanted[0] || sides.right.asked !== wanted[1] || sides.of !== state.collection) {
    const force = await attempt(settings);
    if (!force) return;
    sides = { left: side(wanted[0], force), right: side(wanted[1], force), of: state.collection };
    desk();
  }
  await both();
}

// The URL has the name of a profile and, after "!", its changes.
function side(asked, force) {
  const [name, ...rest] = asked.split("!");
  const known = state.profiles.find((profile) => profile.name === name);
  const base = draft.plain(known ?? force);
  let given = {};
  try {
    given = rest.length ? JSON.parse(rest.join("!")) : {};
  } catch {
    notice("the changes in the link could not be read; the profile is shown without them", { kind: "wrong" });
  }
  return { asked, name: known ? name : draft.SETTINGS, base, draft: draft.apply(base, given), found: null };
}

const body = (one) => {
  const overrides = draft.changes(one.base, one.draft);
  return {
    query: now.q,
    where: now.where,
    ...(one.name === draft.SETTINGS ? {} : { profile: one.name }),
    ...(Object.keys(overrides).length ? { overrides } : {}),
  };
};

const ask_ = {
  left: latest((signal, one) => search(body(one), signal)),
  right: latest((signal, one) => search(body(one), signal)),
};

async function refresh(where) {
  const one = sides[where];
  if (!now.q.trim()) {
    one.found = null;
    return;
  }
  const wanted = JSON.stringify(body(one));
  if (one.found && one.key === wanted) return; // the other side was turned
  try {
    const found = await ask_[where](one);
    if (found) Object.assign(one, { found, key: wanted, trouble: null });
  } catch (error) {
    Object.assign(one, { found: null, trouble: error });
  }
}

async function both() {
  await Promise.all([refresh("left"), refresh("right")]);
  drawSides();
}

const turned = debounced(QUIET, async () => {
  const changes = draft.changes(sides.right.base, sides.right.draft);
  sides.right.asked = Object.keys(changes).length ? `${sides.right.name}!${JSON.stringify(changes)}` : sides.right.name;
  address.write({ right: sides.right.asked });
});

function desk() {
  const { left, right } = sides;
  const names = [[draft.SETTINGS, "current settings"], ...state.profiles.map((profile) => profile.name)];
  const choose = (where) => (name) => address.write({ [where]: name }, { push: true });
  const changed = (change, redraw) => {
    right.draft = change(right.draft);
    if (redraw) redrawn();
    else tools();
    turned();
    return right.draft;
  };
  fill(
    parts.desk,
    h(
      "div",
      { class: "pair" },
      h("label", null, h("b", null, "A"), select(names, left.name, choose("left"), "Profile A")),
      h("span", { class: "quiet" }, "against"),
      h("label", null, h("b", null, "B"), select(names, right.name, choose("right"), "Profile B")),
    ),
    h(
      "details",
      {
        class: "turn",
        open: parts.turned ?? matchMedia("(min-width: 56rem)").matches,
        on: { toggle: (event) => (parts.turned = event.target.open) },
      },
      h("summary", null, "Change profile B"),
      controls(right.draft, changed),
    ),
    (parts.tools = h("div", { class: "actions" })),
  );
  tools();
}

// Choosing an option may add or remove controls; the one in use keeps the focus.
function redrawn() {
  const all = () => [...parts.desk.querySelectorAll("input, select, button")];
  const at = all().indexOf(document.activeElement);
  desk();
  all()[at]?.focus();
}

function tools() {
  const { right } = sides;
  const differs = Object.keys(draft.changes(right.base, right.draft)).length;
  fill(
    parts.tools,
    button("Save B as settings", save, { class: "main", ...guardedWhole() }),
    button("Reset B", () => address.write({ right: right.name }), { disabled: !differs }),
    h("span", { class: "spacer" }),
    h("span", { class: "quiet" }, "copy B as"),
    ["TOML", "curl", "Python"].map((kind) => button(kind, () => copy(kind))),
  );
}

async function save() {
  const { right } = sides;
  const said = {
    ...(right.name === draft.SETTINGS ? {} : { profile: right.name }),
    ...draft.changes(right.base, right.draft),
  };
  if (!Object.keys(said).length) return void notice("B is the same as the current settings");
  await attempt(() => change(() => ask(here("/settings"), { method: "PATCH", body: said }), inForce));
}

// The settings have changed: both sides may use them.
async function inForce() {
  sides = null;
  await update(address.read());
  if (parts.history.childElementCount) await past(parts.history, inForce);
}

function copy(kind) {
  const { right } = sides;
  const texts = {
    TOML: () => draft.toml(right.draft),
    curl: () => draft.curl(`${location.origin}${here("/search")}`, body(right), Boolean(key())),
    Python: () => draft.python(state.collection, body(right)),
  };
  offer(kind, `B as ${kind}`, texts[kind]());
}

function drawSides() {
  if (!parts.left.isConnected) return;
  drawer.hide();
  const { left, right } = sides;
  if (!now.q.trim()) {
    fill(parts.glance);
    fill(
      parts.left,
      empty(
        "Type a query",
        "The rankings of both profiles appear here, with a line between the ranks of each document.",
      ),
    );
    fill(parts.right);
    fill(parts.svg);
    question.tell();
    return;
  }
  const ranked = (one) => new Map((one.found?.hits ?? []).map((hit) => [hit.id, hit.rank]));
  const [before, after] = [ranked(left), ranked(right)];
  left.rows = drawSide(
    parts.left,
    left,
    "A",
    (id) => ribbon.movement(before.get(id), after.get(id)).kind === "gone" && { kind: "gone", text: "out" },
  );
  right.rows = drawSide(parts.right, right, "B", (id) => ribbon.movement(before.get(id), after.get(id)));
  const seen = ribbon.glance(before, after);
  fill(
    parts.glance,
    left.found &&
      right.found && [
        h("b", null, `${seen.both} of ${before.size}`),
        " in both",
        h("span", { class: "up" }, `▲ ${seen.up} up`),
        h("span", { class: "down" }, `▼ ${seen.down} down`),
        h("span", { class: "new" }, `● ${seen.fresh} new`),
        h("span", null, `${seen.out} out`),
        legend([...left.found.hits, ...right.found.hits]),
      ],
  );
  join();
}

function drawSide(place, one, letter, moved) {
  const rows = new Map();
  const title = h(
    "h2",
    null,
    h("b", null, letter),
    one.name === draft.SETTINGS ? "current settings" : one.name,
    letter === "B" && Object.keys(draft.changes(one.base, one.draft)).length > 0 && h("small", null, "changed"),
    one.found && h("small", { class: "n" }, ms(one.found.ms)),
  );
  if (!one.found) {
    fill(place, title, one.trouble && trouble(one.trouble));
    return rows;
  }
  const full = longest(one.found.hits);
  for (const hit of one.found.hits) {
    const move = moved(hit.id);
    const row = h(
      "li",
      { class: `is-${hit.confidence}`, data: { id: hit.id } },
      h("span", { class: "rank" }, String(hit.rank)),
      button(titled(hit.document), () => open(hit, one.found), { class: "open", dir: "auto" }),
      move && h("span", { class: `move ${move.kind}` }, move.text),
      stacked(hit, full),
      h("span", { class: "n", title: `relevance: ${hit.confidence}` }, percent(hit.relevance)),
    );
    for (const [event, on] of [
      ["mouseenter", true],
      ["focusin", true],
      ["mouseleave", false],
      ["focusout", false],
    ])
      row.addEventListener(event, () => light(hit.id, on));
    rows.set(hit.id, row);
  }
  fill(
    place,
    title,
    degraded(one.found.degraded),
    rows.size
      ? h("ol", { class: "ranked" }, [...rows.values()])
      : h("p", { class: "quiet" }, "No document is above the relevance threshold of this profile."),
    h("p", null, h("code", { class: "identity" }, one.found.profile)),
  );
  return rows;
}

const light = (id, on) => {
  for (const each of document.querySelectorAll(".ribbon [data-id], .ranked [data-id]"))
    each.classList.toggle("lit", on && each.dataset.id === id);
};

const join = () => sides?.left.rows && sides.right.rows && ribbon.draw(parts.svg, sides.left.rows, sides.right.rows);

export const keys = (event) =>
  parts?.right.isConnected && Boolean(walk(document.activeElement?.closest(".side") ?? parts.right, event));
