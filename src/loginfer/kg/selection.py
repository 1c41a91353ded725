"""What is kept of a graph that was read: which triples, and what people call its names.

Labels are collected before anything is left out. Where literals are dropped, their texts live on as labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError
from loginfer.kg.formats.base import Loaded, ReadOptions
from loginfer.kg.graph import KnowledgeGraph, resolve_relation
from loginfer.kg.vocabulary import Vocabulary

Mask = npt.NDArray[np.bool_]

# Relations whose objects are labels, the best first.
_LABELS = (
    ("http://www.w3.org/2000/01/rdf-schema#label", "rdfs:label", "label"),
    ("http://www.w3.org/2004/02/skos/core#prefLabel", "skos:prefLabel", "prefLabel"),
    ("http://schema.org/name", "https://schema.org/name", "schema:name", "name"),
    ("http://xmlns.com/foaf/0.1/name", "foaf:name"),
)
_RANKS = {name: rank for rank, names in enumerate(_LABELS) for name in names}
_LITERAL = re.compile(r'"(.*)"(?:@([A-Za-z0-9-]+)|\^\^.*)?', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U(000[0-9A-Fa-f]{5}|0010[0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": " ", "r": " ", "t": " ", "b": " ", "f": " "}


def selected(loaded: Loaded, options: ReadOptions) -> Loaded:
    """Return a graph with its labels, and without the triples that the options leave out; the report says which.

    Raises
    ------
    UnknownNameError
        For a relation that the graph does not have.
    InputError
        When nothing is left.
    """
    graph = loaded.graph
    graph.labels, is_label = _labels(graph)
    kept = np.ones(len(graph), dtype=bool)
    reasons: list[str] = []
    for unwanted, what in _unwanted(graph, options, is_label, kept):
        if count := int((kept & unwanted).sum()):
            reasons.append(f"{count:,} {what}")
            kept[unwanted] = False
    if not reasons:
        return loaded
    if not kept.any():
        raise InputError(f"no triples are left: {', '.join(reasons)} are left out", hint="keep more")
    remark = f"left out {len(graph) - int(kept.sum()):,} of {len(graph):,} triples: {', '.join(reasons)}"
    return Loaded(_reduced(graph, kept), replace(loaded.report, notes=(*loaded.report.notes, remark)))


def _unwanted(graph: KnowledgeGraph, options: ReadOptions, is_label: Mask, kept: Mask) -> Iterator[tuple[Mask, str]]:
    """Yield which triples to leave out, one reason after the other; types stay unless they are named."""
    relations = graph.triples[:, 1]
    if options.literals == "drop":
        literals = np.fromiter((name.startswith('"') for name in graph.entities), bool, len(graph.entities))
        yield literals[graph.triples[:, 2]] | is_label, "with literals"
    unwanted = np.full(len(graph.relations), bool(options.relations))
    unwanted[np.arange(len(unwanted)) == graph.type_relation] = False
    for names, value in ((options.relations, False), (options.without_relations, True)):
        unwanted[[resolve_relation(graph, name) for name in names]] = value
    yield unwanted[relations], "of relations that are not asked for"
    sizes = np.bincount(relations[kept], minlength=len(graph.relations))
    small = (sizes > 0) & (sizes < options.min_relation_size) & (np.arange(len(sizes)) != graph.type_relation)
    yield small[relations], f"of {small.sum():,} relations with fewer than {options.min_relation_size:,} triples"


def _reduced(graph: KnowledgeGraph, kept: Mask) -> KnowledgeGraph:
    """Return the graph of some of the triples, without names that only others use."""
    triples = graph.triples[kept]
    entities = Vocabulary.of(graph.entities.names(np.unique(triples[:, [0, 2]])))
    relations = Vocabulary.of(graph.relations.names(np.unique(triples[:, 1])))
    ids = [graph.entities.positions_in(entities), graph.relations.positions_in(relations)]
    predicate = graph.type_predicate if graph.type_predicate in relations else ""
    labels = {name: label for name, label in graph.labels.items() if name in entities or name in relations}
    rows = np.stack([ids[k % 2][triples[:, k]] for k in range(3)], axis=1)
    return KnowledgeGraph(entities, relations, rows, type_predicate=predicate, labels=labels)


def _labels(graph: KnowledgeGraph) -> tuple[Mapping[str, str], Mask]:
    """Return what people call some names, and bool[n]: which triples say so.

    A label without a language or in English comes before others, then the relations count in their order. In files
    that have no literals, a label is a name that is no IRI and nothing else's subject.
    """
    ranks = {r: rank for r, name in enumerate(graph.relations) if (rank := _RANKS.get(name.strip("<>"))) is not None}
    is_label = np.isin(graph.triples[:, 1], list(ranks))
    if not is_label.any():
        return {}, is_label
    has_triples = np.zeros(len(graph.entities), dtype=bool)
    has_triples[graph.triples[:, 0]] = True
    best: dict[int, tuple[bool, int, str, str]] = {}
    for row in np.flatnonzero(is_label).tolist():
        subject, relation, object_ = graph.triples[row].tolist()
        name = graph.entities[object_]
        literal = _LITERAL.fullmatch(name)
        if literal is None and (has_triples[object_] or "://" in name or name.startswith("_:")):
            is_label[row] = False
            continue
        text, language = (literal[1], literal[2] or "") if literal else (name, "")
        if text := _plain(text, escaped=literal is not None):
            foreign = bool(language) and language.lower().split("-")[0] != "en"
            label = (foreign, ranks[relation], language, text)
            best[subject] = min(best.get(subject, label), label)
    return {graph.entities[subject]: label[3] for subject, label in best.items()}, is_label


def _plain(text: str, *, escaped: bool) -> str:
    """Return a text without escapes, control characters and double spaces."""
    if escaped:
        text = _ESCAPE.sub(lambda m: chr(int(m[1] or m[2], 16)) if m[1] or m[2] else _ESCAPED.get(m[3], m[3]), text)
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
