// A dialog that shows a text, selects it, and copies it if the browser allows that.

import { button, h } from "./dom.js";

export function offer(title, label, text) {
  const area = h("textarea", { readonly: true, rows: "16", "aria-label": label, spellcheck: "false" }, text);
  const put = button(
    "Copy",
    async () => {
      area.select();
      const done = await navigator.clipboard?.writeText(text).then(
        () => true,
        () => false,
      );
      put.textContent = done ? "Copied" : "Press Ctrl-C";
    },
    { class: "main" },
  );
  const close = button("Close", () => dialog.close());
  const dialog = h(
    "dialog",
    { class: "copy", "aria-label": label },
    h("h2", null, title),
    area,
    h("p", null, put, close),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  area.select();
}
