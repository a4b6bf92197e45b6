// Explains the numbers and the colours of a hit.

import { about, colour } from "./colours.js";
import { tell, terms } from "./dialog.js";
import { button, h } from "./dom.js";
import { state } from "./state.js";

const swatch = (name, kind, text) =>
  h("li", { class: "swatch" }, h("i", { class: kind, css: { "--c": colour(name) } }), text);

function explain() {
  const said = (leg) => (about(leg) === leg ? leg : `${leg}: finds by ${about(leg)}`);
  const legs = state.choices.legs.map((leg) => swatch(leg, "", said(leg)));
  tell(
    "numbers",
    "What the numbers mean",
    terms([
      [
        "bar",
        [
          "The score; the best hit of the list has the longest bar. Each colour is the share of one leg:",
          h(
            "ul",
            { class: "key" },
            legs,
            swatch("", "lift", "hatched: added by a reranker"),
            swatch("", "lost", "faded: taken away by a reranker"),
          ),
        ],
      ],
      ["● 3", "The rank of the document in a leg. No dot: the leg did not find it."],
      [
        "relevance",
        "How likely the hit answers the query: strong from 50 %, likely from 20 %, weak below. It can be compared between queries.",
      ],
      ["score", "Sets the order of the list. It cannot be compared with the score of another query."],
      ["share", "What a leg adds to the score: its normalised score times its weight."],
      ["raw", "The score that the leg gave, in its own unit."],
      ["only dense", "One leg alone found this document."],
      ["replaces", "This document supersedes another one that was found, and is shown in its place."],
    ]),
  );
}

export const numbersButton = () => button("What the numbers mean", explain, { class: "link" });
