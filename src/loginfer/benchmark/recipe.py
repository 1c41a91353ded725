"""The recipe of a benchmark: everything that, with the graph, determines its bytes.

Each setting is declared once, as a field of `Recipe`: its type, default and meaning, its bounds, and how the
command line asks for it. The options of `loginfer build`, the keys of a recipe's TOML file, the checks and the
documentation all come from there.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from fractions import Fraction
from functools import cache
from math import inf
from pathlib import Path
from typing import Any, Literal, get_args

from loginfer.benchmark.negatives.methods import METHODS, NEAR_MISSES, POSITION, RANDOM, listed_methods
from loginfer.documents import misfit
from loginfer.errors import InputError, UnknownNameError
from loginfer.files import reading, write_text
from loginfer.kg import ReadOptions
from loginfer.settings import Setting, document_settings, kinds, setting, settings_of, words

# Which candidates of a pattern become rules.
#   support   those with the largest support
#   random    any, each as likely as the others
#   interval  any whose measure lies in an interval
#   twins     of those with the largest support, those with the most twins
Select = Literal["support", "random", "interval", "twins"]
# What an interval is about (see `construction.rules`).
Measure = Literal["support", "confidence", "overlap"]
# Where the predicate of a head comes from that the body does not determine.
#   drawn  any predicate that the body does not have
#   best   the one with the largest confidence
#   typed  any whose subjects and objects look like the ends of the body
Head = Literal["drawn", "best", "typed"]
Protocol = Literal["paper", "sound"]
# On which features of a pair twins are alike: groups of `shortcut_features`, or all of them.
Match = Literal["all", "popularity", "head", "adjacency", "neighbours", "profile", "distance", "types"]
# Which part of a positive random corruption replaces.
Part = Literal["subject", "relation", "object"]

PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
PARTS: tuple[Part, ...] = get_args(Part)
MATCHES: tuple[Match, ...] = get_args(Match)


def listed_matches() -> str:
    """Return what twins can be matched on, beside all features, for help."""
    return f"{', '.join(MATCHES[1:-1])} or {MATCHES[-1]}"


# Parts of the help of `loginfer build`.
_RULES, _NEGATIVES, _VARIANTS, _READING = "What", "Negatives", "Variants", "Reading the graph"

_PATTERN_FLAGS = ("--pattern", "--patterns", "-p")

# Settings that came later are written down only where they differ from their default, so that the bytes of
# benchmarks which do not use them stay what they were.
_LATER = {"later": True}
# How much a file may unpack to is for whoever reads it to say, not for a recipe that came with it.
_READ_OPTIONS = {option.name: option for option in fields(ReadOptions) if option.name != "max_unpacked"}

# Depths are stored in 8 bits.
MOST_STEPS = 100

# From this sum on, whole numbers are taken for percentages.
_PERCENTAGES = 50
# `1e9999` would be a number of so many digits.
_POWER = re.compile(r"[eE]|\d{20}")


def parse_depth(text: str) -> int:
    """Return the depth that an option such as `3` or `1..3` asks for.

    Raises
    ------
    InputError
        For a text that is no depth, or depths that do not begin with 1.
    """
    first, dots, last = text.partition("..")
    hint = "write --depth 3 or --depth 1..3"
    try:
        least, most = (1, int(first)) if not dots else (int(first), int(last))
    except ValueError as error:
        raise InputError(f"`{text}` is no depth", where="--depth", hint=hint) from error
    if least != 1:
        raise InputError(f"the depths `{text}` do not begin with 1", where="--depth", hint=hint)
    return most


def _reading(name: str) -> Any:
    """Declare a setting that is an option for reading the graph."""
    option = _READ_OPTIONS[name]
    return field(default=option.default, metadata={**option.metadata, "panel": _READING, **_LATER})


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a benchmark is made; the settings are those of `loginfer build` and of a recipe's TOML file."""

    kg: str = setting(
        MISSING, "A graph: a name from `loginfer kg list`, or a file, folder or archive of triples.", metavar="KG"
    )
    patterns: tuple[str, ...] = setting(
        (), "A named pattern or its text; give several for a mixture.", flags=_PATTERN_FLAGS, panel=_RULES
    )
    rules: str | tuple[str, ...] | None = setting(
        None, "Instead of patterns: a rule file, lubm-107 or lubm-19, a rule.", flags=("--rules", "-r"), panel=_RULES
    )
    k1: int = setting(20, "Rules per pattern; {default} by default.", least=1, panel=_RULES)
    k2: int = setting(2000, "Conclusions per rule at most; {default} by default.", least=1, panel=_RULES)
    allow_fewer: bool = setting(False, "Be content with fewer than k1 rules.", panel=_RULES)
    min_support: int | None = setting(None, "Only bodies with at least this support.", least=1, panel=_RULES)
    max_support: int | None = setting(None, "Only bodies with at most this support.", least=1, panel=_RULES)
    select: Select = setting(
        "support",
        "Which rules of a pattern: support (default), those with the largest; random; interval; twins.",
        noun="way to select rules", panel=_RULES, **_LATER,
    )  # fmt: skip
    select_by: Measure = setting(
        "support",
        "What the interval is about: support (default), confidence or overlap.",
        noun="measure to select rules by", panel=_RULES, **_LATER,
    )  # fmt: skip
    interval: str | None = setting(
        None,
        "For --select interval, such as 0.1:0.5 or 100:.",
        hint='write it like "0.1:0.5"', metavar="LOW:HIGH", panel=_RULES, **_LATER,
    )  # fmt: skip
    head: Head = setting(
        "drawn",
        "Heads that the body leaves open: drawn (default); best, with the largest confidence; typed, with "
        "subjects and objects like the body's ends.",
        noun="way to find heads", panel=_RULES, **_LATER,
    )  # fmt: skip
    depth: int = setting(
        1,
        "Conclusions follow in up to N steps (or 1..N); {default} by default.",
        least=1, most=MOST_STEPS, metavar="N", read=parse_depth, panel=_RULES, **_LATER,
    )  # fmt: skip
    max_triples: int = setting(
        20_000_000,
        "With --depth: give up when more triples follow; {default} by default.",
        least=1, panel=_RULES, **_LATER,
    )  # fmt: skip
    ratio: str = setting("8:1:1", "Train : valid : test; {default} by default. 2:0:1 has no valid.", panel=_RULES)
    negatives: tuple[str, ...] = setting(
        (POSITION.name,),
        f"{listed_methods(default=POSITION.name)}; give several for several sets.",
        names=lambda: METHODS, noun="method for negatives", flags=("--negatives", "-n"), panel=_NEGATIVES,
    )  # fmt: skip
    match: tuple[Match, ...] = setting(
        (),
        f"{NEAR_MISSES.name}: give each conclusion a twin that looks like it: all, or {listed_matches()}.",
        noun="shortcut to match", read=words, panel=_NEGATIVES, **_LATER,
    )  # fmt: skip
    corrupt: tuple[Part, ...] = setting(
        ("object",),
        f"{RANDOM.name}: replace the subject, relation or object (default); one of them each, where several are given.",
        noun="part to corrupt", read=words, panel=_NEGATIVES, **_LATER,
    )  # fmt: skip
    protocol: Protocol = setting(
        "sound",
        "sound (default): no negative follows from the rules. paper: as in the text.",
        noun="protocol", panel=_NEGATIVES,
    )  # fmt: skip
    min_new: int = setting(
        10, "sound: pass over rules with fewer new conclusions; {default} by default.", least=0, panel=_RULES
    )
    materialised: bool = setting(False, "sound: no negative follows in any number of steps.", panel=_NEGATIVES)
    seed: int = setting(0, "Seed of all randomness; {default} by default.", least=0)
    type_predicate: str | None = _reading("type_predicate")
    name: str | None = setting(None, "What to call it; by default after graph and patterns.")
    flipped: float = setting(
        0,
        "Noise: share of train's conclusions that change places with negatives.",
        least=0, most=0.5, hint="as many wrong labels as right ones say nothing", panel=_VARIANTS, **_LATER,
    )  # fmt: skip
    missing: float = setting(
        0, "Noise: share of premises that are removed from train.", least=0, most=1, panel=_VARIANTS, **_LATER
    )
    inductive: bool = setting(
        False, "Test has constants of its own, and a context graph that tells of them.", panel=_VARIANTS, **_LATER
    )
    inductive_share: float = setting(
        0.2,
        "Inductive: share of constants for test; {default} by default.",
        least=0, most=1, panel=_VARIANTS, **_LATER,
    )  # fmt: skip
    format: str | None = _reading("format")
    columns: str | None = _reading("columns")
    delimiter: str | None = _reading("delimiter")
    on_error: Literal["fail", "skip"] = _reading("on_error")
    literals: Literal["keep", "drop"] = _reading("literals")
    relations: tuple[str, ...] = _reading("relations")
    without_relations: tuple[str, ...] = _reading("without_relations")
    min_relation_size: int = _reading("min_relation_size")

    def __post_init__(self) -> None:
        for name, declared in recipe_settings().items():
            _check_value(declared, getattr(self, name))
        _ = self.reading
        for wrong, message, hint in _contradictions(self):
            if wrong:
                raise InputError(message, hint=hint)

    @property
    def reading(self) -> ReadOptions:
        """How the graph is read."""
        return ReadOptions(**{name: getattr(self, name) for name in _READ_OPTIONS})

    @property
    def may_have_fewer(self) -> bool:
        """Whether fewer than k1 rules are no error: nobody knows how many rules one's own graph has."""
        from loginfer.kg.catalogue import is_named

        return self.allow_fewer or not is_named(self.kg)

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
        plain = {field.name: field.default for field in fields(self) if field.metadata.get("later")}
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
        for name, declared in recipe_settings().items():  # a list of one may be given as a text
            if isinstance(declared.default, tuple) and isinstance(settings.get(name), str):
                settings[name] = (settings[name],)
        try:
            return cls(**settings)
        except InputError as error:
            error.where = error.where or where
            raise


