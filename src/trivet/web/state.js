// The caller, the current collection, and the options that the service lists.

import * as address from "./url.js";
import { ask, home } from "./api.js";
import { knowLegs } from "./colours.js";

export const state = { caller: null, collections: [], collection: "", choices: null, profiles: [] };

export async function load() {
  state.caller = await ask("/v1/caller");
  const [names, choices, profiles] = await Promise.all([
    ask("/v1/collections"),
    ask("/v1/choices"),
    ask("/v1/profiles"),
  ]);
  Object.assign(state, { collections: names.collections, choices, profiles: profiles.profiles });
  knowLegs(choices.legs);
  const asked = address.read().collection;
  const own = state.collections.includes(state.caller.collection) ? state.caller.collection : state.collections[0];
  state.collection = state.collections.includes(asked) ? asked : (own ?? state.caller.collection);
}

export const here = (rest = "") => home(state.collection, rest);

export const mayWrite = () => state.caller !== null && state.caller.scope !== "read";
export const mayManage = () => state.caller?.scope === "admin" && !state.caller.collections;

// Attributes of a control that writes: with a read-only key it is disabled and says why.
export const WHY_NOT = "This key can only read; changes need a key with the scope “write”.";
export const guarded = () => (mayWrite() ? {} : { disabled: true, title: WHY_NOT });

// The service refuses a key bound to a filter what concerns all documents, so the page does not request it.
export const isBound = () => state.caller?.bound === true;
export const WHY_BOUND = "This key is bound to a filter, and this concerns all documents.";
export const guardedWhole = () => (isBound() ? { disabled: true, title: WHY_BOUND } : guarded());

const SIGNS = { eq: "=", gt: ">", gte: "≥", lt: "<", lte: "≤", in: "is one of", exists: "exists" };
const joined = (parts, word) => parts.map(inWords).join(` ${word} `);

// A filter in words: `tenant = alice`.
export function inWords(where) {
  const said = ([name, spec]) => {
    if (name === "$and") return joined(spec, "and");
    if (name === "$or") return `(${joined(spec, "or")})`;
    if (name === "$not") return `not (${inWords(spec)})`;
    return Object.entries(spec)
      .map(([sign, value]) => [name, SIGNS[sign] ?? sign, sign === "exists" ? "" : [value].flat().join(", ")])
      .map((parts) => parts.filter(Boolean).join(" "))
      .join(" and ");
  };
  return Object.entries(where).map(said).join(" and ");
}

export const settings = () => ask(here("/settings"));

// Options of every search: with explanation and marks.
export const search = (body, signal) =>
  ask(here("/search"), { method: "POST", body: { marks: true, full: true, ...body }, signal });
