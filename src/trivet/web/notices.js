// Notices with undo, error messages and empty states.

import { Offline, Problem } from "./api.js";
import { button, fill, find, h } from "./dom.js";

const STAYS = 9000; // milliseconds, for what can be undone

export function notice(text, { undo, kind = "" } = {}) {
  const gone = () => made.remove();
  const made = h(
    "div",
    { class: `notice ${kind}` },
    h("span", null, text),
    undo &&
      button(
        "Undo",
        async () => {
          gone();
          await attempt(undo);
        },
        { class: "undo" },
      ),
    button("×", gone, { class: "close", "aria-label": "Dismiss" }),
  );
  find("notices").append(made);
  setTimeout(gone, undo ? STAYS * 2 : STAYS);
  return made;
}

// Runs an action and shows its error.
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Offline || (error instanceof Problem && error.status === 401)) return undefined; // said above the page
    if (!(error instanceof Problem)) console.error(error);
    notice(error.message, { kind: "wrong" });
    return undefined;
  }
}

export function banner(...content) {
  fill(find("banner"), ...content);
}

// An empty state with its title and what to do next.
export const empty = (title, ...rest) =>
  h(
    "div",
    { class: "empty" },
    h("h2", null, title),
    rest.map((part) => (typeof part === "string" ? h("p", null, part) : part)),
  );

export function trouble(error, again) {
  if (error instanceof Offline)
    return empty("The service does not respond", "The page continues as soon as it does.");
  const told = error instanceof Problem ? error : { message: error.message, status: "", id: "" };
  return h(
    "div",
    { class: "empty wrong", role: "alert" },
    h("h2", null, told.title || "That did not work"),
    h("p", null, told.message),
    told.id && h("p", { class: "quiet" }, "request ", h("code", null, told.id)),
    again && button("Try again", again),
  );
}
