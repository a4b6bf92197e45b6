// Plots: bars on one scale, and search times stacked by stage.

import { stageColour } from "./colours.js";
import { h, s } from "./dom.js";
import { clock, ms } from "./format.js";

export function bars(rows, { most } = {}) {
  const full = most ?? Math.max(...rows.map((row) => row.value), 1e-9);
  return h(
    "ul",
    { class: "bars" },
    rows.map((row) =>
      h(
        "li",
        null,
        h("span", { dir: "auto", title: row.label }, row.label),
        h("i", { css: { "--part": String(Math.max(0, row.value / full)) } }),
        h("b", null, row.text),
      ),
    ),
  );
}

const [WIDTH, HEIGHT, FOOT] = [960, 180, 18];

const nice = (value) => {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
};

// One column per search, the latest at the right, coloured by stage; degraded searches have a mark.
export function stageColumns(searches, stages) {
  const shown = searches.slice(-120);
  const sorted = shown.map((one) => one.ms).sort((one, other) => one - other);
  const top = nice(
    Math.max(sorted[Math.min(Math.floor(sorted.length * 0.95), Math.max(0, sorted.length - 2))] ?? 1, 1),
  ); // one slow search does not flatten the rest
  const step = WIDTH / Math.max(shown.length, 40);
  const y = (value) => (HEIGHT - FOOT) * (1 - Math.min(1, value / top));
  const column = (one, at) => {
    let reached = 0;
    const x = WIDTH - (shown.length - at) * step;
    // The legs run in parallel: their parts are drawn in proportion, and the height is the total time.
    const sum = stages.reduce((total, name) => total + (one.stages[name] ?? 0), 0) || 1;
    const parts = stages.map((name) => {
      const size = ((one.stages[name] ?? 0) / sum) * Math.min(one.ms, top);
      const made = s("rect", {
        x: x + 1,
        width: Math.max(1, step - 2),
        y: y(reached + size),
        height: Math.max(0, y(reached) - y(reached + size)),
      });
      made.style.setProperty("fill", stageColour(name));
      reached += size;
      return made;
    });
    const told = `${clock(one.at)}: ${ms(one.ms)} (${stages
      .filter((name) => one.stages[name])
      .map((name) => `${name} ${ms(one.stages[name])}`)
      .join(", ")})${one.degraded.length ? `; degraded: ${one.degraded.map((item) => item.part).join(", ")}` : ""}`;
    return s(
      "g",
      { class: "column" },
      s("title", null, told),
      parts,
      one.ms > top && s("path", { class: "over", d: `M${x + step / 2 - 4} 8l4 -6 4 6z` }),
      one.degraded.length > 0 && s("circle", { class: "fault", cx: x + step / 2, cy: HEIGHT - FOOT + 8, r: 3 }),
    );
  };
  const lines = [0.5, 1].map((part) => [
    s("line", { class: "grid", x1: 0, x2: WIDTH, y1: y(top * part) + 0.5, y2: y(top * part) + 0.5 }),
    s("text", { class: "tick", x: 2, y: y(top * part) + 12 }, ms(top * part)),
  ]);
  return h(
    "figure",
    { class: "plot" },
    s(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        role: "img",
        "aria-label": `Time of the last ${shown.length} searches by stage; the scale ends at ${ms(top)}`,
      },
      lines.map(([line]) => line),
      shown.map(column),
      lines.map(([, label]) => label),
      s("line", { class: "base", x1: 0, x2: WIDTH, y1: HEIGHT - FOOT, y2: HEIGHT - FOOT }),
    ),
  );
}

export function quantile(values, part) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
}
