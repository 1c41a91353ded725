"""Bodies of the user's own patterns, evaluated by the engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from loginfer.engine import Engine, open_engine
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.instances import instantiate
from loginfer.logic.patterns import parse_pattern
from loginfer.logic.rule import Pattern, Rule
from loginfer.logic.terms import Constant
from loginfer.systems.rules.contrasting.bodies import Bodies
from loginfer.systems.rules.contrasting.design import Design
from loginfer.systems.rules.contrasting.rows import NO_TYPE, Head, HeadRows
from loginfer.systems.rules.contrasting.table import TRAIN_POSITIVE

__all__ = ["GivenPatterns", "given_rules", "parse_patterns"]

# Into how many parts the positives are cut that are hidden together.
FOLDS = 4


def parse_patterns(texts: str) -> tuple[Pattern, ...]:
    """Read patterns, by name or as text, separated by semicolons."""
    parts = (text.strip() for text in texts.split(";"))
    return tuple(parse_pattern(text, where="patterns") for text in parts if text)


def given_rules(
    graph: KnowledgeGraph, patterns: tuple[Pattern, ...], heads: tuple[Head, ...], most: int
) -> tuple[Rule, ...]:
    """Return instances of patterns with these heads: the `most` bodies of each with the largest support."""
    engine = open_engine(graph)
    found: dict[Rule, None] = {}
    for pattern in patterns:
        bodies = engine.rank_bodies(pattern, most, complete=False)
        names = [
            graph.entities if pattern.is_type_template(template) else graph.relations
            for template in pattern.templates
        ]
        wanted = [head for head in heads if (head.type != NO_TYPE) == pattern.head.is_type]
        for row in bodies.predicates:
            predicates = [vocabulary[int(id_)] for vocabulary, id_ in zip(names, row, strict=True)]
            for rule in _instances(graph, pattern, predicates, wanted):
                found.setdefault(rule)
    return tuple(found)


def _instances(
    graph: KnowledgeGraph, pattern: Pattern, predicates: list[str], heads: Iterable[Head]
) -> Iterable[Rule]:
    if pattern.head_in_body:
        rule = instantiate(pattern, predicates)
        if any(_is_head(graph, rule, head) for head in heads):
            yield rule
        return
    for head in heads:
        name = graph.relations[head.relation] if head.type == NO_TYPE else graph.entities[head.type]
        yield instantiate(pattern, predicates, name)


def _is_head(graph: KnowledgeGraph, rule: Rule, head: Head) -> bool:
    if head.type == NO_TYPE:
        return str(rule.head.relation) == graph.relations[head.relation]
    return rule.head.object == Constant(graph.entities[head.type])


@dataclass(frozen=True)
class GivenPatterns:
    """Evaluates instances of the user's patterns for the rows of a head.

    A positive must not be explained by itself. Bodies that cannot use it, since the head's predicate is not
    in them, are evaluated over the whole graph; the others for one part of the positives after the other,
    over the graph without that part.
    """

    bodies: Bodies

    @cached_property
    def _engine(self) -> Engine:
        return open_engine(self.bodies.graph)

    def design(self, rows: HeadRows) -> Design:
        """Return where the given rules with this head fire."""
        graph, head = self.bodies.graph, rows.head
        numbers = [n for n, rule in enumerate(self.bodies.given) if _is_head(graph, rule, head)]
        triples = np.empty((len(rows), 3), dtype=np.int32)
        triples[:, 0], triples[:, 1], triples[:, 2] = rows.pairs[:, 0], head.relation, rows.pairs[:, 1]
        looping = [n for n in numbers if _uses_its_head(self.bodies.given[n])]
        free = [n for n in numbers if n not in set(looping)]
        pairs = [self._fired(self._engine, free, triples, np.arange(len(rows)))]
        if looping:
            hidden = rows.groups == TRAIN_POSITIVE
            pairs.append(self._fired(self._engine, looping, triples, np.flatnonzero(~hidden)))
            for fold in range(FOLDS):
                places = np.flatnonzero(hidden)[fold::FOLDS]
                engine = open_engine(_without(graph, triples[places]))
                pairs.append(self._fired(engine, looping, triples, places))
        joined = np.concatenate(pairs)
        joined = joined[np.lexsort((joined[:, 1], joined[:, 0]))]
        used, columns = np.unique(joined[:, 1], return_inverse=True)
        codes = np.array([self.bodies.given_code_at(int(n)) for n in used], dtype=np.int64)
        return Design.of_pairs(codes, np.stack([joined[:, 0], columns], axis=1).astype(np.int32), len(rows))

    def _fired(
        self, engine: Engine, numbers: list[int], triples: Triples, places: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return int64[k, 2]: rows and numbers of given rules that derive them."""
        if not numbers or not len(places):
            return np.empty((0, 2), dtype=np.int64)
        found = engine.derivations([self.bodies.given[n] for n in numbers], triples[places])
        return np.stack([places[found.triple], np.array(numbers)[found.rule]], axis=1)


def _uses_its_head(rule: Rule) -> bool:
    return any(atom.relation == rule.head.relation for atom in rule.atoms)


def _without(graph: KnowledgeGraph, triples: Triples) -> KnowledgeGraph:
    hidden = np.isin(graph.packed, graph.keys.pack(triples))
    return graph.with_triples(graph.triples[~hidden])
