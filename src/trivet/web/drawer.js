// The panel with details: beside the list if there is room, over it if not.

import { button, fill, find, h } from "./dom.js";

let back = null;
let closed = () => {};

export function show(title, content, { onClose, subtitle } = {}) {
  const drawer = find("drawer");
  if (drawer.hidden) back = document.activeElement;
  closed = onClose ?? (() => {});
  const heading = h("h2", { tabindex: "-1", dir: "auto" }, title);
  fill(
    drawer,
    h(
      "header",
      null,
      h("div", null, heading, subtitle && h("p", { class: "quiet" }, subtitle)),
      button("×", hide, { class: "close", "aria-label": "Close the details", title: "Close (Esc)" }),
    ),
    h("div", { class: "inside" }, content),
  );
  drawer.hidden = false;
  drawer.scrollTop = 0;
  document.body.classList.add("drawn");
  heading.focus({ preventScroll: true });
}

export function hide() {
  const drawer = find("drawer");
  if (drawer.hidden) return false;
  drawer.hidden = true;
  fill(drawer);
  document.body.classList.remove("drawn");
  closed();
  if (back?.isConnected) back.focus({ preventScroll: true });
  return true;
}

export const isOpen = () => !find("drawer").hidden;