def refuse_unknown(values: Mapping[str, Any], *, where: str | None = None) -> None:
    """Raise `UnknownNameError` for a setting that does not exist, with the nearest ones."""
    settings = recipe_settings()
    for key in values:
        if key not in settings:
            raise UnknownNameError("setting", key, settings, where=where)


@cache
def recipe_settings() -> dict[str, Setting]:
    """Return the settings of a recipe by name, in the order in which they are written down."""
    return settings_of(Recipe)


document_settings(Recipe)


def _check_value(declared: Setting, value: Any) -> None:
    """Refuse a value that has the wrong type, is out of bounds, or is none of the choices."""
    name, least, most, several = declared.name, declared.least, declared.most, isinstance(declared.default, tuple)
    if several or not declared.choices:
        problem = misfit(value, tuple[str, ...] if several else declared.type, name)
        if problem is not None:
            raise InputError(problem, hint=declared.hint if least is None else None)
    if declared.choices:
        for choice in value if several else (value,):
            _check_choice(declared, choice)
        if several and len(set(value)) < len(value):
            raise InputError(f"a {declared.noun} is given twice: {', '.join(value)}")
    elif least is None or value is None:
        return
    elif most is not None and float in kinds(declared.type):
        if not least <= value < most:
            raise InputError(f"`{name}` must be a share from {least} to below {most}, not {value}", hint=declared.hint)
    elif value < least or (most is not None and value > most):
        bounds = f"at least {least}" if most is None else f"between {least} and {most}"
        raise InputError(f"`{name}` must be {bounds}, but is {value}")


