// Keyboard shortcuts.

import { tell, terms } from "./dialog.js";
import { h } from "./dom.js";

const HELP = [
  ["/", "go to the query (in Browse: the filter)"],
  ["↓ ↑", "move through the hits; from the query, into the list"],
  ["Enter", "open the selected item"],
  ["Esc", "close the panel; in the query, clear it"],
  ["1 … 5", "Search, Compare, Browse, Judge, Health"],
  ["g  b  u", "in Judge: good, bad, undo; then move to the next hit"],
  ["t", "light or dark"],
  ["?", "this help"],
];

export const help = () =>
  tell("help", "Keys", terms(HELP.map(([keys, what]) => [keys.split(/\s+/).map((key) => h("kbd", null, key)), what])));

export const isTyping = (target) =>
  target.matches?.("input:not([type=range], [type=checkbox]), textarea, select, [contenteditable]");

// `keys` maps a key to its action; ignored while typing or with a modifier.
export function listen(keys) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (isTyping(event.target) && event.key !== "Escape") return;
    if (event.target.matches?.("[type=range]") && event.key.startsWith("Arrow")) return; // they move its thumb
    if (keys(event) === true) event.preventDefault();
  });
}
