// Marks matching words in a text and chooses the part to show. Offsets count characters, as the service does.

import { button, h } from "./dom.js";

const ROOM = 420; // characters of a snippet
const WHOLE = 20_000; // characters shown at once: a document may be one line of a megabyte

// Replaces Markdown syntax by blanks of the same length, so that offsets stay the same.
export const unlaid = (text) => text.replace(/^(?:#{1,6} +|(?:```|~~~)\w*$)/gm, (found) => " ".repeat(found.length));

const characters = (text) => (/[\ud800-\udfff]/.test(text) ? Array.from(text) : text);
const slice = (all, from, to) => (typeof all === "string" ? all.slice(from, to) : all.slice(from, to).join(""));

export function marked(text, spans = []) {
  return pieces(characters(text), spans, 0, Infinity);
}

function pieces(all, spans, from, to) {
  const end = Math.min(to, all.length);
  const found = [];
  let at = from;
  for (const [start, stop] of spans) {
    if (start < at || stop > end) continue;
    if (start > at) found.push(slice(all, at, start));
    found.push(h("mark", null, slice(all, start, stop)));
    at = stop;
  }
  if (at < end) found.push(slice(all, at, end));
  return found;
}

// The part of the text with most marks, starting at a sentence or a word.
export function snippet(text, spans = []) {
  const all = characters(unlaid(text));
  if (all.length <= ROOM) return pieces(all, spans, 0, all.length);
  let best = 0;
  let most = 0;
  for (const [start] of spans) {
    const within = spans.filter(([from, to]) => from >= start && to <= start + ROOM * 0.8).length;
    if (within > most) [best, most] = [start, within];
  }
  if (best < ROOM * 0.6) best = 0;
  else {
    const before = slice(all, Math.max(0, best - 80), best);
    const sentence = Math.max(before.lastIndexOf(". "), before.lastIndexOf("\n"));
    const blank = before.indexOf(" ");
    best += sentence >= 0 ? sentence + 1 - before.length : blank >= 0 ? blank + 1 - before.length : 0;
  }
  const shown = pieces(all, spans, best, best + ROOM);
  return [best > 0 && "… ", ...shown, best + ROOM < all.length && " …"];
}

// The whole text; a very long one in portions, so that the browser stays fast.
export function whole(text, spans) {
  const all = characters(text);
  const body = h("div", { class: "prose", dir: "auto" }, pieces(all, spans ?? [], 0, WHOLE));
  if (all.length <= WHOLE) return body;
  let shown = WHOLE;
  const left = () => `Show more (${(all.length - shown).toLocaleString("en")} characters left)`;
  const more = button(left(), () => {
    body.append(slice(all, shown, shown + WHOLE));
    shown += WHOLE;
    if (shown >= all.length) more.remove();
    else more.textContent = left();
  });
  return h("div", null, body, more);
}

export function titled(document) {
  const text = document.title || document.text.slice(0, 300).trim().split("\n")[0];
  return text ? text.slice(0, 140) : document.id;
}
