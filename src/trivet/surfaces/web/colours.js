// Which colour has a leg, or a reranker? Known ones have their own everywhere; a new one takes the next that is free.
// All of them can be told apart with every common colour blindness; style.css has their light and dark values.

const KNOWN = { lexical: 1, dense: 2, trigram: 3, graph: 4 };
const FREE = [5, 6, 7, 8];
const given = new Map();

export function colour(name) {
  if (KNOWN[name]) return `var(--c${KNOWN[name]})`;
  if (!given.has(name)) given.set(name, FREE[given.size % FREE.length]);
  return `var(--c${given.get(name)})`;
}

// A stage of a search is a leg, in its colour, or a step that has none.
const legs = new Set(Object.keys(KNOWN));
export const knowLegs = (names) => names.forEach((name) => legs.add(name));
export const stageColour = (name) => (legs.has(name) ? colour(name) : "var(--soft)");

// What a leg goes by, in a word or two.
const WORDS = { lexical: "words", dense: "meaning", trigram: "spelling", graph: "links" };
export const about = (leg) => WORDS[leg] ?? leg;
