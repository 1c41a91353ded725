"""What page makers work from: the collection, benchmarks that are read once, audits, names of pages."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from loginfer.report.collection import Collection

if TYPE_CHECKING:
    from loginfer.benchmark import Benchmark

__all__ = ["Material", "Options", "slug"]

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Options:
    """What a report should have in it.

    Parameters
    ----------
    title
        Its title.
    audits
        Audit the benchmarks for their cards; takes seconds each.
    explorer
        At most so many test triples of a benchmark in the explorer, labelled either way; 0: none.
    recovery
        Compare the rules that miners kept with those of the benchmarks; takes seconds each.
    """

    title: str = "LogInfer report"
    audits: bool = True
    explorer: int = 20_000
    recovery: bool = True


@dataclass
class Material:
    """What page makers work from.

    Parameters
    ----------
    collection
        The runs.
    options
        What is wanted.
    tell
        Told what is being made now.
    """

    collection: Collection
    options: Options = field(default_factory=Options)
    tell: Callable[[str], None] = lambda message: None

    def __post_init__(self) -> None:
        self._audits: dict[str, dict[str, Any] | None] = {}
        self._made: dict[Hashable, Any] = {}
        self._slugs = _slugs([*self.collection.systems, *self.collection.benchmark_names])

    def benchmark(self, name: str) -> Benchmark | None:
        """Return a benchmark by the report's name for it; None if its folder was not given."""
        folder = self.collection.benchmarks.get(name)
        return None if folder is None else self.collection.library.load(folder)

    def audit(self, name: str) -> dict[str, Any] | None:
        """Return the audit of a benchmark, as `loginfer audit --json` prints it; None if there is none."""
        if name not in self._audits:
            folder = self.collection.benchmarks.get(name) if self.options.audits else None
            known = {self.collection.benchmarks.get(other): a for other, a in self._audits.items() if a}
            if folder is None or folder in known:
                self._audits[name] = known.get(folder)
            else:
                from loginfer.benchmark import audit

                self.tell(f"audit of {name}")
                self._audits[name] = audit(folder).as_dict()
        return self._audits[name]

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what was made under this key before; make it if it was not."""
        if key not in self._made:
            self._made[key] = make()
        return cast(Made, self._made[key])

    def system_page(self, system: str) -> str:
        """Return the path of a system's page."""
        return f"systems/{self._slugs[system]}.html"

    def benchmark_page(self, benchmark: str) -> str:
        """Return the path of a benchmark's page."""
        return f"benchmarks/{self._slugs[benchmark]}.html"

    def data_file(self, kind: str, *names: str) -> str:
        """Return the path of a file of data about systems and benchmarks."""
        return f"data/{kind}/{'-on-'.join(self._slugs.get(name) or slug(name) for name in names)}.js"


def slug(name: str) -> str:
    """Return a name as a part of a file's name: small letters, digits and dashes; never empty."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
    return plain or hashlib.sha256(name.encode()).hexdigest()[:12]


def _slugs(names: Iterable[str]) -> dict[str, str]:
    """Name files: like the name where that is unambiguous, else with a part of its sum."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        short = slug(name)
        if short in taken:
            short = f"{short}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        taken.add(short)
        found[name] = short
    return found
