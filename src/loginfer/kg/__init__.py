"""Graphs and formats: the knowledge graph as a value, and the doors it comes in and goes out by."""

from loginfer.kg.graph import RDF_TYPE, TYPE_NAMES, KnowledgeGraph
from loginfer.kg.triples import Triples, sorted_unique
from loginfer.kg.vocabulary import Vocabulary

__all__ = [
    "RDF_TYPE",
    "TYPE_NAMES",
    "KnowledgeGraph",
    "Triples",
    "Vocabulary",
    "sorted_unique",
]
