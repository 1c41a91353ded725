"""Which files a benchmark's folder holds, and which file of somebody else's folder is what."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from loginfer.benchmark.values import SPLITS, Split
from loginfer.kg.formats.source import split_compression

__all__ = [
    "CANDIDATES",
    "CARD",
    "CONTEXT",
    "CROISSANT",
    "GIVEN",
    "MANIFEST",
    "NEGATIVES",
    "NOISE",
    "PROVENANCE",
    "RULES",
    "Role",
    "file_of",
    "is_method",
    "is_ours",
    "role_of",
    "roles",
]

RULES = "rules.txt"
PROVENANCE = "provenance.parquet"
NEGATIVES = "negatives.parquet"
NOISE = "noise.parquet"
CONTEXT = "context.txt"
CARD = "README.md"
CROISSANT = "croissant.json"
MANIFEST = "manifest.json"
CANDIDATES = ("candidate_entities.txt", "candidate_relations.txt", "candidate_types.txt")

# What negatives are called whose file does not name a method.
GIVEN = "given"

_SPLIT_WORDS: dict[str, Split] = {
    "train": "train", "training": "train",
    "valid": "valid", "validation": "valid", "val": "valid", "dev": "valid",
    "test": "test", "testing": "test",
}  # fmt: skip
_NEGATIVE_WORDS = ("neg", "negs", "negative", "negatives")
_POSITIVE_WORDS = ("pos", "positive", "positives")
# What file managers leave in any folder that somebody looks at.
_LITTER = (".DS_Store", "Thumbs.db", "desktop.ini")
_ENDINGS = (".txt", ".tsv")
_EXACT = re.compile(r"(train|valid|dev|test)_neg_([A-Za-z0-9][A-Za-z0-9_.-]*)")
_METHOD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Role:
    """What a file of triples holds.

    Parameters
    ----------
    split
        train, valid or test.
    method
        Which negatives; None for positives.
    context
        Whether it is the context graph that goes with this split.
    """

    split: Split
    method: str | None = None
    context: bool = False

    def __str__(self) -> str:
        if self.context:
            return f"the context graph of {self.split}"
        return f"the positives of {self.split}" if self.method is None else f"negatives of {self.split}"


def file_of(role: Role) -> str:
    """Return the name under which we write triples: `train.txt`, `train_neg_pa.txt`."""
    if role.context:
        return CONTEXT
    return f"{role.split}.txt" if role.method is None else f"{role.split}_neg_{role.method}.txt"


def is_method(name: str) -> bool:
    """Whether a method's name can be part of a file's name."""
    return _METHOD.fullmatch(name) is not None


def is_ours(name: str) -> bool:
    """Whether a file of this name is one that we write, or one that nobody misses."""
    tables = (PROVENANCE, NEGATIVES, NOISE)
    if name in (RULES, CONTEXT, *tables, CARD, CROISSANT, MANIFEST, *CANDIDATES, *_LITTER):
        return True
    role = role_of(name)
    return role is not None and file_of(role) == name


def role_of(name: str) -> Role | None:
    """Return what a file of triples holds, judged by its name; None if it is no such file.

    Known are the names of the released LogInfer files (`train.txt`, `train_neg_pa.txt`), of CoDEx
    (`valid_negatives.txt`), of InferWiki (`test_pos.txt`, `test_neg.txt`), and what is like them: `dev.tsv`,
    `neg_train.txt`, `test-negatives.txt.gz`.
    """
    plain = split_compression(name)[0]
    ending = next((e for e in _ENDINGS if plain.lower().endswith(e)), None)
    if ending is None or name.startswith("."):
        return None
    stem = plain[: -len(ending)]
    if exact := _EXACT.fullmatch(stem):
        return Role(_SPLIT_WORDS[exact[1]], exact[2])
    words = [word for word in re.split(r"[_\-. ]+", stem) if word]
    lower = [word.lower() for word in words]
    splits = [word for word in lower if word in _SPLIT_WORDS]
    negative = [word for word in lower if word in _NEGATIVE_WORDS]
    positive = [word for word in lower if word in _POSITIVE_WORDS]
    if len(splits) != 1 or len(negative) + len(positive) > 1:
        return None
    known = {*splits, *negative, *positive}
    rest = [word for word, small in zip(words, lower, strict=True) if small not in known]
    split = _SPLIT_WORDS[splits[0]]
    if negative:
        return Role(split, "_".join(rest) or GIVEN)
    return None if rest else Role(split)


def roles(names: Iterable[str]) -> dict[Role, list[str]]:
    """Return the files of a folder by what they hold; more than one for a role is a mistake of the folder."""
    found: dict[Role, list[str]] = {}
    for name in sorted(names):
        role = role_of(name)
        if role is not None:
            found.setdefault(role, []).append(name)
    return {role: found[role] for role in sorted(found, key=_order)}


def _order(role: Role) -> tuple[bool, str, int]:
    return (role.method is not None, role.method or "", SPLITS.index(role.split))
