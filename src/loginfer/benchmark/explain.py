"""The story of one triple: which sets it is in, which rules derive it, or how it became a negative."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.negatives.undesired import sub_rule
from loginfer.benchmark.story import Derivation, Names, NegativeStory, Part, TripleStory
from loginfer.benchmark.values import POSITIONS, SOURCES, Benchmark
from loginfer.engine import Engine, open_engine_in
from loginfer.engine.binding import relation_of
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph
from loginfer.logic.rule import Atom, BodyAtom, Rule
from loginfer.logic.terms import Term, Variable

__all__ = ["explain_triple"]


def explain_triple(
    benchmark: Benchmark, triple: Sequence[str] | Sequence[int], limit: int = 1, *, engine: str = "native"
) -> TripleStory:
    """Tell where a triple is in a benchmark, and why.

    Parameters
    ----------
    benchmark
        The benchmark.
    triple
        Subject, relation and object, as names or as ids.
    limit
        How many witnesses to give for each rule, at most.
    engine
        `native` or `duckdb`.

    Raises
    ------
    UnknownNameError
        For a name that the benchmark does not have, with the nearest ones.
    """
    ids = _ids(benchmark.graph, triple)
    with contextlib.ExitStack() as stack:
        return _Teller(benchmark, ids, limit, engine, stack).tell()


def _ids(graph: KnowledgeGraph, triple: Sequence[str] | Sequence[int]) -> tuple[int, int, int]:
    if len(triple) != 3:
        raise InputError(
            f"a triple has three parts, not {len(triple)}", hint="give subject, relation, object"
        )
    s, r, o = triple
    sizes = (len(graph.entities), len(graph.relations), len(graph.entities))
    ids = (
        graph.entity_id(s) if isinstance(s, str) else int(s),
        graph.relation_id(r) if isinstance(r, str) else int(r),
        graph.entity_id(o) if isinstance(o, str) else int(o),
    )
    for part, size in zip(ids, sizes, strict=True):
        if not 0 <= part < size:
            raise InputError(f"there is no name with the id {part}")
    return ids


class _Teller:
    """Tells the story of one triple."""

    def __init__(
        self,
        benchmark: Benchmark,
        triple: tuple[int, int, int],
        limit: int,
        engine: str,
        stack: contextlib.ExitStack,
    ) -> None:
        self.benchmark = benchmark
        self.triple = triple
        self.row = np.array([triple], dtype=np.int32)
        self.limit = limit
        self._engine = engine
        self._stack = stack
        self._engines: dict[str, Engine] = {}

    def tell(self) -> TripleStory:
        """Put the story together."""
        derivations, source = self._derivations()
        return TripleStory(
            triple=self._names(self.triple),
            sets=tuple(self._sets()),
            conclusion=self._is_conclusion(),
            derivations=tuple(derivations),
            source=source,
            negatives=tuple(self._negatives()),
            reason=self._reason() if self.benchmark.rules and not derivations else None,
        )

    # -- where it is ------------------------------------------------------------------------------

    def _sets(self) -> Iterator[str]:
        kg = self.benchmark.kg
        if kg is not None and kg.contains(self.row)[0]:
            yield "K"
        for split, triples in self.benchmark.positives.items():
            if self._in(triples):
                yield f"P_{split}"
        for method, made in self.benchmark.negatives.items():
            for split, triples in made.splits.items():
                if self._in(triples):
                    yield f"N_{split} of {method}"

    def _in(self, triples: npt.NDArray[np.int32]) -> bool:
        return self._place(triples) is not None

    def _place(self, triples: npt.NDArray[np.int32]) -> int | None:
        """Return the place of the triple in a list."""
        found = np.flatnonzero((triples == self.row).all(axis=1))
        return int(found[0]) if len(found) else None

    def _is_conclusion(self) -> bool | None:
        provenance = self.benchmark.provenance
        return None if provenance is None else self._in(provenance.triples)

    # -- why it is true ---------------------------------------------------------------------------

    def _over(self, name: str) -> Engine:
        """Return an engine over K, P_train or P_all."""
        if name not in self._engines:
            graph: KnowledgeGraph | None
            if name == "K":
                graph = self.benchmark.kg
            else:
                graph = self.benchmark.graph if name == "P_train" else self.benchmark.everything
            if graph is None:
                raise InputError("K is not known")
            self._engines[name] = open_engine_in(self._stack, graph, self._engine)
        return self._engines[name]

    @property
    def _premises_from(self) -> str:
        return "P_train" if self.benchmark.kg is None else "K"

    def _derivations(self) -> tuple[list[Derivation], str | None]:
        recorded = self._recorded()
        if recorded and self.limit <= 1:
            return recorded, "K"
        # What does not follow from K may still follow from the conclusions that were added to it.
        for name in dict.fromkeys((self._premises_from, "P_train", "P_all")):
            found = list(self._by_engine(name))
            if found:
                return found, name
        return [], None

    def _recorded(self) -> list[Derivation]:
        """Return the derivations that the provenance tells of."""
        provenance = self.benchmark.provenance
        place = None if provenance is None else self._place(provenance.triples)
        if provenance is None or place is None:
            return []
        found = []
        for pair in np.flatnonzero(provenance.conclusion == place).tolist():
            values = provenance.values[provenance.offsets[pair] : provenance.offsets[pair + 1]]
            found.append(self._derivation(int(provenance.rule[pair]), values))
        return found

    def _by_engine(self, name: str) -> Iterator[Derivation]:
        for number, rule in enumerate(self.benchmark.program):
            if self._head_fits(rule):
                witnesses = self._over(name).witnesses(rule, limit=self.limit, conclusion=self.triple)
                for values in witnesses.values:
                    yield self._derivation(number, values)

    def _derivation(self, number: int, values: npt.NDArray[np.int32]) -> Derivation:
        rule = self.benchmark.program[number]
        witness = _Witness(self.benchmark.graph, rule, values)
        premises = [witness.triple(atom) for atom in rule.atoms]
        return Derivation(number, str(rule), witness.names, tuple(p for p in premises if p is not None))

    def _head_fits(self, rule: Rule) -> bool:
        """Say whether a rule's head can become the triple."""
        graph, head = self.benchmark.graph, rule.head
        if relation_of(head, graph) != self.triple[1]:
            return False
        values: dict[Term, int] = {}
        for term, value in ((head.subject, self.triple[0]), (head.object, self.triple[2])):
            if not isinstance(term, Variable) and graph.entities.get(term.name) != value:
                return False
            if values.setdefault(term, value) != value:
                return False
        return True

    def _reason(self) -> str:
        fitting = sum(self._head_fits(rule) for rule in self.benchmark.program)
        if not fitting:
            return f"none of the {len(self.benchmark.rules):,} rules has this head"
        rules = "one rule has" if fitting == 1 else f"{fitting:,} rules have"
        return f"{rules} this head, but no witness among the positives"

    # -- why it is a negative ---------------------------------------------------------------------

    def _negatives(self) -> Iterator[NegativeStory]:
        for method, made in self.benchmark.negatives.items():
            for split, triples in made.splits.items():
                place = self._place(triples)
                if place is None:
                    continue
                story = NegativeStory(method, split)
                origins = made.origins.get(split)
                if origins is not None:
                    story = replace(
                        story,
                        source=SOURCES[origins.source[place]],
                        position=POSITIONS[origins.position[place]] or None,
                    )
                    story = self._told(story, int(origins.rule[place]), int(origins.kept[place]))
                yield story

    def _told(self, story: NegativeStory, number: int, kept: int) -> NegativeStory:
        if story.source in ("position", "object"):
            return replace(story, replaced=self._replaced(story))
        if story.source != "sub-rule" or not 0 <= number < len(self.benchmark.rules):
            return story
        rule = self.benchmark.program[number]
        if kept >> len(rule.body):
            return story  # parts that the rule does not have: the folder is wrong, which an audit finds
        smaller = sub_rule(rule, kept)
        story = replace(story, rule=number, sub_rule=str(smaller))
        if not set(smaller.head.variables) <= set(smaller.variables):
            return story  # nor is that a sub-rule
        found = self._over(self._premises_from).witnesses(smaller, limit=1, conclusion=self.triple)
        if not len(found):
            return story
        witness = _Witness(self.benchmark.graph, smaller, found.values[0])
        over = self._over(self._premises_from).graph
        parts = tuple(
            Part(str(part), witness.holds(part, over), bool(kept >> i & 1), witness.triple(part))
            for i, part in enumerate(rule.body)
        )
        return replace(story, witness=witness.names, parts=parts)

    def _replaced(self, story: NegativeStory) -> Names | None:
        """Return a positive that the triple was made from: for position-aware corruption a conclusion."""
        triples = self.benchmark.positives[story.split]
        same = triples[:, 1] == self.triple[1]
        column = 2 if story.position in ("subject", "either") else 0
        found = triples[same & (triples[:, column] == self.triple[column])]
        if story.source == "position" and self.benchmark.rules and len(found):
            found = found[self._over(self._premises_from).derives(self.benchmark.program, found)]
        return self._names(found[0]) if len(found) else None

    def _names(self, triple: npt.ArrayLike) -> Names:
        ((s, r, o),) = self.benchmark.graph.names(np.asarray(triple))
        return s, r, o


class _Witness:
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

    def holds(self, part: BodyAtom, graph: KnowledgeGraph) -> bool | None:
        """Say whether a part is true; None with an open variable."""
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
