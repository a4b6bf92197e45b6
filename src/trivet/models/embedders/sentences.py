"""The mean cosine of unrelated texts under a model, measured on sentences of our own.

It is near 0 for one model and near 0.7 for another, so a raw cosine means nothing without it. The sentences were
written for trivet in the styles a memory holds (prose, chat, code, tables, numbers). Each has another subject, so any
two of them are unrelated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trivet.types import Embedder


def unrelated_cosine(embedder: Embedder) -> float:
    """Return the mean cosine of a query and a passage on different subjects."""
    texts = list(SENTENCES)
    cosines = embedder.embed_queries(texts) @ embedder.embed_passages(texts).T
    pairs = len(texts) * (len(texts) - 1)
    return float((cosines.sum() - cosines.trace()) / pairs)


SENTENCES: tuple[str, ...] = (
    "The bakery on Mill Street closes at two on Sundays, so fetch the rye bread before lunch.",
    "How do I rotate the signing key without logging every user out?",
    "def moving_average(xs, n):\n    return [sum(xs[i:i + n]) / n for i in range(len(xs) - n + 1)]",
    "Mitochondrial membrane potential fell by 40% in cells treated with the inhibitor (p < 0.01, n = 12).",
    "Anna: we're driving to the coast on Friday, do you want a lift? I have room for two and the dog.",
    "ERROR 2024-03-07T11:42:09Z worker-3 connection reset by peer (os error 104), retrying in 8 s",
    "The Treaty of Westphalia ended thirty years of war and left a map of some three hundred sovereign states.",
    "SELECT customer_id, SUM(total) FROM orders WHERE placed_at >= '2023-01-01' GROUP BY customer_id;",
    "Preheat the oven to 220 °C, salt the aubergines and let them stand for half an hour.",
    "My daughter's violin exam is on the ninth; she plays the Bach minuet and a piece of her own choice.",
    "Interest on the loan is compounded monthly at a nominal annual rate of 4.85 percent.",
    "git rebase --onto main feature~3 feature",
    "A glacier moves by sliding over its bed and by deforming under its own weight.",
    "The defendant waived the right to a jury trial, and the motion to suppress was denied.",
    "| port | service | owner |\n|---|---|---|\n| 8080 | gateway | platform |\n| 5432 | ledger | payments |",
    "I prefer window seats, vegetarian meals and hotels within walking distance of the station.",
    "Tomatoes want full sun, deep watering twice a week, and their lower leaves taken off as they grow.",
    "What was the name of the physiotherapist who helped with your knee last winter?",
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  LOG_LEVEL: "debug"',
    "The striker scored twice in stoppage time and the visitors went home with all three points.",
    "Photosynthesis stores light energy in the chemical bonds of glucose.",
    "Use `useEffect` with an empty dependency array to run the callback once, after the first render.",
    "Grandfather kept bees behind the barn and sold the honey at the crossroads every September.",
    "Quarterly revenue rose 12% to $3.4 billion while operating margin narrowed to 18.1%.",
    "To be, or not to be: few lines of the stage are quoted more often or understood less.",
    "The patient is a 57-year-old man with hypertension, admitted with chest pain radiating to the left arm.",
    "https://example.org/docs/v2/reference#timeouts",
    "Gravitational waves from two merging black holes stretch the arms of the detector by less than a proton.",
    "ok sounds good, see you at 7!",
    "Renaissance painters ground lapis lazuli from Afghanistan to make ultramarine, dearer than gold.",
    "Les trains pour Lyon partent toutes les heures de la voie douze.",
    "Tighten the four bolts crosswise to 90 N·m, then check the brake fluid level.",
    "pub fn parse(input: &str) -> Result<Config, ParseError> { toml::from_str(input).map_err(Into::into) }",
    "She adopted a one-eyed cat called Admiral from the shelter in October.",
    "The committee postponed the vote on the new bicycle lanes until the budget is published.",
    "Elliptic curves over finite fields give shorter keys than RSA at the same level of security.",
    "Rain is expected from the west, clearing by evening, with gusts up to 70 km/h on the ridges.",
    "Whales sing for hours, and the song of a whole population changes from one season to the next.",
    "Remember: the alarm code for the office is changed on the first Monday of the month.",
    "Cotton spinning moved from cottages into mills within a single generation.",
)
