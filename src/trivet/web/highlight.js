// Marks matching words in a text and chooses the part to show.

import { h } from "./dom.js";

const ROOM = 420; // characters of an excerpt
const LINES = 6; // of an excerpt that keeps its lines
const LEAST = 280; // characters, at which no line is added to it
const LONGEST = 400; // characters of it

// Replaces Markdown syntax by blanks of the same length, so that offsets stay the same.
export const unlaid = (text) => text.replace(/^(?:#{1,6} +|(?:```|~~~)\w*$)/gm, (found) => " ".repeat(found.length));

// The service counts characters; JavaScript counts two for an emoji.
export function units(text, spans = []) {
  if (!/[\ud800-\udfff]/.test(text)) return spans;
  const at = [0];
  for (const one of text) at.push(at.at(-1) + one.length);
  return spans.map((span) => span.map((offset) => at[offset] ?? text.length));
}

// A part of the text, with its marks.
export function marked(text, spans, from = 0, to = text.length) {
  const found = [];
  let at = from;
  for (const [begin, end] of spans) {
    const [start, stop] = [Math.max(begin, at), Math.min(end, to)];
    if (start >= stop) continue;
    if (start > at) found.push(text.slice(at, start));
    found.push(h("mark", null, text.slice(start, stop)));
    at = stop;
  }
  if (at < to) found.push(text.slice(at, to));
  return found;
}

// Where the part with most marks starts.
function densest(text, spans) {
  if (text.length <= ROOM) return 0;
  let best = 0;
  let most = 0;
  for (const [start] of spans) {
    const within = spans.filter(([from, to]) => from >= start && to <= start + ROOM * 0.8).length;
    if (within > most) [best, most] = [start, within];
  }
  return best < ROOM * 0.6 ? 0 : best;
}

// The first and the last offset of an excerpt that starts at a sentence or a word.
export function bySentence(text, spans) {
  let from = densest(text, spans);
  if (from) {
    const before = text.slice(Math.max(0, from - 80), from);
    const sentence = Math.max(before.lastIndexOf(". "), before.lastIndexOf("\n"));
    const blank = before.indexOf(" ");
    from += sentence >= 0 ? sentence + 1 - before.length : blank >= 0 ? blank + 1 - before.length : 0;
  }
  return [from, boundary(text, from + ROOM)];
}

// The first and the last offset of an excerpt of whole lines.
export function byLine(text, spans) {
  const best = densest(text, spans);
  const line = best ? text.lastIndexOf("\n", best - 1) + 1 : 0;
  if (best - line > LEAST / 2) return bySentence(text, spans); // a line longer than an excerpt
  let to = line;
  for (let count = 0; count < LINES && to - line < LEAST && to < text.length; count += 1) {
    const end = text.indexOf("\n", to);
    to = end < 0 ? text.length : end + 1;
  }
  if (to <= line + LONGEST) return [line, to];
  const blank = text.lastIndexOf(" ", line + LONGEST);
  return [line, blank > line ? blank : boundary(text, line + LONGEST)];
}

// An offset that does not divide a character.
export const boundary = (text, at) => Math.min(text.length, /[\udc00-\udfff]/.test(text[at] ?? "") ? at + 1 : at);
