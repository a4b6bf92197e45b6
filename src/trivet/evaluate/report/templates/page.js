"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  document.documentElement.classList.add("js");

  // A switch shows the panes that have its value. Without script all are shown, one under the other.
  const turn = (select) => {
    for (const pane of all("[data-pane]"))
      if (pane.dataset.pane === select.dataset.switch) pane.hidden = pane.dataset.value !== select.value;
  };
  for (const select of all("[data-switch]")) {
    select.addEventListener("change", () => turn(select));
    turn(select);
  }

  // Tips: by pointer, by touch, and by arrow keys in a picture that has the focus.
  const tip = document.getElementById("tip");
  let shown = null;
  const hide = () => {
    if (shown) shown.classList.remove("at");
    shown = null;
    tip.hidden = true;
  };
  const show = (mark, x, y) => {
    const title = mark.querySelector("title");
    if (title) {
      mark.dataset.tip = title.textContent; // the browser's own tip would stand over ours
      title.remove();
    }
    if (shown !== mark) hide();
    shown = mark;
    mark.classList.add("at");
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(6, Math.min(x + 12, innerWidth - box.width - 6))}px`;
    tip.style.top = `${y + 16 + box.height > innerHeight ? Math.max(6, y - box.height - 10) : y + 16}px`;
  };
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest ? event.target.closest(".tip") : null;
    if (mark) show(mark, event.clientX, event.clientY);
    else hide();
  });
  document.addEventListener("scroll", hide, { passive: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const plot = document.activeElement;
    if (!plot || !plot.classList.contains("plot")) return;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const marks = all(".tip", plot);
    if (!step || !marks.length) return;
    event.preventDefault();
    const before = marks.indexOf(shown);
    const mark = marks[before < 0 ? (step > 0 ? 0 : marks.length - 1) : (before + step + marks.length) % marks.length];
    const box = mark.getBoundingClientRect();
    show(mark, box.x + box.width / 2, box.y + box.height / 2);
  });
  document.addEventListener("focusout", hide);

  // Tables: a column's name sorts by it, the largest first, then the other way round. What has no value stays last.
  const value = (row, column) => {
    const said = row.cells[column].dataset.v;
    if (said === undefined) return null;
    return said !== "" && isFinite(said) ? Number(said) : said;
  };
  for (const button of all("thead button"))
    button.addEventListener("click", () => {
      const heading = button.closest("th");
      const column = heading.cellIndex;
      const body = heading.closest("table").tBodies[0];
      const rows = [...body.rows];
      const words = rows.some((row) => typeof value(row, column) === "string");
      const was = heading.getAttribute("aria-sort");
      const falling = was ? was === "ascending" : !words;
      rows.sort((first, second) => {
        const [a, b] = [value(first, column), value(second, column)];
        if (a === null || b === null) return (a === null) - (b === null);
        const order = words ? String(a).localeCompare(String(b)) : a - b;
        return falling ? -order : order;
      });
      body.append(...rows);
      for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
    });

  // Print: what is folded is opened, all but the single topics' rankings, and folded again afterwards.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open], .topic)");
    for (const part of opened) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of opened) part.open = false;
  });
})();
