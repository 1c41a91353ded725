"""Which methods for negatives there are: one value for each, in one table.

The recipe, the command line, the audit, cards and reports look methods up here. Methods from elsewhere join the table
through `register_negatives`. Nothing heavy is imported before a method draws, so that the command line can list all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from loginfer.errors import UnknownNameError

if TYPE_CHECKING:
    from loginfer.benchmark.benchmark import NegativeSet, Origins
    from loginfer.benchmark.negatives.context import Context
    from loginfer.kg import Triples
    from loginfer.kg.graph import Mask

# Draws N_train, N_valid and N_test.
DrawNegatives: TypeAlias = "Callable[[Context], NegativeSet]"
# Given the audited benchmark, a split, triples and their origins: which triples are not what their origin
# says, bool[n], and what is wrong with those, such as "are not concluded by the sub-rule that is told".
Condition: TypeAlias = "Callable[[Any, str, Triples, Origins], tuple[Mask, str]]"

# Where a negative came from; `Origins.source` holds indices into this list. Methods that are registered may add to it.
#   relevance  any constants of the support, any head predicate
#   position   a conclusion with a constant in one position replaced
#   sub-rule   a conclusion of a sub-rule
#   object     a positive with a random object; `subject` and `relation` likewise
#   near-miss  a conclusion of a rule with one edit in its body
SOURCES = ["relevance", "position", "sub-rule", "object", "near-miss", "subject", "relation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NegativeMethod:
    """A method for negatives.

    Parameters
    ----------
    name
        What recipes, files and tables call it.
    title
        The same in words.
    phrase
        The title as a noun, for sentences about its negatives.
    description
        What it does, in one sentence.
    draw
        Draws the negatives of all splits; or where the function is, `module:function`, imported at first use.
    sources
        What it may record in `Origins.source`.
    rank
        Where tables list it: the easier its negatives are to tell from positives, the earlier.
    hard
        Whether to tell its negatives from positives says something about what was learned.
    conditions
        For the audit: what triples from a source must satisfy. Sources of built-in methods have theirs already.
    protocols
        The protocols under which it can draw.
    in_memory
        Whether it compares with every triple of train, so that a graph in files is brought into memory.
    matchable
        Whether its negatives can be twins of conclusions.
    size_of
        What a split has as many of as negatives; for conclusions, head by head.
    covers_sub_rules
        Whether every sub-rule of R⁻ should have a witness among its negatives, where that can be.
    """

    name: str
    title: str
    phrase: str = ""
    description: str = ""
    draw: DrawNegatives | str
    sources: tuple[str, ...]
    rank: int = 100
    hard: bool = False
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    protocols: tuple[str, ...] = ("paper", "sound")
    in_memory: bool = False
    matchable: bool = False
    size_of: Literal["positives", "conclusions"] = "positives"
    covers_sub_rules: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """What names of benchmarks call it: `nm`, and where its negatives can be twins `nmm`."""
        return (self.name, f"{self.name}m") if self.matchable else (self.name,)

    def sample(self, context: Context) -> NegativeSet:
        """Return N_train, N_valid and N_test."""
        if isinstance(self.draw, str):
            module, _, function = self.draw.partition(":")
            negatives: NegativeSet = getattr(import_module(module), function)(context)
            return negatives
        return self.draw(context)


# In the order in which the command line names them.
METHODS: dict[str, NegativeMethod] = {}


def register_negatives(method: NegativeMethod) -> NegativeMethod:
    """Make a method known to recipes, the command line, the audit and reports; return it.

    Raises
    ------
    ValueError
        If there is one of that name, or it records a source that has no condition.
    """
    if method.name in METHODS:
        raise ValueError(f"there is a method for negatives called `{method.name}` already")
    for source in method.sources:
        if source not in (*SOURCES, *method.conditions):
            raise ValueError(f"`{method.name}` records `{source}`, but has no condition for it")
    SOURCES.extend(source for source in method.sources if source not in SOURCES)
    METHODS[method.name] = method
    return method


def method_named(name: str) -> NegativeMethod:
    """Return a method.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    if name not in METHODS:
        raise UnknownNameError("method for negatives", name, METHODS)
    return METHODS[name]


def listed_methods(default: str) -> str:
    """Return the names of all methods, for help: `rb, pa (default), qg or rc`."""
    names = [f"{name} (default)" if name == default else name for name in METHODS]
    return f"{', '.join(names[:-1])} or {names[-1]}"


def method_or_unknown(name: str) -> NegativeMethod:
    """Return a method; one with defaults for a name that is not registered, as in a folder from elsewhere."""
    return METHODS.get(name) or NegativeMethod(name=name, title=name, draw="", sources=tuple(SOURCES))


def method_phrases() -> dict[str, str]:
    """Return what names of benchmarks call negatives, and that in words, in the order of tables."""
    phrases: dict[str, str] = {}
    for method in sorted(METHODS.values(), key=lambda method: (method.rank, method.name)):
        phrase = method.phrase or method.title
        phrases |= dict(zip(method.names, (phrase, f"{phrase} that are twins"), strict=False))
    return phrases


def sample_negatives(context: Context, method: str) -> NegativeSet:
    """Return N_train, N_valid and N_test by one method.

    Parameters
    ----------
    context
        K, R, the positives, and what counts as true.
    method
        A name in `METHODS`.
    """
    return method_named(method).sample(context)


_FOLDER = "loginfer.benchmark.negatives"

RELEVANCE = NegativeMethod(
    name="rb",
    title="relevance-based",
    phrase="relevance-based negatives",
    description="Any constants of the rules' support, with the predicate of a head.",
    draw=f"{_FOLDER}.corruption:relevance_based",
    sources=("relevance",),
    rank=1,
)
POSITION = NegativeMethod(
    name="pa",
    title="position-aware",
    phrase="position-aware negatives",
    description="A conclusion with a constant replaced by one that is seen in the same position.",
    draw=f"{_FOLDER}.corruption:position_aware",
    sources=("position",),
    rank=2,
    hard=True,
)
QUERY = NegativeMethod(
    name="qg",
    title="query-guided",
    phrase="query-guided negatives",
    description="Conclusions of sub-rules, so that what is simpler than the rules is not learned.",
    draw=f"{_FOLDER}.query_guided:query_guided",
    sources=("sub-rule", "position"),
    rank=3,
    hard=True,
    covers_sub_rules=True,
)
RANDOM = NegativeMethod(
    name="rc",
    title="random corruption",
    description="Each positive once more, with any other object, or with another subject or relation.",
    draw=f"{_FOLDER}.corruption:random_corruption",
    sources=("object", "subject", "relation"),
    rank=0,
    in_memory=True,
)
NEAR_MISSES = NegativeMethod(
    name="nm",
    title="near misses",
    description="Conclusions of a rule with one part of its body changed.",
    draw=f"{_FOLDER}.near_misses:near_misses",
    sources=("near-miss", "position"),
    rank=4,
    hard=True,
    protocols=("sound",),
    in_memory=True,
    matchable=True,
    size_of="conclusions",
)
for _method in (RELEVANCE, POSITION, QUERY, RANDOM, NEAR_MISSES):
    register_negatives(_method)
