"""Recipe: declared once with setting().

The settings of a recipe that say which candidates become rules, and in how many steps they conclude.

Checks of the recipe's settings for benchmarks that are noisy or inductive.

The recipe of a benchmark: everything that, with the graph, determines its bytes.

Which settings need the whole graph in memory, also where an engine would leave it in files.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any, Literal, get_args

from loginfer.errors import InputError, UnknownNameError
from loginfer.files import atomic_write, reading

# Which candidates of a pattern become rules.
#   support   those with the largest support
#   random    any, each as likely as the others
#   interval  any whose measure lies in an interval
Select = Literal["support", "random", "interval"]
# What an interval is about (see `measures`).
Measure = Literal["support", "confidence", "overlap"]
# Where the predicate of a head comes from that the body does not determine.
#   drawn  any predicate that the body does not have
#   best   the one with the largest confidence
Head = Literal["drawn", "best"]

SELECTS: tuple[Select, ...] = get_args(Select)
MEASURES: tuple[Measure, ...] = get_args(Measure)
HEADS: tuple[Head, ...] = get_args(Head)

# Depths are stored in 8 bits.
MOST_STEPS = 100


def check_choice(recipe: Recipe) -> None:
    """Complain about settings of the choice of rules that make no sense.

    Raises
    ------
    InputError
        With what to do about it.
    """
    for key, known, what in (
        ("select", SELECTS, "way to select rules"),
        ("select_by", MEASURES, "measure to select rules by"),
        ("head", HEADS, "way to find heads"),
    ):
        value = getattr(recipe, key)
        if value not in known:
            raise UnknownNameError(what, str(value), known)
    if not isinstance(recipe.interval, str | None):
        raise InputError(f"`interval` must be a text, not {recipe.interval!r}", hint='write it like "0.1:0.5"')
    if recipe.rules is not None and (recipe.select != "support" or recipe.head != "drawn"):
        raise InputError("`select` and `head` are for patterns", hint="given rules are all taken as they are")
    if recipe.select == "interval" and recipe.interval is None:
        raise InputError("`select` asks for an interval, but there is none", hint='add interval = "0.1:0.5"')
    if recipe.select != "interval" and (recipe.interval is not None or recipe.select_by != "support"):
        raise InputError(
            '`interval` and `select_by` are for `select = "interval"`',
            hint='set select = "interval", or leave them out',
        )
    if recipe.interval is not None:
        low, high = parse_interval(recipe.interval)
        if recipe.select_by != "support" and (low > 1 or high < 0):
            raise InputError(f"no {recipe.select_by} lies in `{recipe.interval}`", hint="it is between 0 and 1")


def check_depth(recipe: Recipe) -> None:
    """Complain about settings of benchmarks of several steps that make no sense.

    Raises
    ------
    InputError
        With what to do about it.
    """
    for key, least, most in (("depth", 1, MOST_STEPS), ("max_triples", 1, None)):
        value = getattr(recipe, key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise InputError(f"`{key}` must be a whole number, not {value!r}")
        if value < least or (most is not None and value > most):
            bounds = f"at least {least}" if most is None else f"between {least} and {most}"
            raise InputError(f"`{key}` must be {bounds}, but is {value}")
    if recipe.depth > 1 and (recipe.inductive or recipe.flipped or recipe.missing):
        raise InputError(
            "a benchmark of several steps is neither noisy nor inductive", hint="leave out `depth`, or the others"
        )


def parse_interval(text: str) -> tuple[float, float]:
    """Return the two ends of an interval such as `0.1:0.5`; `0.1:` and `:0.5` are open to one side.

    Raises
    ------
    InputError
        For a text that is no interval, or an empty one.
    """
    low, colon, high = (piece.strip() for piece in text.partition(":"))
    hint = "write it like 0.1:0.5, 100:2000 or 0.5:"
    try:
        ends = (float(low) if low else -inf, float(high) if high else inf)
    except ValueError as error:
        raise InputError(f"`{text}` is no interval", hint=hint) from error
    if not colon or not (low or high) or any(end != end for end in ends):
        raise InputError(f"`{text}` is no interval", hint=hint)
    if ends[0] > ends[1]:
        raise InputError(f"nothing lies in the interval `{text}`", hint="exchange its two ends")
    return ends


def share_of(share: float, size: int) -> int:
    """Return how many a share of so many is, rounded down: 0.29 of 100 is 29."""
    return int(Fraction(str(share)) * size)


def check_variants(recipe: Recipe) -> None:
    """Complain about settings of noise and of inductive benchmarks that make no sense."""
    for key, most in (("flipped", 0.5), ("missing", 1), ("inductive_share", 1)):
        value = getattr(recipe, key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise InputError(f"`{key}` must be a number, not {value!r}")
        if not 0 <= value < most:
            hint = "as many wrong labels as right ones say nothing" if key == "flipped" else None
            raise InputError(f"`{key}` must be a share from 0 to below {most}, not {value}", hint=hint)
    if not isinstance(recipe.inductive, bool):
        raise InputError(f"`inductive` must be true or false, not {recipe.inductive!r}")
    if recipe.inductive and recipe.inductive_share == 0:
        raise InputError("`inductive_share` is 0: no constants are left for test")
    if not recipe.inductive and recipe.inductive_share != 0.2:
        raise InputError("`inductive_share` is for inductive benchmarks", hint="set inductive = true")
    if not (recipe.flipped or recipe.missing):
        return
    if len(recipe.negatives) > 1:
        raise InputError(
            f"a benchmark with noise has the negatives of one method, not of {', '.join(recipe.negatives)}",
            hint="labels are exchanged between P_train and N_train: build one benchmark a method",
        )
    if recipe.inductive:
        raise InputError(
            "a benchmark is either noisy or inductive, not both", hint="leave out `inductive`, or the noise"
        )


Method = Literal["rb", "pa", "qg", "rc", "nm"]
Protocol = Literal["paper", "sound"]
Match = Literal["popularity", "adjacency", "simpbl"]

METHODS: tuple[Method, ...] = get_args(Method)
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
MATCHES: tuple[Match, ...] = get_args(Match)

# Settings that came later are written down only where they differ from their default, so that the bytes of
# benchmarks which do not use them stay what they were.
_LATER = (
    "match", "flipped", "missing", "inductive", "inductive_share",
    "select", "select_by", "interval", "head", "depth", "max_triples",
)  # fmt: skip

# From this sum on, whole numbers are taken for percentages.
_PERCENTAGES = 50


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a benchmark is made.

    Parameters
    ----------
    kg
        The graph: a name from the catalogue, or a path.
    patterns
        Names or texts of inference patterns; each contributes `k1` rules.
    rules
        Instead of patterns: a rule file, the name of a shipped rule set, or rules as texts.
    k1
        Rules per pattern: those with the largest support.
    k2
        Conclusions sampled per rule, at most.
    allow_fewer
        Where a pattern has fewer than `k1` candidates, take them all instead of stopping.
    min_support, max_support
        Only bodies with a support in this interval are candidates.
    select, select_by, interval
        Which candidates become rules instead of those with the largest support: `random` ones, or those of
        an `interval` such as `0.1:0.5` of `support`, `confidence` or `overlap`.
    head
        The head's predicate, where the body does not determine it: `drawn`, or the `best` by confidence.
    depth
        Conclusions follow in up to so many steps.
    max_triples
        With a `depth` of more than one: give up when more triples follow than this.
    ratio
        Of train, valid and test, such as `8:1:1`.
    negatives
        Methods: `rb` relevance-based, `pa` position-aware, `qg` query-guided, `rc` random object corruption,
        `nm` near misses.
    match
        Of `nm`: shortcuts on which negatives must not differ from positives: `popularity`,
        `adjacency` and `simpbl`.
    protocol
        `paper` follows the text to the letter; `sound` also guarantees what it promises.
    min_new
        Under `sound`: rules with fewer new conclusions are passed over.
    materialised
        Under `sound`: exclude from the negatives everything that follows in any number of steps, not one.
    seed
        Of all randomness.
    type_predicate
        The relation that gives types; recognised by default, empty for none.
    name
        What to call the benchmark; by default after the graph, the patterns and the methods.
    flipped
        The share of train's conclusions that are moved to N_train, in exchange for as many negatives.
    missing
        The share of the premises in recorded witnesses that is removed from P_train.
    inductive
        Give test constants of its own, with a context graph, instead of those of train.
    inductive_share
        If inductive: the share of constants for test.
    """

    kg: str
    patterns: tuple[str, ...] = ()
    rules: str | tuple[str, ...] | None = None
    k1: int = 20
    k2: int = 2000
    allow_fewer: bool = False
    min_support: int | None = None
    max_support: int | None = None
    select: Select = "support"
    select_by: Measure = "support"
    interval: str | None = None
    head: Head = "drawn"
    depth: int = 1
    max_triples: int = 20_000_000
    ratio: str = "8:1:1"
    negatives: tuple[Method, ...] = ("pa",)
    match: tuple[Match, ...] = ()
    protocol: Protocol = "sound"
    min_new: int = 10
    materialised: bool = False
    seed: int = 0
    type_predicate: str | None = None
    name: str | None = None
    flipped: float = 0
    missing: float = 0
    inductive: bool = False
    inductive_share: float = 0.2

    def __post_init__(self) -> None:
        _check(self)

    @property
    def shares(self) -> tuple[Fraction, Fraction, Fraction]:
        """The shares of train, valid and test; they add up to one."""
        return parse_ratio(self.ratio)

    def cuts(self, size: int) -> tuple[int, int]:
        """Return where a list of this size is cut: ⌊0.8 n⌋ and ⌊0.9 n⌋ for 8:1:1."""
        train, valid, _ = self.shares
        return int(train * size), int((train + valid) * size)

    def changed(self, **changes: Any) -> Recipe:
        """Return a recipe with some settings changed."""
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, without those that are not set."""
        values = {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}
        plain = {field.name: field.default for field in fields(self) if field.name in _LATER}
        return {
            key: v
            for key, v in values.items()
            if v is not None and v != [] and not (key in plain and getattr(self, key) == plain[key])
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, where: str | None = None) -> Recipe:
        """Make a recipe of plain values, such as those of a TOML file.

        Raises
        ------
        UnknownNameError
            For a setting that does not exist, with the nearest ones.
        InputError
            For a value that makes no sense.
        """
        refuse_unknown(values, where=where)
        if "kg" not in values:
            raise InputError("the recipe names no graph", where=where, hint='add kg = "…"')
        settings: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        try:
            return cls(**settings)
        except InputError as error:
            error.where = error.where or where
            raise


def refuse_unknown(values: Mapping[str, Any], *, where: str | None = None) -> None:
    """Raise `UnknownNameError` for a setting that does not exist, with the nearest ones."""
    known = [field.name for field in fields(Recipe)]
    for key in values:
        if key not in known:
            raise UnknownNameError("setting", key, known, where=where)


def _check(recipe: Recipe) -> None:
    kinds: dict[str, tuple[type, ...]] = {
        "kg": (str,), "ratio": (str,), "protocol": (str,), "materialised": (bool,), "allow_fewer": (bool,),
        "k1": (int,), "k2": (int,), "min_new": (int,), "seed": (int,),
        "patterns": (tuple,), "negatives": (tuple,), "match": (tuple,),
    }  # fmt: skip
    for key, kind in kinds.items():
        value = getattr(recipe, key)
        if not isinstance(value, kind) or (isinstance(value, bool) and bool not in kind):
            wanted = {str: "a text", bool: "true or false", int: "a whole number", tuple: "a list of texts"}
            raise InputError(f"`{key}` must be {wanted[kind[0]]}, not {value!r}")
    if not isinstance(recipe.rules, str | tuple | None):
        raise InputError(f"`rules` must be a text or a list of texts, not {recipe.rules!r}")
    for key in ("type_predicate", "name"):
        if not isinstance(value := getattr(recipe, key), str | None):
            raise InputError(f"`{key}` must be a text, not {value!r}")
    lists = [*recipe.patterns, *(recipe.rules if isinstance(recipe.rules, tuple) else ())]
    for text in lists:
        if not isinstance(text, str):
            raise InputError(f"patterns and rules must be texts, not {text!r}")
    if recipe.name is not None and not (recipe.name.strip() and recipe.name.isprintable()):
        raise InputError(f"{recipe.name!r} is no name", hint="`name` is one line of text")
    if bool(recipe.patterns) == (recipe.rules is not None):
        problem = "both patterns and rules" if recipe.patterns else "neither patterns nor rules"
        raise InputError(f"the recipe has {problem}", hint="give one or the other")
    if recipe.rules == ():
        raise InputError("the recipe's list of rules is empty")
    if isinstance(recipe.rules, str) and not recipe.rules.strip():
        raise InputError("`rules` is empty", hint="give a rule file, a rule set or a rule")
    for key, least in (("k1", 1), ("k2", 1), ("min_new", 0), ("seed", 0)):
        if getattr(recipe, key) < least:
            raise InputError(f"`{key}` must be at least {least}, but is {getattr(recipe, key)}")
    for key in ("min_support", "max_support"):
        value = getattr(recipe, key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise InputError(f"`{key}` must be a whole number of at least 1, but is {value!r}")
    if recipe.min_support and recipe.max_support and recipe.min_support > recipe.max_support:
        raise InputError(
            f"no support lies between {recipe.min_support:,} and {recipe.max_support:,}",
            hint="exchange min_support and max_support",
        )
    if recipe.protocol not in PROTOCOLS:
        raise UnknownNameError("protocol", str(recipe.protocol), PROTOCOLS)
    if not recipe.negatives:
        raise InputError("the recipe asks for no negatives", hint=f"choose from {', '.join(METHODS)}")
    for method in recipe.negatives:
        if method not in METHODS:
            raise UnknownNameError("method for negatives", str(method), METHODS)
    if len(set(recipe.negatives)) < len(recipe.negatives):
        raise InputError(f"a method for negatives is given twice: {', '.join(recipe.negatives)}")
    for match in recipe.match:
        if match not in MATCHES:
            raise UnknownNameError("shortcut to match", str(match), MATCHES)
    if len(set(recipe.match)) < len(recipe.match):
        raise InputError(f"a shortcut to match is given twice: {', '.join(recipe.match)}")
    if recipe.match and "nm" not in recipe.negatives:
        raise InputError("`match` is for near misses", hint="add the method `nm`")
    if "nm" in recipe.negatives and recipe.protocol != "sound":
        raise InputError("near misses are for the protocol `sound`", hint='set protocol = "sound"')
    if recipe.materialised and recipe.protocol != "sound":
        raise InputError("`materialised` is for the protocol `sound`", hint='set protocol = "sound"')
    check_choice(recipe)
    check_depth(recipe)
    parse_ratio(recipe.ratio)
    check_variants(recipe)


def parse_ratio(text: str) -> tuple[Fraction, Fraction, Fraction]:
    """Return the shares of train, valid and test: `8:1:1` and `0.8:0.1:0.1` are the same.

    Raises
    ------
    InputError
        When there are not three positive parts, or fractions or percentages do not add up.
    """
    pieces = [piece.strip() for piece in text.replace(",", ":").split(":")]
    try:
        parts = [Fraction(piece) for piece in pieces]
    except (ValueError, ZeroDivisionError) as error:
        raise InputError(f"`{text}` is no ratio", hint="write it like 8:1:1") from error
    if len(parts) != 3 or min(parts) <= 0:
        raise InputError(f"the ratio `{text}` must have three positive parts", hint="train, valid and test, like 8:1:1")
    total = sum(parts, Fraction(0))
    whole = all(part.denominator == 1 for part in parts)
    if not whole and total != 1:
        raise InputError(f"the parts of the ratio `{text}` add up to {float(total):g}, not 1")
    if whole and total >= _PERCENTAGES and total != 100:
        raise InputError(f"the parts of the ratio `{text}` add up to {total}, not 100")
    return parts[0] / total, parts[1] / total, parts[2] / total


def read_recipe(path: str | Path) -> Recipe:
    """Read a recipe from a TOML file."""
    return Recipe.from_dict(read_settings(path), where=str(path))


def read_settings(path: str | Path) -> dict[str, Any]:
    """Read the settings of a TOML file, which need not be complete."""
    file = Path(path)
    with reading(file):
        data = file.read_bytes()
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not a TOML file: {error}", where=str(file)) from error


def write_recipe(recipe: Recipe, path: str | Path, *, force: bool = False) -> None:
    """Write a recipe to a TOML file."""
    import tomli_w

    with atomic_write(path, force=force) as stream:
        stream.write(tomli_w.dumps(recipe.as_dict()))


# Methods that compare with every triple of train.
_METHODS = ("rc", "nm")


def settings_in_memory(recipe: Recipe) -> list[str]:
    """Return the settings of a recipe that bring the whole graph into memory, as the command line has them.

    All others leave a graph that is in a database there.
    """
    found = [f"negatives {method}" for method in recipe.negatives if method in _METHODS]
    found += [name for name in ("flipped", "missing", "inductive") if getattr(recipe, name)]
    # The overlap of rules, and the best heads, are measured on all triples.
    found += [f"select {recipe.select}"] if recipe.select != "support" else []
    found += [f"head {recipe.head}"] if recipe.head != "drawn" else []
    return [f"--{name}" for name in found]
