// The history of the settings, and reverting to an earlier state.

import { ask } from "./api.js";
import { button, fill, h } from "./dom.js";
import { ago } from "./format.js";
import { attempt, notice } from "./notices.js";
import { guarded, here, isBound, WHY_BOUND } from "./state.js";

const SHOWN = 20;

const revert = (to) => ask(here("/settings/revert"), { method: "POST", body: { to } });

// Changes the settings with `make` and offers to undo it; calls `changed` after both.
export async function change(make, changed = () => {}) {
  const { changes } = await ask(here("/settings/history?limit=1"));
  const before = changes[0]?.number ?? 0; // 0: as they were before the first change
  const made = await make();
  const undo = async () => {
    const old = await revert(before);
    notice(`The settings are ${old.identity} again`);
    await changed();
  };
  notice(`The settings are now ${made.identity}, for all users`, { undo });
  await changed();
}

export async function past(place, changed) {
  if (isBound()) {
    fill(place, h("p", { class: "quiet" }, WHY_BOUND));
    return;
  }
  const { changes } = (await attempt(() => ask(here(`/settings/history?limit=${SHOWN}`)))) ?? { changes: [] };
  const back = (one) =>
    attempt(async () => {
      await revert(one.number);
      notice(`The settings are ${one.settings.identity} again`);
      await changed();
    });
  const row = (one, at) =>
    h(
      "li",
      null,
      h("span", { class: "n" }, `#${one.number}`),
      h("code", null, one.settings.identity),
      h("span", { class: "quiet" }, `${ago(one.at)} by ${one.by || "–"}`),
      at > 0 ? button("Revert to this", () => back(one), guarded()) : h("span", { class: "quiet" }, "current"),
    );
  const none = h("p", { class: "quiet" }, "The settings have never been changed.");
  fill(place, changes.length ? h("ol", { class: "past" }, changes.map(row)) : none);
}
