// Shows a subset of Markdown as elements: headings, lists, tables, quotes, code, links, emphasis. HTML stays text.

import { h } from "./dom.js";
import { marked } from "./highlight.js";

const DEEPEST = 6; // lists, quotes and emphasis inside each other: a stranger's text may nest them without end
const SCHEMES = ["http:", "https:"];

const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const UNDERLINE = /^ {0,3}(?:=+|-{2,})[ \t]*$/;
const FENCE = /^ {0,3}(`{3,}|~{3,})[^`]*$/;
const RULE = /^ {0,3}(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^[ \t]*(?:[-*+]|(\d{1,9})[.)])(?:[ \t]+|$)/;
const ROW = /^ {0,3}\|.*\|[ \t]*$/;
const DELIMITER = /^[ \t:|-]+$/;
const INDENTED = /^(?: {4}|\t)/;
const BLOCKS = [
  [FENCE, fence],
  [HEADING, heading],
  [RULE, (lines, at) => [h("hr"), at + 1]],
  [QUOTE, quote],
  [ITEM, list],
  [ROW, table],
  [INDENTED, indented],
];

// What begins inside a text. The lengths keep a hostile text from taking quadratic time.
const INLINE = new RegExp(
  [
    /\\(?<escaped>[!-/:-@[-`{-~])/,
    /(?<br>(?<! ) {2,}\n|\\\n)/,
    /``(?<code2>[^]{1,500}?)``|`(?<code>[^`]+)`/,
    /!?\[(?<label>[^[\]]{0,1000})\]\((?<target>(?:[^()\s]|\([^()\s]*\))+)(?:\s+"[^"]{0,500}")?\)/,
    /<?(?<bare>\bhttps?:\/\/[^\s<>"]*[^\s<>".,;:!?'*_~()[\]])>?/,
    /\*\*(?!\s)(?<strong>[^]{1,1000}?)(?<!\s)\*\*(?!\*)/,
    /(?<![\w*])\*(?![\s*])(?<em>[^*]{1,1000})(?<!\s)\*|(?<!\w)_(?![\s_])(?<em2>[^_]{1,1000})(?<!\s)_(?!\w)/,
  ]
    .map((each) => each.source)
    .join("|"),
  "gd",
);

// An excerpt stands in a list: nothing in it is a heading of the page or takes the focus, except links.
export function markdown(text, spans, { from = 0, to = text.length, isExcerpt = false } = {}) {
  let at = from;
  const lines = text
    .slice(from, to)
    .split("\n")
    .map((line) => {
      at += line.length + 1;
      return { at: at - line.length - 1, text: line.replace(/\r$/, "") };
    });
  const part = isExcerpt ? { heading: "p", focus: {} } : { heading: "h4", focus: { tabindex: "0" } };
  return blocks(lines, { spans, depth: 0, ...part });
}

const isBlank = (line) => !line.text.trim();
const cut = (line, count) => ({ at: line.at + count, text: line.text.slice(count) });
const trimmed = (line) => {
  const inner = cut(line, line.text.length - line.text.trimStart().length);
  return { at: inner.at, text: inner.text.trimEnd() };
};
const indent = (line) => /^[ \t]*/.exec(line.text)[0].replaceAll("\t", "    ").length;
const nested = (context) => ({ ...context, depth: context.depth + 1 });
const kindOf = (line, context) =>
  BLOCKS.find(([starts, read]) => starts.test(line.text) && (context.depth < DEEPEST || ![quote, list].includes(read)));

function blocks(lines, context) {
  const found = [];
  for (let at = 0; at < lines.length; ) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    const [made, next] = (kindOf(lines[at], context)?.[1] ?? paragraph)(lines, at, context);
    found.push(made);
    at = next;
  }
  return found;
}

// The marks of a text that is made of these lines.
function joined(lines, context) {
  const text = lines.map((line) => line.text).join("\n");
  let start = 0;
  const spans = lines.flatMap((line) => {
    const [shift, end] = [start - line.at, line.at + line.text.length];
    start += line.text.length + 1;
    return context.spans
      .filter(([from, to]) => to > line.at && from < end)
      .map(([from, to]) => [Math.max(from, line.at) + shift, Math.min(to, end) + shift]);
  });
  return [text, spans];
}

const said = (lines, context) => inline(...joined(lines, context), context.depth);

function paragraph(lines, at, context) {
  let next = at + 1;
  while (next < lines.length && !isBlank(lines[next])) {
    if (UNDERLINE.test(lines[next].text))
      return [h(context.heading, { class: "heading" }, said(lines.slice(at, next), context)), next + 1];
    const begins = kindOf(lines[next], context);
    const number = begins?.[1] === list && ITEM.exec(lines[next].text)[1];
    const isYear = number && number !== "1"; // or another number at the start of a line, which begins no list
    if (begins && begins[1] !== indented && !isYear) break;
    next += 1;
  }
  const own = lines.slice(at, next).map((line) => cut(line, line.text.length - line.text.trimStart().length));
  return [h("p", null, said(own, context)), next];
}

function heading(lines, at, context) {
  const [marks, { length }] = HEADING.exec(lines[at].text);
  const line = trimmed(cut(lines[at], marks.length));
  const closed = { ...line, text: line.text.replace(/(?<![^ \t])#+$/, "").trimEnd() };
  return [h(context.heading, { class: `heading ${length <= 2 ? "large" : ""}` }, said([closed], context)), at + 1];
}

const preformatted = (lines, context) =>
  h("pre", { dir: "ltr", ...context.focus }, h("code", null, marked(...joined(lines, context))));

function fence(lines, at, context) {
  const marks = FENCE.exec(lines[at].text)[1];
  let end = at + 1;
  while (end < lines.length && !(lines[end].text.trim().startsWith(marks) && FENCE.test(lines[end].text))) end += 1;
  return [preformatted(lines.slice(at + 1, end), context), end + 1];
}

function indented(lines, at, context) {
  let end = at;
  while (end < lines.length && (INDENTED.test(lines[end].text) || isBlank(lines[end]))) end += 1;
  while (isBlank(lines[end - 1])) end -= 1;
  return [
    preformatted(
      lines.slice(at, end).map((line) => cut(line, INDENTED.exec(line.text)?.[0].length ?? 0)),
      context,
    ),
    end,
  ];
}

function quote(lines, at, context) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end].text)) end += 1;
  const inner = lines.slice(at, end).map((line) => cut(line, QUOTE.exec(line.text)[0].length));
  return [h("blockquote", null, blocks(inner, nested(context))), end];
}

function list(lines, at, context) {
  const start = ITEM.exec(lines[at].text)[1];
  const own = indent(lines[at]);
  const items = [];
  let next = at;
  while (next < lines.length) {
    const found = ITEM.exec(lines[next].text);
    if (!found || indent(lines[next]) >= own + 2 || Boolean(found[1]) !== Boolean(start)) break;
    const inner = [cut(lines[next], found[0].length)];
    for (next += 1; next < lines.length && continues(lines, next, own, context); next += 1) {
      const blank = /^[ \t]*/.exec(lines[next].text)[0].length;
      inner.push(cut(lines[next], Math.min(blank, found[0].length)));
    }
    items.push(h("li", null, blocks(inner, nested(context))));
    while (next < lines.length - 1 && isBlank(lines[next]) && ITEM.test(lines[next + 1].text)) next += 1;
  }
  return [start ? h("ol", { start }, items) : h("ul", null, items), next];
}

// Whether a line belongs to the item above: it is indented, or goes on with its paragraph.
function continues(lines, at, own, context) {
  const goesOn = () => !isBlank(lines[at - 1]) && !kindOf(lines[at], context);
  if (!isBlank(lines[at])) return indent(lines[at]) >= own + 2 || goesOn();
  const after = lines.slice(at, at + 3).find((line) => !isBlank(line));
  return after !== undefined && indent(after) >= own + 2;
}

function table(lines, at, context) {
  let end = at;
  while (end < lines.length && ROW.test(lines[end].text)) end += 1;
  const titled = end > at + 1 && DELIMITER.test(lines[at + 1].text.trim());
  const row = (line, tag) => h("tr", null, cells(line).map((cell) => h(tag, null, said([cell], context))));
  const body = lines.slice(titled ? at + 2 : at, end).map((line) => row(line, "td"));
  return [
    h(
      "div",
      { class: "scroll", ...context.focus },
      h("table", null, titled && h("thead", null, row(lines[at], "th")), h("tbody", null, body)),
    ),
    end,
  ];
}

function cells(line) {
  const { at, text } = trimmed(line);
  const ends = [...text.matchAll(/(?<!\\)\|/g)].map((found) => found.index);
  const starts = ends.map((end) => end + 1);
  return ends.slice(1).map((end, order) => trimmed({ at: at + starts[order], text: text.slice(starts[order], end) }));
}

function inline(text, spans, depth) {
  if (depth > DEEPEST) return marked(text, spans);
  const found = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    const part = (name) => {
      const [from, to] = match.indices.groups[name];
      return [text.slice(from, to), spans.map(([start, stop]) => [start - from, stop - from])];
    };
    const made = element(match.groups, part, depth + 1);
    if (made === null) continue; // it stays as it is written
    found.push(marked(text, spans, at, match.index), made);
    at = match.index + match[0].length;
  }
  return [...found, marked(text, spans, at)];
}

function element(groups, part, depth) {
  const name = Object.keys(groups).find((each) => groups[each] !== undefined);
  if (name === "br") return h("br");
  if (name === "escaped") return marked(...part(name));
  if (name.startsWith("code")) return h("code", null, marked(...part(name)));
  if (name === "bare") return anchor(groups.bare, marked(...part("bare")));
  if (name === "label") return anchor(groups.target, groups.label ? inline(...part("label"), depth) : [groups.target]);
  return h(name === "strong" ? "strong" : "em", null, inline(...part(name), depth));
}

// A link that leads to a page; null for every other scheme, which stays text.
function anchor(target, content) {
  const url = URL.canParse(target, location.href) ? new URL(target, location.href) : null;
  if (!SCHEMES.includes(url?.protocol)) return null;
  return h("a", { href: url.href, title: url.href, target: "_blank", rel: "noopener noreferrer nofollow" }, content);
}