def _check_choice(declared: Setting, value: Any) -> None:
    if value not in declared.choices:
        raise UnknownNameError(declared.noun or f"value of `{declared.name}`", str(value), declared.choices)


def _contradictions(recipe: Recipe) -> Iterator[tuple[bool, str, str | None]]:
    """Yield conflicts between settings: whether there is one, what is wrong then, and what to do about it."""
    both = "both patterns and rules" if recipe.patterns else "neither patterns nor rules"
    named = recipe.name is None or (recipe.name.strip() and recipe.name.isprintable())
    yield not named, f"{recipe.name!r} is no name", "`name` is one line of text"
    yield bool(recipe.patterns) == (recipe.rules is not None), f"the recipe has {both}", "give `patterns` or `rules`"
    yield recipe.rules == (), "the recipe's list of rules is empty", None
    blank = isinstance(recipe.rules, str) and not recipe.rules.strip()
    yield blank, "`rules` is empty", "give a rule file, a rule set or a rule"
    low, high = recipe.min_support or 0, recipe.max_support or inf
    yield low > high, f"no support lies between {low:,} and {high:,}", "exchange min_support and max_support"
    methods = ", ".join(recipe.negatives)
    yield not recipe.negatives, "the recipe asks for no negatives", f"choose from {', '.join(METHODS)}"
    unmatched = bool(recipe.match) and not any(METHODS[name].matchable for name in recipe.negatives)
    yield unmatched, f"`match` is for {NEAR_MISSES.title}", f"add the method `{NEAR_MISSES.name}`"
    yield not recipe.corrupt, "`corrupt` names no part", f"choose from {', '.join(PARTS)}"
    lone = recipe.corrupt != ("object",) and RANDOM.name not in recipe.negatives
    yield lone, f"`corrupt` is for {RANDOM.title}", f"add the method `{RANDOM.name}`"
    by_twins = recipe.select == "twins" and not recipe.match
    yield by_twins, '`select = "twins"` is for twins, but none are asked for', 'set match = "all"'
    for method in (METHODS[name] for name in recipe.negatives):
        only, unable = method.protocols[0], recipe.protocol not in method.protocols
        yield unable, f"{method.title} are for the protocol `{only}`", f'set protocol = "{only}"'
    unsound, sound = recipe.protocol != "sound", 'set protocol = "sound"'
    yield recipe.materialised and unsound, "`materialised` is for the protocol `sound`", sound
    yield (
        recipe.rules is not None and (recipe.select != "support" or recipe.head != "drawn"),
        "`select` and `head` are for patterns", "given rules are all taken as they are",
    )  # fmt: skip
    by_interval = recipe.select == "interval"
    yield (
        by_interval and recipe.interval is None,
        "`select` asks for an interval, but there is none", 'add interval = "0.1:0.5"',
    )  # fmt: skip
    yield (
        not by_interval and (recipe.interval is not None or recipe.select_by != "support"),
        '`interval` and `select_by` are for `select = "interval"`', 'set select = "interval", or leave them out',
    )  # fmt: skip
    if recipe.interval is not None:
        first, last = parse_interval(recipe.interval)
        outside = recipe.select_by != "support" and (first > 1 or last < 0)
        yield outside, f"no {recipe.select_by} lies in `{recipe.interval}`", "it is between 0 and 1"
    noisy = bool(recipe.flipped or recipe.missing)
    yield (
        recipe.depth > 1 and (recipe.inductive or noisy),
        "a benchmark of several steps is neither noisy nor inductive", "leave out `depth`, or the others",
    )  # fmt: skip
    parse_ratio(recipe.ratio)
    none = recipe.inductive and recipe.inductive_share == 0
    yield none, "`inductive_share` is 0: no constants are left for test", None
    lone = not recipe.inductive and recipe.inductive_share != 0.2
    yield lone, "`inductive_share` is for inductive benchmarks", "set inductive = true"
    yield (
        noisy and len(recipe.negatives) > 1,
        f"a benchmark with noise has the negatives of one method, not of {methods}",
        "labels are exchanged between P_train and N_train: build one benchmark a method",
    )
    yield (
        noisy and recipe.inductive,
        "a benchmark is either noisy or inductive, not both", "leave out `inductive`, or the noise",
    )  # fmt: skip


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


