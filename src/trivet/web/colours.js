// The colours of legs and rerankers. A new one gets the next free colour.
// They can be told apart with every common colour blindness; style.css has the light and dark values.

const KNOWN = { lexical: 1, dense: 2, trigram: 3, graph: 4 };
const FREE = [5, 6, 7, 8];
const given = new Map();

export function colour(name) {
  if (KNOWN[name]) return `var(--c${KNOWN[name]})`;
  if (!given.has(name)) given.set(name, FREE[given.size % FREE.length]);
  return `var(--c${given.get(name)})`;
}

// A stage is a leg with its colour, or a step without one.
const legs = new Set(Object.keys(KNOWN));
export const knowLegs = (names) => names.forEach((name) => legs.add(name));
export const stageColour = (name) => (legs.has(name) ? colour(name) : "var(--soft)");

// A short name of a leg.
const WORDS = { lexical: "words", dense: "meaning", trigram: "spelling", graph: "links" };
export const about = (leg) => WORDS[leg] ?? leg;
