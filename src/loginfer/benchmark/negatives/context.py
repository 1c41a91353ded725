"""What all methods for negatives share: K, R and the positives, what counts as true, and how negatives are recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import SPLITS, NegativeSet, Origins, Split, Splits
from loginfer.benchmark.negatives.methods import SOURCES
from loginfer.benchmark.negatives.spaces import Draw
from loginfer.benchmark.program import Rounds, has_negations, negation_notes
from loginfer.benchmark.recipe import Recipe
from loginfer.engine import Engine
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ids, Ints, Mask, TripleKeys, distinct_keys, member
from loginfer.logic.rule import Rule
from loginfer.progress import Progress

if TYPE_CHECKING:
    from loginfer.benchmark.negatives.twins import Twins


class Truth:
    """What must not be labelled negative.

    Parameters
    ----------
    graph
        Triples that are true: P_all, or the materialisation.
    engine
        For protocol `sound`: an engine over P_all; what the rules derive from it in one step is true as well.
    rules
        R.
    before
        For rules with negations: engines over K and P_train. What follows from them is true as well, even if
        it does not follow any more when conclusions are added.
    everything
        For protocol `sound`: P_all. A triple with a predicate that no positive has is no candidate, since
        that alone would give it away.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        engine: Engine | None = None,
        rules: Sequence[Rule] = (),
        everything: KnowledgeGraph | None = None,
        before: Sequence[Engine] = (),
    ) -> None:
        self.graph = graph
        self._engines = [*before] if engine is None else [engine, *before]
        self._rules = tuple(rules)
        self._relations = np.zeros(len(graph.relations), dtype=bool)
        self._relations[slice(None) if everything is None else everything.preds] = True
        self._types = np.zeros(len(graph.entities), dtype=bool)
        self._types[slice(None) if everything is None else everything.types] = True

    def negative(self, triples: Triples) -> Mask:
        """Return bool[n]: which of these triples may be labelled negative."""
        possible = ~self.graph.contains(triples)
        possible &= self._relations[triples[:, 1]]
        if self.graph.type_relation is not None:
            possible &= (triples[:, 1] != self.graph.type_relation) | self._types[triples[:, 2]]
        for engine in self._engines:
            rows = np.flatnonzero(possible)
            if len(rows):
                possible[rows[engine.derives(self._rules, triples[rows])]] = False
        return possible


@dataclass(frozen=True)
class Context:
    """Everything that negatives are made from; what several methods need is computed once.

    Parameters
    ----------
    recipe
        Protocol, ratio and seed.
    engine
        An engine over K, whose vocabularies hold every name of the rules' heads; for conclusions of several
        steps over K_{depth-1}, from which they all follow in one.
    open_engine
        Opens an engine of the same kind over another graph.
    rules
        R.
    positives
        P_train, P_valid, P_test.
    progress
        Called with what is being done, how much is done, and how much there is.
    more
        int32[n, 3]: true triples that are in no split, as the context graph of an inductive benchmark's test.
    rounds
        For conclusions of several steps: what follows from K, step by step.
    twins
        Near misses with which conclusions were paired before they were distributed.
    """

    recipe: Recipe
    engine: Engine
    open_engine: Callable[[KnowledgeGraph], Engine]
    rules: tuple[Rule, ...]
    positives: Splits
    progress: Progress | None = None
    more: Triples | None = None
    rounds: Rounds | None = None
    twins: Twins | None = None
    _concluded: dict[Split, KnowledgeGraph] = field(default_factory=dict, init=False, repr=False)

    @property
    def kg(self) -> KnowledgeGraph:
        """The graph K."""
        return self.engine.graph

    @property
    def base(self) -> KnowledgeGraph:
        """K itself, also where conclusions follow in several steps: what shortcuts look at."""
        return self.kg if self.rounds is None else self.rounds.kg

    @cached_property
    def everything(self) -> KnowledgeGraph:
        """P_all, as a graph over the vocabularies of K."""
        return self.seen.with_more(np.vstack([self.positives.valid, self.positives.test]))

    @cached_property
    def seen(self) -> KnowledgeGraph:
        """What a system sees of these constants: P_train, or for an inductive test the context graph."""
        train = self.positives.train_graph(self.kg)
        return train if self.more is None else train.with_more(self.more)

    @cached_property
    def conclusions(self) -> Mapping[Split, Triples]:
        """C_train, C_valid and C_test: the conclusion triples in P_train ∩ T_R(K) and so on."""
        return {split: self.concluded(split).triples for split in SPLITS}

    def concluded(self, split: Split) -> KnowledgeGraph:
        """Return C_train, C_valid or C_test as a graph; that of a stored K stays in the database."""
        if split not in self._concluded:
            splits = self.positives
            graph = splits.train_graph(self.kg) if split == "train" else self.kg.with_triples(splits[split])
            self._concluded[split] = self.engine.derived(self.rules, graph)
        return self._concluded[split]

    @cached_property
    def truth(self) -> Truth:
        """What must not be labelled negative, by the recipe's protocol."""
        if self.recipe.protocol == "paper":
            return Truth(self.everything)
        if self.rounds is not None:
            return Truth(self.rounds.true, everything=self.everything)  # which holds P_all as well
        if self.recipe.materialised:
            closure = self.engine.materialise(self.rules, progress=self.progress)
            true = self.everything.with_more(closure.triples)
            if not has_negations(self.rules):
                return Truth(true, everything=self.everything)
        else:
            true = self.everything
        before = [self.engine] if has_negations(self.rules) else []
        if negation_notes(self.rules):
            before.append(self.open_engine(self.seen))
        return Truth(true, self.open_engine(self.everything), self.rules, self.everything, before)


