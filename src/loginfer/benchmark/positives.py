"""Step 2, distributing rule application results (section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.recipe import Recipe
from loginfer.benchmark.rounds import Rounds
from loginfer.benchmark.rules import Selection
from loginfer.benchmark.stored_splits import StoredSplits
from loginfer.benchmark.values import SPLITS, Provenance, Splits
from loginfer.engine import Engine, Progress
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.triples import keys_without, merged_keys
from loginfer.logic.rule import Rule

__all__ = ["Positives", "distribute", "strangers", "trace", "trace_steps"]

Keys = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Positives:
    """P_train, P_valid, P_test, and where their conclusions came from.

    Parameters
    ----------
    splits
        The three sets; P_train contains K.
    provenance
        Of every conclusion that was distributed.
    notes
        What a user should know.
    """

    splits: Splits
    provenance: Provenance
    notes: tuple[str, ...] = ()


def distribute(
    recipe: Recipe,
    engine: Engine,
    selection: Selection,
    progress: Progress | None = None,
    rounds: Rounds | None = None,
) -> Positives:
    """Distribute the sampled conclusions of each rule over train, valid and test.

    P_train is K and every rule's share of train; P_valid the shares of valid that are not in P_train; P_test
    the shares of test that are in neither. A conclusion with a name that P_train would not have goes to train
    instead: the signature of the others must be included in that of P_train (section 2.2).

    With `rounds`, conclusions may follow in several steps, and the provenance tells in how many.
    """
    graph = engine.graph
    shares: tuple[list[Keys], ...] = ([], [], [])
    for sample in selection.samples:
        first, second = recipe.cuts(len(sample))
        for share, part in zip(shares, (sample[:first], sample[first:second], sample[second:]), strict=True):
            share.append(part)
    train, valid, test = (merged_keys(*share) for share in shares)
    valid = keys_without(valid, train)
    test = keys_without(keys_without(test, train), valid)
    strange = strangers(graph, train, np.concatenate([valid, test]))
    if len(strange):
        train = merged_keys(train, strange)
        valid, test = (keys_without(keys, strange) for keys in (valid, test))
    splits = _splits(graph, train, valid, test)
    concluded = np.concatenate([train, valid, test])
    split = np.repeat(np.arange(len(SPLITS), dtype=np.int8), [len(train), len(valid), len(test)])
    order = np.argsort(concluded)
    triples, split = graph.keys.unpack(concluded[order]), split[order]
    if rounds is None:
        provenance = trace(engine, selection.program, triples, split, progress=progress)
    else:
        provenance = trace_steps(rounds, triples, split, progress)
    notes: tuple[str, ...] = ()
    if len(strange):
        notes = (f"{len(strange)} conclusions went to train because they are the first with some name",)
    return Positives(splits, provenance, notes)


def _splits(graph: KnowledgeGraph, train: Keys, valid: Keys, test: Keys) -> Splits:
    """Return P_train = K ∪ train, P_valid and P_test; where K stays in a database, P_train does too."""
    later = graph.keys.unpack(valid), graph.keys.unpack(test)
    if graph.in_memory:
        return Splits(graph.keys.unpack(merged_keys(graph.packed, train)), *later)
    return StoredSplits(graph.with_more(graph.keys.unpack(train)), *later)


def strangers(graph: KnowledgeGraph, train: Keys, others: Keys) -> Keys:
    """Return the keys of triples with a name that neither K nor these training triples have, sorted.

    A type is no constant: a name counts only for the way in which it is used.
    """
    constants, types = (np.zeros(len(graph.entities), dtype=bool) for _ in range(2))
    relations = np.zeros(len(graph.relations), dtype=bool)
    constants[graph.consts], types[graph.types], relations[graph.preds] = True, True, True
    added = graph.keys.unpack(train)
    typed = added[:, 1] == graph.type_relation
    constants[added[:, 0]] = True
    constants[added[~typed, 2]] = True
    types[added[typed, 2]] = True
    relations[added[:, 1]] = True
    asked = graph.keys.unpack(others)
    objects = np.where(asked[:, 1] == graph.type_relation, types[asked[:, 2]], constants[asked[:, 2]])
    return np.sort(others[~(constants[asked[:, 0]] & relations[asked[:, 1]] & objects)])


def trace(
    engine: Engine,
    rules: Sequence[Rule],
    conclusions: Triples,
    split: npt.NDArray[np.int8],
    *,
    progress: Progress | None = None,
) -> Provenance:
    """Return all rules that derive each conclusion, with the first witness of each.

    Parameters
    ----------
    engine
        An engine over K.
    rules
        R.
    conclusions
        int32[n, 3], sorted.
    split
        int8[n], places in `SPLITS`.
    progress
        Called with what is being done, how much is done, and how much there is.
    """
    found = engine.derivations(rules, conclusions)
    width = np.array([len(rule.variables) for rule in rules], dtype=np.int64)
    offsets = np.zeros(len(found.rule) + 1, dtype=np.int64)
    np.cumsum(width[found.rule], out=offsets[1:])
    values = np.empty(int(offsets[-1]), dtype=np.int32)
    by_rule = np.argsort(found.rule, kind="stable")
    ends = np.cumsum(np.bincount(found.rule, minlength=len(rules)))
    for i, rule in enumerate(rules):
        if progress:
            progress("finding witnesses", i, len(rules))
        pairs = by_rule[ends[i - 1] if i else 0 : ends[i]]
        if len(pairs):
            rows = engine.first_witnesses(rule, conclusions[found.triple[pairs]])
            values[offsets[pairs][:, None] + np.arange(width[i])] = rows
    return Provenance(conclusions, split, found.triple, found.rule.astype(np.int32), offsets, values)


def trace_steps(
    rounds: Rounds, conclusions: Triples, split: npt.NDArray[np.int8], progress: Progress | None = None
) -> Provenance:
    """Return the provenance of conclusions of several steps: those at depth d are traced in K_{d-1}.

    Parameters
    ----------
    rounds
        K and what follows from it, step by step.
    conclusions, split, progress
        As for `trace`.
    """
    from loginfer.benchmark.multi_step import joined

    depth = rounds.depths(conclusions)
    parts = []
    for step in range(1, rounds.steps + 1):
        mine = np.flatnonzero(depth == step)
        engine = rounds.over(step)
        part = trace(engine, rounds.rules, conclusions[mine], split[mine], progress=progress)
        parts.append((mine, part))
    return joined(parts, conclusions, split, depth)
