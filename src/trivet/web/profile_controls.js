// The controls of a profile, built from what the service lists, so a new leg or reranker needs no code here.

import { about, colour } from "./colours.js";
import { field, fresh, h, range, select } from "./dom.js";
import { alpha } from "./profile_draft.js";
import { short } from "./format.js";
import { state } from "./state.js";

// `put` sets the value from another control.
function slider(label, value, { low, high, step, hint, tint }, onInput) {
  const id = fresh("slider");
  const output = h("output", { for: id }, short(value));
  const input = range({ id, min: low, max: high, step, value, css: tint && { "--c": tint } });
  input.addEventListener("input", () => {
    output.textContent = short(input.valueAsNumber);
    onInput(input.valueAsNumber);
  });
  const put = (next) => {
    input.value = next;
    input.paint();
    output.textContent = short(next);
  };
  return Object.assign(h("div", { class: "knob", title: hint }, h("label", { for: id }, label), output, input), {
    put,
  });
}

export function controls(draft, changed) {
  const { choices } = state;
  const set = (name) => (value) => changed((now) => ({ ...now, [name]: value }), true);
  const live = (name) => (value) => changed((now) => ({ ...now, [name]: value }), false);
  const reads = (name) => choices.fusion_settings[draft.fusion]?.includes(name);
  const weighing = select(choices.weighings, draft.weighing, set("weighing"));
  const weigh = (weights) => {
    const now = changed((old) => ({ ...old, weights: { ...old.weights, ...weights } }), false);
    for (const [leg, one] of knobs) if (!(leg in weights) || Object.keys(weights).length > 1) one.put(now.weights[leg]);
    if (Object.keys(weights).length === 1) balance?.put(alpha(now));
  };
  const legs = Object.keys(draft.weights);
  const balance =
    legs.includes("lexical") && legs.includes("dense")
      ? slider(
          "words ↔ meaning",
          alpha(draft),
          { low: 0, high: 1, step: 0.01, hint: "alpha: 0 is the lexical leg only, 1 the dense leg only" },
          (value) => weigh({ lexical: 1 - value, dense: value }),
        )
      : null;
  const knobs = new Map(
    legs.map((leg) => [
      leg,
      slider(
        leg,
        draft.weights[leg],
        {
          low: 0,
          high: Math.max(2, draft.weights[leg]),
          step: 0.05,
          hint: `The weight of ${about(leg)}; 0: not used`,
          tint: colour(leg),
        },
        (value) => weigh({ [leg]: value }),
      ),
    ]),
  );
  return h(
    "div",
    { class: "knobs" },
    h(
      "fieldset",
      null,
      h("legend", null, "Legs"),
      balance,
      [...knobs.values()],
      field("weighing", weighing, draft.weighing === "query" ? "less for a leg that cannot read the query" : undefined),
    ),
    h(
      "fieldset",
      null,
      h("legend", null, "Fusion"),
      field("method", select(choices.fusions, draft.fusion, set("fusion"))),
      reads("rrf_k") &&
        slider(
          "rrf_k",
          draft.rrf_k,
          { low: 0, high: Math.max(100, draft.rrf_k), step: 1, hint: "Smaller: top ranks count more" },
          live("rrf_k"),
        ),
      reads("normalize") &&
        field("normalize scores by", select(choices.normalizers, draft.normalize, set("normalize"))),
      slider(
        "threshold",
        draft.min_relevance,
        { low: 0, high: 1, step: 0.01, hint: "min_relevance: hits below it are left out" },
        live("min_relevance"),
      ),
      slider("hits", draft.k, { low: 1, high: Math.max(30, draft.k), step: 1, hint: "k" }, live("k")),
    ),
    rerankers(draft, choices.rerankers, changed),
  );
}

// Active rerankers come first, in order and with their options; then the others.
function rerankers(draft, known, changed) {
  const on = draft.rerankers.map((step) => step.name);
  const put = (change, redraw) => changed((now) => ({ ...now, rerankers: change(now.rerankers) }), redraw);
  const box = (name) => {
    const id = fresh("reranker");
    const change = (steps) => (made.checked ? [...steps, { name }] : steps.filter((one) => one.name !== name));
    const made = h("input", {
      type: "checkbox",
      id,
      checked: on.includes(name),
      on: { change: () => put(change, true) },
    });
    return h("span", { class: "check" }, made, h("label", { for: id }, name));
  };
  const step = (one) => {
    const option = ([key, limits]) =>
      knob(key, one[key] ?? limits.default, limits, (value) =>
        put((steps) => steps.map((each) => (each.name === one.name ? { ...each, [key]: value } : each)), false),
      );
    return h("div", { class: "reranker" }, box(one.name), Object.entries(known[one.name] ?? {}).map(option));
  };
  const off = Object.keys(known).filter((name) => !on.includes(name));
  return h(
    "fieldset",
    { class: "rerankers" },
    h("legend", null, "Rerankers, in this order"),
    draft.rerankers.map(step),
    h("div", { class: "off" }, off.map(box)),
  );
}

function knob(label, value, limits, onInput) {
  if (limits.choices?.length) return field(label, select(limits.choices, value, onInput), limits.about);
  const whole = Number.isInteger(limits.default) && !String(limits.allowed).startsWith("a number");
  if (
    typeof limits.default === "number" &&
    limits.low !== null &&
    limits.high !== null &&
    limits.high - limits.low <= 1000
  ) {
    return slider(
      label,
      value,
      { low: limits.low, high: limits.high, step: whole ? 1 : (limits.high - limits.low) / 100, hint: limits.about },
      onInput,
    );
  }
  const input = h("input", { type: typeof limits.default === "number" ? "number" : "text", value, size: "8" });
  input.addEventListener("change", () =>
    onInput(typeof limits.default === "number" ? input.valueAsNumber : input.value),
  );
  return field(label, input, limits.about);
}
