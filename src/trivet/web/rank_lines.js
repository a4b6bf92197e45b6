// Lines between the ranks of each document in two rankings.

import { fill, s } from "./dom.js";

export function movement(before, after) {
  if (before === undefined) return { kind: "new", text: "new" };
  if (after === undefined) return { kind: "gone", text: "out" };
  const step = before - after;
  return step > 0
    ? { kind: "up", text: `▲ ${step}` }
    : step < 0
      ? { kind: "down", text: `▼ ${-step}` }
      : { kind: "same", text: "=" };
}

// `left` and `right` map ids to row elements, in order.
export function draw(svg, left, right) {
  const box = svg.getBoundingClientRect();
  svg.setAttribute("viewBox", `0 0 ${box.width || 1} ${box.height || 1}`);
  const middle = (row) => {
    const found = row.getBoundingClientRect();
    return found.top + found.height / 2 - box.top;
  };
  const ranks = (rows) => new Map([...rows.keys()].map((id, at) => [id, at + 1]));
  const [before, after] = [ranks(left), ranks(right)];
  const lines = [];
  for (const [id, row] of left) {
    const { kind } = movement(before.get(id), after.get(id));
    const from = middle(row);
    if (!right.has(id)) {
      lines.push(s("line", { class: "gone", x1: 0, y1: from, x2: 14, y2: from, "data-id": id }));
      continue;
    }
    const to = middle(right.get(id));
    const bend = box.width / 2;
    lines.push(
      s("path", { class: kind, d: `M0 ${from} C${bend} ${from} ${bend} ${to} ${box.width} ${to}`, "data-id": id }),
    );
  }
  for (const [id, row] of right) {
    if (left.has(id)) continue;
    const at = middle(row);
    lines.push(s("circle", { class: "new", cx: box.width - 4, cy: at, r: 3.5, "data-id": id }));
  }
  fill(svg, lines);
}

export function glance(before, after) {
  const both = [...before.keys()].filter((id) => after.has(id));
  const moves = both.map((id) => [id, before.get(id) - after.get(id)]);
  const up = moves.filter(([, step]) => step > 0).length;
  const down = moves.filter(([, step]) => step < 0).length;
  const farthest = moves.reduce((best, move) => (Math.abs(move[1]) > Math.abs(best[1]) ? move : best), [null, 0]);
  return { both: both.length, up, down, fresh: after.size - both.length, out: before.size - both.length, farthest };
}
