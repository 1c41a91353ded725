"""Synthetic graphs with the skew of real ones: a few hubs, a few large relations, many small ones.

Entities belong to classes of Zipf-like size. A relation leads from one class to another, its size follows
Zipf's law, and so do the degrees within a class: objects more strongly than subjects, as in FB15k-237,
where a country is the object of thousands of triples and hardly anything is the subject of as many. An
entity that is a hub as an object is one as a subject, too.

    python perf/power_law.py 1000000 graph.tsv
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from loginfer.kg import KnowledgeGraph, Vocabulary

__all__ = ["Plan", "numbered", "planned", "power_law_graph"]

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

# Exponents of the laws; those of degrees stay below 1, so that a hub keeps to a few per cent of the triples.
SUBJECT_EXPONENT = 0.6
OBJECT_EXPONENT = 0.8
RELATION_EXPONENT = 1.0
CLASS_EXPONENT = 1.0


def power_law_graph(
    triples: int, *, relations: int = 500, entities: int | None = None, classes: int | None = None, seed: int = 0
) -> KnowledgeGraph:
    """Generate a graph; the same arguments give the same graph.

    Parameters
    ----------
    triples
        How many distinct triples.
    relations
        How many relations.
    entities
        How many entities; a tenth of the triples by default.
    classes
        How many classes the entities belong to; 20 by default, fewer in a small graph.
    seed
        Seed of the random numbers.
    """
    plan = planned(triples, relations=relations, entities=entities, classes=classes, seed=seed)
    entities = len(plan.ids)
    wanted = plan.wanted
    # What is drawn twice is drawn anew, until every relation has its size.
    drawn: list[Longs] = []
    missing = wanted
    while missing.any():
        r = np.repeat(np.arange(relations), missing)
        s, o = plan.draw(r)
        new = np.unique((s * relations + r) * entities + o)
        for keys in drawn:
            new = new[keys[np.minimum(np.searchsorted(keys, new), len(keys) - 1)] != new]
        if len(new):
            drawn.append(new)
        missing = missing - np.bincount(new // entities % relations, minlength=relations)
    found = np.sort(np.concatenate(drawn))
    rows = np.empty((len(found), 3), dtype=np.int32)
    rest, rows[:, 2] = np.divmod(found, entities)
    rows[:, 0], rows[:, 1] = np.divmod(rest, relations)
    return KnowledgeGraph(numbered("e", entities), numbered("r", relations), rows)


@dataclass(frozen=True)
class Plan:
    """What a graph shall look like, before its triples are drawn.

    Parameters
    ----------
    ids
        The id of each entity, classes one after the other, hubs first.
    bounds, sizes
        Where each class begins, and its size.
    domains, ranges
        The classes that each relation leads from and to.
    wanted
        How many triples each relation has.
    random
        Where the random numbers come from.
    """

    ids: Longs
    bounds: Longs
    sizes: Longs
    domains: Longs
    ranges: Longs
    wanted: Longs
    random: np.random.Generator

    def draw(self, relations: Longs) -> tuple[Longs, Longs]:
        """Draw a subject and an object for each of these relations; pairs may repeat."""
        ends = []
        for classes, exponent in ((self.domains, SUBJECT_EXPONENT), (self.ranges, OBJECT_EXPONENT)):
            own = classes[relations]
            ranks = _zipf(self.random.random(len(relations)), self.sizes[own], exponent)
            ends.append(self.ids[self.bounds[own] + ranks])
        return ends[0], ends[1]


def planned(
    triples: int, *, relations: int, entities: int | None = None, classes: int | None = None, seed: int = 0
) -> Plan:
    """Lay out a graph; the arguments are those of `power_law_graph`."""
    random = np.random.default_rng(seed)
    entities = max(triples // 10, 100) if entities is None else entities
    classes = min(20, 1 + entities // 1000) if classes is None else classes
    bounds = np.concatenate([[0], np.cumsum(_shares(entities, classes, CLASS_EXPONENT))])
    sizes = np.diff(bounds)
    # Hubs of different classes must not have neighbouring ids, as they would not in a real graph.
    ids = random.permutation(entities)
    domains, ranges = _classes_of_relations(sizes, relations, random)
    wanted = _shares(triples, relations, RELATION_EXPONENT)
    wanted = _cut(wanted, sizes[domains] * sizes[ranges] // 4, triples)
    return Plan(ids, bounds[:-1], sizes, domains, ranges, wanted, random)


def _shares(whole: int, parts: int, exponent: float) -> Longs:
    """Split a number into positive parts that fall off with a power of their rank."""
    weights = np.arange(1, parts + 1) ** -exponent
    shares = 1 + np.floor((whole - parts) * weights / weights.sum()).astype(np.int64)
    shares[0] += whole - shares.sum()
    return shares


def _classes_of_relations(sizes: Longs, relations: int, random: np.random.Generator) -> tuple[Longs, Longs]:
    """Draw domain and range of each relation; larger classes have more of them."""
    weights = np.sqrt(sizes)
    domains = random.choice(len(sizes), relations, p=weights / weights.sum())
    ranges = random.choice(len(sizes), relations, p=weights / weights.sum())
    # The few relations that make up most of the graph need classes that have room for them.
    large = max(relations // 50, 1)
    domains[:large], ranges[:large] = np.arange(large) % 3, np.arange(large) // 3 % 3
    return domains, ranges


def _cut(wanted: Longs, room: Longs, whole: int) -> Longs:
    """Cut relations that are too large for their classes; the largest takes what is left."""
    cut = np.minimum(wanted, np.maximum(room, 1))
    cut[0] += whole - cut.sum()
    if cut[0] > 2 * room[0]:
        raise ValueError(f"there is no room for {whole:,} triples; use more entities or fewer classes")
    return cut


def _zipf(uniform: Floats, sizes: Longs, exponent: float) -> Longs:
    """Return ranks 0 … size - 1, drawn with probability falling off with a power of the rank."""
    power = 1 - exponent
    ranks = (uniform * ((sizes + 1.0) ** power - 1) + 1) ** (1 / power) - 1
    return np.minimum(ranks.astype(np.int64), sizes - 1)


def numbered(letter: str, count: int) -> Vocabulary:
    """Return the names e000, e001, …: as many digits for each, so that they are in order."""
    width = len(str(max(count - 1, 1)))
    data = np.empty((count, width + 1), dtype=np.uint8)
    data[:, 0] = ord(letter)
    rest = np.arange(count)
    for column in range(width, 0, -1):
        rest, digit = np.divmod(rest, 10)
        data[:, column] = ord("0") + digit
    return Vocabulary(data.ravel(), np.arange(count + 1) * (width + 1))


def main() -> None:
    """Write a graph as a file of tab-separated names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("triples", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--relations", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    graph = power_law_graph(given.triples, relations=given.relations, seed=given.seed)
    with given.file.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines("\t".join(names) + "\n" for names in graph.names(graph.triples))


if __name__ == "__main__":
    main()