def parse_ratio(text: str) -> tuple[Fraction, Fraction, Fraction]:
    """Return the shares of train, valid and test: `8:1:1` and `0.8:0.1:0.1` are the same, `2:0:1` has no valid.

    Raises
    ------
    InputError
        When there are not three parts, those of train and test above 0, or fractions or percentages do not add up.
    """
    pieces = [piece.strip() for piece in text.replace(",", ":").split(":")]
    try:
        if _POWER.search(text):
            raise ValueError
        parts = [Fraction(piece) for piece in pieces]
    except (ValueError, ZeroDivisionError) as error:
        raise InputError(f"`{text}` is no ratio", hint="write it like 8:1:1") from error
    if len(parts) != 3 or min(parts) < 0 or not parts[0] or not parts[2]:
        hint = "train, valid and test, like 8:1:1; without valid like 2:0:1"
        raise InputError(f"the ratio `{text}` must have three parts, those of train and test above 0", hint=hint)
    total = sum(parts, Fraction(0))
    integers = all(part.denominator == 1 for part in parts)
    if not integers and total != 1:
        raise InputError(f"the parts of the ratio `{text}` add up to {float(total):g}, not 1")
    if integers and total >= _PERCENTAGES and total != 100:
        raise InputError(f"the parts of the ratio `{text}` add up to {total}, not 100")
    return parts[0] / total, parts[1] / total, parts[2] / total


