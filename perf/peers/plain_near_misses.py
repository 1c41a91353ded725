"""Near misses drawn in plain Python: the same wanted, anchor by anchor, with dictionaries of neighbours.

For each slot the near miss that it asks for is searched from its anchor, nested loop by nested loop; of the
ends found one is taken that is no positive. That is what a prototype does. It looks from the slot's own
anchor only, and does not see what is derivable, so it is less than what LogInfer does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

# A search is given up after so many steps, as ours.
BUDGET = 2**13


class Graph:
    """Neighbours by relation, and by any relation."""

    def __init__(self, triples: list[list[int]]) -> None:
        self.known = {tuple(t) for t in triples}
        self.objects: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.subjects: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.out: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.into: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for s, r, o in triples:
            self.objects[s, r].append(o)
            self.subjects[o, r].append(s)
            self.out[s].append((r, o))
            self.into[o].append((r, s))

    def pairs(self, relation: int | None, without: int, s: int | None, o: int | None) -> Iterator[Any]:
        """Yield the values of both ends of an atom; a relation of None is any but one."""
        if relation is not None:
            if s is not None and o is not None:
                if (s, relation, o) in self.known:
                    yield s, o
            elif s is not None:
                yield from ((s, other) for other in self.objects.get((s, relation), ()))
            elif o is not None:
                yield from ((other, o) for other in self.subjects.get((o, relation), ()))
        elif s is not None:
            found = self.out.get(s, ())
            yield from ((s, e) for r, e in found if r != without and (o is None or e == o))
        elif o is not None:
            yield from ((e, o) for r, e in self.into.get(o, ()) if r != without)


class Search:
    """All values of one variable, given that of another."""

    def __init__(self, graph: Graph, atoms: list[Any], unequal: list[tuple[str, str]]) -> None:
        self.graph, self.atoms, self.unequal = graph, atoms, unequal

    def ends(self, values: dict[str, int], target: str) -> set[int]:
        """Return what the target can be."""
        self.left, self.found, self.target = BUDGET, set(), target
        self._go(values, self.atoms)
        return self.found

    def _go(self, values: dict[str, int], atoms: list[Any]) -> None:
        if not atoms:
            self.found.add(values[self.target])
            return
        bound = [sum(v in values for v in (a[0], a[3])) for a in atoms]
        place = bound.index(max(bound))
        subject, relation, without, object_ = atoms[place]
        rest = atoms[:place] + atoms[place + 1 :]
        for s, o in self.graph.pairs(relation, without, values.get(subject), values.get(object_)):
            self.left -= 1
            if self.left < 0:
                return
            more = {**values, subject: s, object_: o}
            if all(more[a] != more[b] for a, b in self.unequal if a in more and b in more):
                self._go(more, rest)


def plain(folder: str, pattern: str, part: int) -> Any:
    """Prepare the slots of 200 rules on FB15k-237. One in `part` is filled; the time counts as often."""
    import random
    import time

    from loginfer.benchmark.negatives.near_misses import slots_of
    from perf.tasks.near_misses import context_of

    context = context_of(folder, pattern)
    slots = slots_of(context)
    rules = [_edited(context, rule, edits) for rule, edits in zip(context.rules, slots.edits, strict=True)]
    rows = list(zip(slots.rule.tolist(), slots.edit.tolist(), slots.conclusion.tolist(), strict=True))[::part]
    triples = context.kg.triples.tolist()
    positives = {tuple(t) for t in context.everything.triples.tolist()}

    def call() -> tuple[int, float]:
        graph, rng, filled = Graph(triples), random.Random(0), 0
        begin = time.process_time()
        for rule, edit, (s, r, o) in rows:
            atoms, unequal, ends = rules[rule][edit]
            side = rng.randrange(2)
            found = Search(graph, atoms, unequal).ends({ends[side]: (s, o)[side]}, ends[1 - side])
            pairs = [(s, r, e) if side == 0 else (e, r, o) for e in sorted(found)]
            free = [triple for triple in pairs if triple not in positives]
            filled += bool(free and rng.choice(free))
        return filled, (time.process_time() - begin) * part

    return call, lambda value: {"slots": len(rows), "filled": value[0]}, lambda value: value[1]


def _edited(context: Any, rule: Any, edits: Any) -> list[Any]:
    """Return for each edit of a rule the atoms over ids, the inequalities, and both ends."""
    from loginfer.logic.rule import Atom
    from loginfer.logic.subrules import near_miss

    found = []
    for edit in edits:
        wildcard = rule.body[edit.part] if edit.kind == "replace" else None
        # The relation that stands in for any other one has no name of its own.
        edited = near_miss(rule, edit, "\0") if wildcard is not None else near_miss(rule, edit)
        atoms = []
        for part in edited.atoms:
            own = wildcard is not None and part.relation == "\0"
            relation = None if own else context.kg.relation_id(str(part.relation))
            without = context.kg.relation_id(str(wildcard.relation)) if isinstance(wildcard, Atom) else -1
            atoms.append((str(part.subject), relation, without, str(part.object)))
        unequal = [(str(i.left), str(i.right)) for i in edited.inequalities]
        found.append((atoms, unequal, (str(rule.head.subject), str(rule.head.object))))
    return found
