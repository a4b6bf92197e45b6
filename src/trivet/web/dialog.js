// A dialog that tells something and is closed again.

import { button, find, h } from "./dom.js";

export function tell(id, title, ...content) {
  if (find(id)) return;
  const dialog = h(
    "dialog",
    { id, "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title`, tabindex: "-1", autofocus: true }, title),
    content,
    button("Close", () => dialog.close()),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

// Terms and what they mean.
export const terms = (rows) =>
  h(
    "dl",
    null,
    rows.map(([term, what]) => h("div", null, h("dt", null, term), h("dd", null, what))),
  );
