"""What becomes of a rule's body when its variables have values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.story import Names, Part
from loginfer.engine.binding import relation_of
from loginfer.kg import KnowledgeGraph
from loginfer.logic.rule import Atom, BodyAtom, Negation, Rule
from loginfer.logic.terms import Term, Variable

__all__ = ["Witness"]


class Witness:
    """What the variables of a rule stand for."""

    def __init__(self, graph: KnowledgeGraph, rule: Rule, values: npt.NDArray[np.int32]) -> None:
        self._graph = graph
        self._values: dict[Term, int] = dict(zip(rule.variables, values.tolist(), strict=True))

    @property
    def names(self) -> dict[str, str]:
        """Names of constants by variable."""
        return {str(term): self._graph.entities[value] for term, value in self._values.items()}

    def _name(self, term: Term) -> str | None:
        if not isinstance(term, Variable):
            return term.name
        return self._graph.entities[self._values[term]] if term in self._values else None

    def triple(self, part: BodyAtom) -> Names | None:
        """Return the triple that an atom becomes; None for an inequality, or with an open variable."""
        if not isinstance(part, Atom):
            return None
        subject, object_ = self._name(part.subject), self._name(part.object)
        relation = relation_of(part, self._graph)
        name = str(part.relation) if relation < 0 else self._graph.relations[relation]
        return None if subject is None or object_ is None else (subject, name, object_)

    def part(self, part: BodyAtom, graph: KnowledgeGraph, rule: Rule, kept: bool) -> Part:
        """Return a part of a rule's body under this witness."""
        holds = self.holds(part, graph, rule)
        if not isinstance(part, Negation):
            return Part(str(part), holds, kept, self.triple(part))
        denied = self.denied(part, graph) if holds is False else None
        return Part(str(part), holds, kept, denied, self.written(part))

    def written(self, negation: Negation) -> Names:
        """Return a negated atom as names, with variables like `?z` where there is no value."""
        subject, object_ = (self._name(term) or f"?{term.name}" for term in negation.terms)
        relation = relation_of(negation.atom, self._graph)
        name = str(negation.atom.relation) if relation < 0 else self._graph.relations[relation]
        return subject, name, object_

    def denied(self, negation: Negation, graph: KnowledgeGraph) -> Names | None:
        """Return the first triple of a graph that a negation denies; None if there is none."""
        relation = relation_of(negation.atom, graph)
        found = graph.triples[graph.triples[:, 1] == relation]
        for column, term in zip((0, 2), negation.terms, strict=True):
            name = self._name(term)
            if name is not None:
                place = graph.entities.get(name)
                found = found[found[:, column] == (-1 if place is None else place)]
        if negation.atom.subject == negation.atom.object:
            found = found[found[:, 0] == found[:, 2]]
        return graph.names(found[:1])[0] if len(found) else None

    def holds(self, part: BodyAtom, graph: KnowledgeGraph, rule: Rule) -> bool | None:
        """Say whether a part of a rule is true; None with an open variable."""
        if isinstance(part, Negation):
            own = rule.existential(part)
            is_open = any(v not in self._values and v not in own for v in part.variables)
            return None if is_open else self.denied(part, graph) is None
        if not isinstance(part, Atom):
            left, right = (self._name(term) for term in part.terms)
            return None if left is None or right is None else left != right
        triple = self.triple(part)
        if triple is None:
            return None
        subject, object_ = graph.entities.get(triple[0]), graph.entities.get(triple[2])
        relation = relation_of(part, graph)
        if subject is None or object_ is None or relation < 0:
            return False
        return bool(graph.contains([[subject, relation, object_]])[0])
