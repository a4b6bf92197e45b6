// Keyboard shortcuts.

import { button, find, h } from "./dom.js";

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

export function help() {
  if (find("help")) return;
  const dialog = h(
    "dialog",
    { id: "help", "aria-labelledby": "help-title" },
    h("h2", { id: "help-title" }, "Keys"),
    h(
      "dl",
      null,
      HELP.map(([keys, what]) =>
        h(
          "div",
          null,
          h(
            "dt",
            null,
            keys.split(/\s+/).map((key) => h("kbd", null, key)),
          ),
          h("dd", null, what),
        ),
      ),
    ),
    button("Close", () => dialog.close(), { autofocus: true }),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

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
