// The frame of the page: navigation, login, theme and the current view.

import * as address from "./url.js";
import { ask, hear, key, setKey } from "./api.js";
import * as browse from "./browse.js";
import * as compare from "./compare.js";
import { button, fill, find, h, select } from "./dom.js";
import * as drawer from "./drawer.js";
import { acceptFiles } from "./file_drop.js";
import * as health from "./health.js";
import * as judge from "./judge.js";
import { help, listen } from "./keyboard.js";
import { banner, trouble } from "./notices.js";
import * as question from "./query_box.js";
import * as searching from "./search.js";
import { inWords, isBound, load, mayWrite, state } from "./state.js";

const VIEWS = { search: searching, compare, browse, judge, health };
const NAMES = { search: "Search", compare: "Compare", browse: "Browse", judge: "Judge", health: "Health" };
const RETRY = 2000; // milliseconds between two looks whether the service is back
let shown = null;
let away = false;

function show(now) {
  const name = VIEWS[now.view] ? now.view : "search";
  const view = VIEWS[name];
  if (now.collection && now.collection !== state.collection && state.collections.includes(now.collection)) {
    state.collection = now.collection;
    shown = null;
  }
  question.update(now, view.asks);
  if (shown !== name) {
    VIEWS[shown]?.leave?.();
    drawer.hide();
    question.tell();
    shown = name;
    document.body.dataset.view = name;
    document.title = `${NAMES[name]} · ${state.collection} · trivet`;
    fill(find("view"));
    view.enter(find("view"));
    drawTop(name);
  }
  view.update(now);
}

function drawTop(name) {
  const go = (event, view) => {
    event.preventDefault();
    address.write({ view, id: null }, { push: true });
  };
  const link = (view) =>
    h(
      "a",
      { href: `/?view=${view}`, "aria-current": view === name && "page", on: { click: (event) => go(event, view) } },
      NAMES[view],
    );
  fill(find("views"), Object.keys(VIEWS).map(link));
  const names = state.collections.includes(state.collection)
    ? state.collections
    : [state.collection, ...state.collections];
  fill(
    find("tools"),
    select(
      names,
      state.collection,
      (collection) => address.write({ collection, where: [], id: null }, { push: true }),
      "Collection",
    ),
    isBound() &&
      h("span", { class: "readonly bound", title: "The filter that this key is bound to" }, `Only: ${inWords(state.caller.where)}`),
    !mayWrite() && h("span", { class: "readonly", title: `The key “${state.caller.key}” can only read` }, "read only"),
    key() &&
      button(
        "Sign out",
        () => {
          setKey(null);
          location.reload();
        },
        { class: "plain", title: `Sign out: forget the key ${state.caller.key ?? ""}` },
      ),
    button("◐", theme, { class: "plain", "aria-label": "Light or dark theme", title: "Light or dark theme (t)" }),
    button("?", help, { class: "plain", "aria-label": "Help: keyboard shortcuts", title: "Keyboard shortcuts (?)" }),
  );
}

function theme() {
  const dark =
    getComputedStyle(document.documentElement).colorScheme === "dark" ||
    (document.documentElement.dataset.theme ??
      (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("trivet-theme", dark ? "light" : "dark");
}

function login(told) {
  drawer.hide();
  shown = null;
  find("question").hidden = true;
  fill(find("views"));
  fill(find("tools"), button("◐", theme, { class: "plain", "aria-label": "Light or dark theme" }));
  const input = h("input", {
    type: "password",
    id: "key",
    autocomplete: "off",
    placeholder: "tvt_…",
    required: true,
    "aria-describedby": "key-hint",
  });
  const wrong = h("p", { class: "wrong", role: "alert" }, key() ? (told?.detail ?? "the key is unknown") : "");
  const enter = async (event) => {
    event.preventDefault();
    setKey(input.value.trim());
    await start();
  };
  fill(
    find("view"),
    h(
      "form",
      { class: "login", on: { submit: enter } },
      h("h1", null, "An API key is required"),
      h("label", { for: "key" }, "API key"),
      input,
      wrong,
      h("button", { type: "submit", class: "main" }, "Open"),
      h(
        "p",
        { id: "key-hint", class: "quiet" },
        "Create one with ",
        h("code", null, "trivet keys create NAME --scope read"),
        ". The page keeps it until you close this tab.",
      ),
    ),
  );
  setKey(null);
  input.focus();
}

async function start() {
  try {
    await load();
  } catch (error) {
    if (error.status !== 401) fill(find("view"), trouble(error, start));
    return;
  }
  shown = null;
  const now = address.read();
  show(now);
  if (!now.q && VIEWS[shown].asks && matchMedia("(pointer: fine)").matches) question.focus(); // no keyboard over a phone's page
}

hear({
  refused: login,
  offline() {
    if (away) return;
    away = true;
    banner(
      h(
        "p",
        { class: "offline" },
        h("b", null, "The service does not respond."),
        " The data shown may be old; the page keeps trying to reconnect.",
      ),
    );
    const look = async () => {
      const back = await ask("/healthz").then(
        () => true,
        () => false,
      );
      if (!back) setTimeout(look, RETRY);
    };
    setTimeout(look, RETRY);
  },
  online() {
    if (!away) return;
    away = false;
    banner();
    if (shown === null) start();
    else show(address.read());
  },
});

listen((event) => {
  if (event.key === "Escape") return drawer.hide();
  if (!state.caller || shown === null) return false;
  if (VIEWS[shown].keys?.(event) === true) return true;
  const at = "12345".indexOf(event.key);
  if (at >= 0) address.write({ view: Object.keys(VIEWS)[at], id: null }, { push: true });
  else if (event.key === "/") (VIEWS[shown].asks ? question : VIEWS[shown]).focus?.();
  else if (event.key === "?") help();
  else if (event.key === "t") theme();
  else return false;
  return true;
});

const kept = localStorage.getItem("trivet-theme");
if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
question.build();
acceptFiles(() => state.caller !== null && shown !== null);
document.addEventListener("imported", () => drawer.isOpen() || VIEWS[shown]?.renew?.()); // an open one may have edits
address.follow((now) => {
  if (state.caller && shown !== null) show(now);
});
start();
