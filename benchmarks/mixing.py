"""Generate documentation snippets out of the 89 thousand real ones, for a corpus of a million.

The text of a new snippet is made of windows of real ones, up to the length of a real one; some words are drawn again by
their frequency, so that no window is found whole, and a few are new names, as a growing collection brings them. Its
vector is that of the snippet of the first window, moved by the difference between two real vectors: noise in every
direction would push the new ones out of reach of every query.

Pure and deterministic: the same texts and seed give the same snippets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

BATCH = 10_000  # texts made from one generator: what is drawn for one batch does not depend on how many follow
WINDOW = (8, 40)  # words kept together
REPLACED = 0.12  # of the words, drawn anew by frequency
COINED = 0.003  # of the words, two rare ones grown together
MOVED = 0.45  # how long the noise is beside a unit vector: cosine .91 with the snippet it began as
SHAKEN = 0.10  # how much of it is noise in every direction
DIM, LATENT = 384, 48  # numbers of a generated vector, and directions in which its clusters differ
CLUSTERS = 1_000  # of each group
SPREAD = 0.7  # of a cluster, beside the distance between two


@dataclass(frozen=True, slots=True)
class Mixed:
    """A generated snippet: its title, its text, and the number of the real one it started from."""

    title: str
    text: str
    origin: int


class Mixer:
    """Generates snippets out of ``texts`` and ``titles``."""

    def __init__(self, texts: Sequence[str], titles: Sequence[str], seed: int) -> None:
        self._words = [text.split(" ") for text in texts]  # line breaks stay where they are, inside a word
        self._titles = [title.split(" > ") for title in titles]
        self._seed = seed
        counts = Counter(word for words in self._words for word in words if word.isalpha())
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        self._vocabulary = [word for word, _ in ordered]
        chances = np.array([count for _, count in ordered], dtype=np.float64)
        self._chances = np.cumsum(chances / chances.sum())
        self._rare = [word for word, count in ordered if count <= 3 and len(word) > 3] or self._vocabulary

    def snippets(self, count: int) -> Iterator[Mixed]:
        for start in range(0, count, BATCH):
            chance = np.random.default_rng([self._seed, start])
            for _ in range(min(BATCH, count - start)):
                yield self._snippet(chance)

    def _snippet(self, chance: np.random.Generator) -> Mixed:
        origin, other = (int(at) for at in chance.integers(len(self._words), size=2))
        wanted = len(self._words[origin])
        words: list[str] = []
        source = self._words[origin]
        while len(words) < wanted:
            size = min(int(chance.integers(*WINDOW)), wanted - len(words))
            at = int(chance.integers(max(1, len(source) - size + 1)))
            words += source[at : at + size] or [""]
            source = self._words[int(chance.integers(len(self._words)))]
        drawn = chance.random(len(words))
        for at in np.flatnonzero(drawn < REPLACED + COINED):
            words[at] = self._coined(chance) if drawn[at] < COINED else self._usual(chance)
        title = " > ".join(dict.fromkeys((self._titles[origin][0], self._titles[other][-1])))
        return Mixed(title, " ".join(words), origin)

    def _usual(self, chance: np.random.Generator) -> str:
        return self._vocabulary[min(int(np.searchsorted(self._chances, chance.random())), len(self._vocabulary) - 1)]

    def _coined(self, chance: np.random.Generator) -> str:
        first, second = (self._rare[int(at)] for at in chance.integers(len(self._rare), size=2))
        return f"{first}{second.capitalize()}"


def moved(rows: Floats, origins: npt.NDArray[np.int64], seed: list[int]) -> Floats:
    """Return a unit vector for each origin: moved by a scaled difference of two others and a little noise."""
    chance = np.random.default_rng(seed)
    first, second = chance.integers(len(rows), size=(2, len(origins)))
    ways = rows[first] - rows[second]
    anything = chance.standard_normal(ways.shape, dtype=np.float32)
    noise = unit(ways) * (1 - SHAKEN) + unit(anything) * SHAKEN
    return unit(rows[origins] + MOVED * unit(noise))


def clustered(groups: npt.NDArray[np.int64], seed: list[int]) -> Floats:
    """Return a unit vector for each row of a batch, of a cluster of its group: topics, in place of a model's vectors.

    The clusters lie in a few directions, of which each counts less than the one before, as those of a model do: with
    noise in every direction alike no vector would be nearer than another.
    """
    ways = np.linalg.qr(np.random.default_rng(seed[0]).standard_normal((DIM, LATENT)))[0].T
    weights = (1 + np.arange(LATENT)) ** -0.5
    centres = np.random.default_rng([seed[0], 1]).standard_normal((int(groups.max()) + 1, CLUSTERS, LATENT))
    chance = np.random.default_rng(seed)
    placed = centres[groups, chance.integers(CLUSTERS, size=len(groups))]
    placed = (placed + SPREAD * chance.standard_normal(placed.shape)) * weights
    noise = chance.standard_normal((len(groups), DIM), dtype=np.float32)
    return unit(unit(placed @ ways) + SHAKEN * unit(noise))


def unit(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    made: Floats = (rows / lengths).astype(np.float32)
    return made
