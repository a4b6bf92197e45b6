// The query box with its filters, shared by Search, Compare and Judge.

import * as address from "./url.js";
import { button, debounced, fill, find, h, s } from "./dom.js";

const WAIT = 140; // milliseconds without typing before a search is sent
let input = null;
let filters = null;

export function build() {
  const place = find("question");
  const ask = debounced(WAIT, () => address.write({ q: input.value }));
  input = h("input", {
    type: "search",
    id: "q",
    placeholder: "Search by words or by meaning",
    autocomplete: "off",
    spellcheck: "false",
    enterkeyhint: "search",
    "aria-describedby": "told",
    on: { input: ask },
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      ask.cancel();
      address.write({ q: input.value }, { push: true });
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      find("view").querySelector(".open")?.focus();
    } else if (event.key === "Escape" && input.value) {
      event.stopPropagation();
      input.value = "";
      address.write({ q: "" });
    }
  });
  filters = h("div", { class: "chips" });
  fill(
    place,
    h(
      "form",
      { role: "search", on: { submit: (event) => event.preventDefault() } },
      h("label", { for: "q", class: "unseen" }, "Question"),
      input,
      filters,
    ),
    h("p", { id: "told", class: "told", role: "status", "aria-live": "polite" }),
  );
}

export function update(now, asks) {
  find("question").hidden = !asks;
  if (document.activeElement !== input) input.value = now.q;
  fill(filters, asks && filterChips(now));
}

const chip = (text, now) =>
  h(
    "span",
    { class: "chip", dir: "auto" },
    text,
    button("×", () => address.write({ where: now.where.filter((item) => item !== text) }, { push: true }), {
      "aria-label": `Remove the filter ${text}`,
    }),
  );

function adder(now) {
  const made = h("input", {
    class: "filter",
    "aria-label": "Add a filter",
    placeholder: now.where.length ? "Add a filter" : "Filter: kind=note, year>=2020",
    size: now.where.length ? "12" : "26",
    enterkeyhint: "done",
    autocomplete: "off",
    spellcheck: "false",
  });
  made.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && made.value.trim()) {
      event.preventDefault();
      address.write({ where: [...now.where, made.value.trim()] }, { push: true });
      document.querySelector("#view .filter, #question:not([hidden]) .filter")?.focus();
    } else if (event.key === "Escape") made.blur();
  });
  const shape = s("path", { d: "M2 3h12L9.5 8.5V13l-3-1.5v-3z" });
  const funnel = s("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, shape);
  return h("label", { class: "filter-box" }, funnel, made, h("kbd", { "aria-hidden": "true" }, "Enter"));
}

export const focus = () => {
  input.focus();
  input.select();
};

export const tell = (...content) => fill(find("told"), ...content);
export const filterChips = (now) => [...now.where.map((text) => chip(text, now)), adder(now)];
