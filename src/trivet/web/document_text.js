// The text of a document as Markdown, code or plain text: an excerpt of it, or the whole.

import { button, h } from "./dom.js";
import { boundary, byLine, bySentence, marked, units } from "./highlight.js";
import { markdown } from "./markdown.js";

const WHOLE = 20_000; // characters shown at once: a document may be one line of a megabyte
const CODE = ["code", "data", "markup", "snippet"]; // kinds that keep their lines
const MARKDOWN = ["markdown", "notebook"];
const WRITTEN_AS_MARKDOWN = ["md", "markdown", "mdx", "docx", "pptx", "epub", "html", "htm", "xhtml", "ipynb"]; // by the import
const FENCES = /^ {0,3}(?:```|~~~)/gm;

// Imports say by kind and extension what a text is. Without a file behind it, a heading or a fence in it says so.
export function formatOf({ kind, meta, text }) {
  if (MARKDOWN.includes(kind) || WRITTEN_AS_MARKDOWN.includes(meta.extension) || /^(?:```|~~~)/.test(text))
    return "markdown";
  if (CODE.includes(kind)) return "code";
  return !meta.extension && /^(?:#{1,6} \S|```|~~~)/m.test(text) ? "markdown" : "plain";
}

// The part of a passage with most marks.
export function excerpt(text, given, format) {
  const spans = units(text, given);
  const [from, to] = (format === "plain" ? bySentence : byLine)(text, spans);
  const isInside = format === "markdown" && (text.slice(0, from).match(FENCES)?.length ?? 0) % 2 === 1;
  const closing = isInside ? text.slice(from, to).search(FENCES) : -1;
  const end = closing < 0 ? to : from + closing;
  const before = from > 0 && "… ";
  const after = /[^\s`~]/.test(text.slice(end)) && " …"; // more than the end of a fence
  if (format === "code" || isInside)
    return h("pre", { class: "text", dir: "ltr" }, before, marked(text, spans, from, end), after);
  if (format === "plain") return h("p", { class: "text", dir: "auto" }, before, marked(text, spans, from, end), after);
  const shown = markdown(text, spans, { from, to: end, isExcerpt: true });
  const last = shown.at(-1);
  if (after && last) ([...last.querySelectorAll("p")].at(-1) ?? last).append(after);
  return h("div", { class: "text rich", dir: "auto" }, shown);
}

// The whole text; a very long one in portions, so that the browser stays fast.
export function whole(text, given, format) {
  const spans = units(text, given);
  const body = h(format === "code" ? "pre" : "div", {
    class: `prose ${format === "markdown" ? "rich" : ""}`,
    dir: format === "code" ? "ltr" : "auto",
    role: "group",
    tabindex: "0",
    "aria-label": "Text",
  });
  let shown = 0;
  const show = () => {
    const end = portion(text, shown);
    body.append(
      ...(format === "markdown" ? markdown(text, spans, { from: shown, to: end }) : marked(text, spans, shown, end)),
    );
    shown = end;
  };
  show();
  if (shown >= text.length) return body;
  const left = () => `Show more (${(text.length - shown).toLocaleString("en")} characters left)`;
  const more = button(left(), () => {
    show();
    if (shown >= text.length) more.remove();
    else more.textContent = left();
  });
  return h("div", null, body, more);
}

// Where a portion ends: at the end of a line, if one ends near.
function portion(text, from) {
  const end = boundary(text, from + WHOLE);
  const line = text.lastIndexOf("\n", end) + 1;
  return end < text.length && line > from + WHOLE / 2 ? line : end;
}

export function titled(document) {
  const start = document.text.slice(0, 300).replace(/^\s*(?:```|~~~).*\n/, "").trim();
  const text = document.title || start.split("\n")[0].replace(/^#{1,6} +/, "");
  return text ? text.slice(0, 140) : document.id;
}