def read_recipe(path: str | Path | Recipe) -> Recipe:
    """Read a recipe from a TOML file; a recipe is returned as it is."""
    return path if isinstance(path, Recipe) else Recipe.from_dict(read_settings(path), where=str(path))


def all_settings(source: Recipe | str | Path | None, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a recipe or of its file, with others put over them: rules also replace patterns."""
    values = source.as_dict() if isinstance(source, Recipe) else read_settings(source) if source else {}
    refuse_unknown(values, where=str(source))
    for name, rival in (("patterns", "rules"), ("rules", "patterns")):
        if name in overrides and rival not in overrides:
            values.pop(rival, None)
    return {**values, **overrides}


def recipe_of(source: Recipe | str | Path, settings: Mapping[str, Any]) -> Recipe:
    """Return the recipe that a script means: a recipe or its TOML file, or a graph's name; with these settings."""
    if isinstance(source, Recipe) or Path(source).suffix.casefold() == ".toml":
        where = None if isinstance(source, Recipe) else str(source)
        return Recipe.from_dict(all_settings(source, settings), where=where)
    return Recipe.from_dict({"kg": str(source), **settings})


def read_settings(path: str | Path) -> dict[str, Any]:
    """Read the settings of a TOML file, which need not be complete."""
    file = Path(path)
    with reading(file):
        data = file.read_bytes()
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, no UTF-8, numbers of thousands of digits
        raise InputError(f"not a TOML file: {error}", where=str(file)) from error


def write_recipe(recipe: Recipe, path: str | Path, *, force: bool = False) -> None:
    """Write a recipe to a TOML file."""
    import tomli_w

    write_text(path, tomli_w.dumps(recipe.as_dict()), force=force)


def settings_in_memory(recipe: Recipe) -> list[str]:
    """Return the settings of a recipe that bring the whole graph into memory, as the command line has them.

    All others leave a graph that is in a database there.
    """
    options = [f"negatives {method}" for method in recipe.negatives if METHODS[method].in_memory]
    options += [name for name in ("flipped", "missing", "inductive") if getattr(recipe, name)]
    # The overlap of rules, and the best heads, are measured on all triples.
    options += [f"select {recipe.select}"] if recipe.select != "support" else []
    options += [f"head {recipe.head}"] if recipe.head != "drawn" else []
    return [f"--{name}" for name in options]
