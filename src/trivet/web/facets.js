// Facets and timeline of a collection. A click on a count adds a filter.

import * as address from "./url.js";
import { button, h } from "./dom.js";
import { counted, whole } from "./format.js";

const SHOWN = 8; // values of a field; the rest on demand
const PLAIN = /^[\w.-]+$/;

export const filterFor = (field, value) =>
  PLAIN.test(field) && PLAIN.test(String(value)) ? `${field}=${value}` : JSON.stringify({ [field]: value });

export function toggle(text) {
  const { where } = address.read();
  address.write(
    { where: where.includes(text) ? where.filter((item) => item !== text) : [...where, text] },
    { push: true },
  );
}

// A field with only unique values is not a facet, unless a filter uses it.
export const telling = (facet, where) =>
  facet.values.length > 0 &&
  (facet.values[0].documents > 1 || where.some((text) => text.startsWith(`${facet.field}=`)));

export function facetList(facets, where) {
  const [kinds, ...rest] = facets;
  rest.sort((one, other) => other.documents - one.documents || one.distinct - other.distinct); // what most documents have, first
  return [kinds, ...rest]
    .filter((facet) => telling(facet, where))
    .map((facet, at) => {
      const most = facet.values[0].documents;
      const row = ({ value, documents }) => {
        const text = filterFor(facet.field, value);
        return h(
          "li",
          null,
          button(
            [
              h("span", { dir: "auto" }, String(value)),
              h("i", { css: { width: `${(documents / most) * 100}%` } }),
              h("b", null, whole(documents)),
            ],
            () => toggle(text),
            { class: "facet", "aria-pressed": String(where.includes(text)) },
          ),
        );
      };
      return h(
        "details",
        { class: "facets", open: at < 4 || where.some((text) => text.startsWith(`${facet.field}=`)) },
        h(
          "summary",
          null,
          facet.field,
          h(
            "small",
            null,
            facet.distinct > facet.values.length
              ? `${facet.values.length} of ${whole(facet.distinct)}`
              : String(facet.distinct),
          ),
        ),
        h("ul", null, facet.values.slice(0, SHOWN).map(row)),
        facet.values.length > SHOWN &&
          h(
            "details",
            { class: "rest" },
            h("summary", null, `${facet.values.length - SHOWN} more`),
            h("ul", null, facet.values.slice(SHOWN).map(row)),
          ),
      );
    });
}

// The start of a period and of the next one, for filters.
export function bounds(period, step) {
  const [year, month = 1, day = 1] = period.split("-").map(Number);
  const next = { year: [year + 1, 1, 1], month: [year, month + 1, 1], day: [year, month, day + 1] }[step];
  const iso = (y, m, d) => new Date(Date.UTC(y, m - 1, d)).toISOString().slice(0, 10);
  return [iso(year, month, day), iso(...next)];
}

// All periods from the first to the last, also empty ones, so that gaps are visible.
export function filled({ periods, step }) {
  if (!periods.length) return [];
  const counts = new Map(periods.map((one) => [one.period, one.documents]));
  const found = [];
  const width = { year: 4, month: 7, day: 10 }[step];
  for (let at = periods[0].period; found.length < 400; at = bounds(at, step)[1].slice(0, width)) {
    found.push([at, counts.get(at) ?? 0]);
    if (at >= periods.at(-1).period) break;
  }
  return found;
}

export function timeline(told, select) {
  const all = filled(told);
  const most = Math.max(...all.map(([, count]) => count), 1);
  let from = null;
  const pick = (one, other) => {
    const [first, last] = [Math.min(one, other), Math.max(one, other)];
    select(bounds(all[first][0], told.step)[0], bounds(all[last][0], told.step)[1]);
  };
  const bar = ([period, count], at) => {
    const made = h(
      "button",
      {
        type: "button",
        class: "period",
        title: `${period}: ${counted(count, "document")}`,
        "aria-label": `${period}: ${counted(count, "document")}`,
      },
      h("i", { css: { height: `${Math.max(count ? 4 : 0, (count / most) * 100)}%` } }),
    );
    made.addEventListener("pointerdown", () => (from = at));
    made.addEventListener("pointerup", () => from !== null && from !== at && pick(from, at));
    made.addEventListener("click", () => pick(at, at));
    return made;
  };
  if (all.length < 2) return null;
  return h(
    "div",
    {
      class: "timeline",
      role: "group",
      "aria-label": `Documents by ${told.step} they were ${told.field}; click one or drag across several`,
    },
    h("div", { class: "periods" }, all.map(bar)),
    h("div", { class: "ends" }, h("span", null, all[0][0]), h("span", null, all.at(-1)[0])),
  );
}