def heads_of(graph: KnowledgeGraph, triples: Triples) -> Ints:
    """Return int64[n], a number for each triple's predicate: its relation, or for a type triple its type."""
    relations = triples[:, 1].astype(np.int64)
    if graph.type_relation is None:
        return relations
    types = len(graph.relations) + triples[:, 2].astype(np.int64)
    return np.where(relations == graph.type_relation, types, relations)


# Why there are fewer negatives than asked for.
ALL = "all candidates that there are"


@dataclass(frozen=True, slots=True)
class SplitNegatives:
    """The negatives of one split.

    Parameters
    ----------
    triples
        int32[n, 3], distinct, in any order.
    origins
        Where each came from.
    why
        Should there be fewer than asked for: what these are.
    """

    triples: Triples
    origins: Origins
    why: str = ALL


def origins_from(
    source: str, count: int, *, position: npt.NDArray[np.int8] | int = 0, rule: Ids | int = -1, kept: Ids | int = 0
) -> Origins:
    """Return the origins of triples from one source.

    Parameters
    ----------
    source
        A name in `SOURCES`.
    count
        How many triples there are.
    position, rule, kept
        See `Origins`; one value for all, or one for each.
    """

    # One value for all takes no memory, however many there are.
    def column(value: npt.ArrayLike, kind: type[np.integer[Any]]) -> npt.NDArray[Any]:
        return np.broadcast_to(np.asarray(value, dtype=kind), (count,))

    return Origins(
        column(SOURCES.index(source), np.int8),
        column(position, np.int8),
        column(rule, np.int32),
        column(kept, np.int32),
        column(0, np.int8),
        column(-1, np.int32),
        column(-1, np.int32),
        column(-1, np.int32),
    )


def shortfall(draw: Draw) -> str:
    """Return what the triples of a draw that fell short are."""
    return ALL if draw.exhausted else f"what the first {draw.examined:,} candidates that were looked at had"


class TakenNegatives:
    """The negatives that other splits have already.

    Parameters
    ----------
    context
        What negatives are made from.
    sets
        The negatives of each split, in any order.
    """

    def __init__(self, context: Context, sets: Iterable[Triples]) -> None:
        self._keys = context.kg.keys
        # One sorted list a split, not one of all: joining them would need all of them a second time.
        self._packed = [distinct_keys(self._keys.pack(triples)) for triples in sets]

    def contains(self, triples: Triples) -> Mask:
        """Return bool[n]: which of these triples are taken."""
        keys = self._keys.pack(triples)
        is_taken = np.zeros(len(keys), dtype=bool)
        for packed in self._packed:
            is_taken |= member(packed, keys)
        return is_taken

    @property
    def packed(self) -> Ints:
        """The keys of all of them, sorted."""
        return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *self._packed]), kind="stable")


def draw_in_turn(
    context: Context,
    draw_split: Callable[[Split, TakenNegatives], SplitNegatives],
    begin: Mapping[Split, SplitNegatives] | None = None,
) -> dict[Split, SplitNegatives]:
    """Draw for train, then valid, then test, as the text does.

    Where candidates are few, train may use up those of the others, and nothing could be evaluated. Under
    `sound` it then has to stand back: test is drawn first, then valid, and train gets what is left.

    Parameters
    ----------
    context
        What negatives are made from.
    draw_split
        Draws for a split, given the negatives that there are already.
    begin
        Negatives that there are from the start.
    """
    for order in (SPLITS, SPLITS[::-1]):
        negatives = dict(begin or {})
        for split in order:
            negatives[split] = draw_split(split, TakenNegatives(context, (part.triples for part in negatives.values())))
        short = any(len(negatives[split].triples) < context.positives.sizes[split] for split in SPLITS[1:])
        if not short or context.recipe.protocol != "sound":
            break
    return negatives


def assemble(
    context: Context, method: str, negatives: Mapping[Split, SplitNegatives], sizes: Mapping[Split, int] | None = None
) -> NegativeSet:
    """Return the negatives of the three splits, sorted, with a note on each that fell short.

    As many as positives are asked for, unless `sizes` says otherwise.
    """
    asked = {str(split): size for split, size in (sizes or context.positives.sizes).items()}
    triples: dict[Split, Triples] = {}
    origins: dict[str, Origins] = {}
    notes: list[str] = []
    for split in SPLITS:
        part = negatives[split]
        triples[split], origins[split] = _in_order(part.triples, part.origins, context.kg.keys)
        if len(part.triples) < asked[split]:
            notes.append(f"{split} has {len(part.triples):,} negatives instead of {asked[split]:,}, {part.why}")
    splits = Splits(triples["train"], triples["valid"], triples["test"])
    return NegativeSet(method, splits, origins, asked, tuple(notes))


def _in_order(triples: Triples, origins: Origins, keys: TripleKeys) -> tuple[Triples, Origins]:
    """Return triples sorted, with their origins; those that are sorted already are not copied."""
    packed = keys.pack(triples)
    if (packed[1:] > packed[:-1]).all():
        return triples, origins
    order = np.argsort(packed)
    return triples[order], origins[order]
