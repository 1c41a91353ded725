"""A system that takes part: made ready with its settings; mistakes in somebody else's code are explained."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loginfer.benchmark.manifest import file_sum
from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError, LogInferError
from loginfer.systems.interface import (
    Arrays,
    CandidateScorer,
    Position,
    Scorer,
    StoredScorer,
    System,
    Watch,
    WatchedSystem,
)
from loginfer.systems.registry import Entry, find_system
from loginfer.systems.settings import configure, settings_of
from loginfer.systems.tuning import tuned_settings
from loginfer.systems.view import only_negatives, training_view

__all__ = ["Contender", "contender", "contender_of"]


@dataclass(frozen=True)
class Contender:
    """A system with its settings.

    Parameters
    ----------
    name
        What it is called.
    system
        The system, ready to be fitted.
    settings
        All its settings, those with default values too.
    tuned
        Names of the settings that were tuned for the benchmark's graph.
    given
        Names of the settings that the user gave.
    seed
        The seed of all that is random in it.
    """

    name: str
    system: Any
    settings: Mapping[str, Any] = field(default_factory=dict)
    tuned: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    seed: int = 0

    @property
    def code(self) -> str | None:
        """The sha256 of the file that somebody else's system stands in; None for ours, or without a file."""
        module = sys.modules.get(type(self.system).__module__)
        home = None if self.system is None or self._is_ours else getattr(module, "__file__", None)
        if home is None or type(self.system).__module__ == "__main__" or not Path(home).is_file():
            return None  # a script does more than to define a system, and may change for other reasons
        return file_sum(Path(home))

    @property
    def resumable(self) -> bool:
        """Whether its learning can be watched, resumed and written down."""
        if not isinstance(self.system, WatchedSystem):
            return False
        return self._is_ours or "watch" in inspect.signature(self.system.fit).parameters

    def fit(self, benchmark: Benchmark, method: str | None, watch: Watch) -> Scorer:
        """Fit the system to what it may see of a benchmark."""
        seen = self._view(benchmark, method)
        with self._blamed("fit"):
            made: Any = self.system.fit(seen, watch) if self.resumable else self.system.fit(seen)
        return self._checked(made)

    def restore(self, benchmark: Benchmark, method: str | None, arrays: Arrays) -> Scorer:
        """Return the scorer that a fitted one's weights describe."""
        with self._blamed("restore"):
            made: Any = self.system.restore(self._view(benchmark, method), arrays)
        return self._checked(made)

    def arrays(self, scorer: Scorer) -> Arrays | None:
        """Return the weights of a scorer that can be written down and given back."""
        if not self.resumable or not isinstance(scorer, StoredScorer):
            return None
        with self._blamed("arrays"):
            return scorer.arrays()

    def _view(self, benchmark: Benchmark, method: str | None) -> Benchmark:
        if getattr(self.system, "sees_everything", False):
            return dataclasses.replace(benchmark, negatives=only_negatives(benchmark, method))
        return training_view(benchmark, method)

    def _checked(self, made: Any) -> Scorer:
        if not callable(getattr(made, "score", None)):
            raise InputError(
                f"`{self.name}` gave {type(made).__name__}, which is no scorer: it has no method `score`",
                hint="`fit` must return an object with `score(triples)`",
            )
        return made if self._is_ours else _blamed_scorer(self, made)

    @property
    def _is_ours(self) -> bool:
        return type(self.system).__module__.startswith("loginfer.")

    @contextlib.contextmanager
    def _blamed(self, what: str) -> Iterator[None]:
        """Turn an error in somebody else's code into one clear message that says where it is."""
        try:
            yield
        except (LogInferError, MemoryError):
            raise
        except Exception as error:
            if self._is_ours:
                raise
            raise _failure(f"`{self.name}` failed in `{what}`", error, type(self.system)) from error


def contender(
    name: str | Entry,
    benchmark: Benchmark,
    given: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    tuned: bool = True,
) -> Contender:
    """Make a system ready for a benchmark.

    Settings come from the user, then from what was tuned for the benchmark's graph, then from defaults.

    Parameters
    ----------
    name
        A system's name, in any case, or `module:Class`.
    benchmark
        The benchmark.
    given
        Settings by name; texts are read as what they should be.
    seed
        For systems that have a setting `seed`.
    tuned
        Whether tuned settings may be used.
    """
    entry = find_system(name) if isinstance(name, str) else name
    kind = entry.load()
    known = settings_of(kind)
    chosen = dict(given or {})
    better = tuned_settings(entry, benchmark) if tuned else {}
    better = {key: value for key, value in better.items() if key not in chosen}
    values = better | chosen
    if "seed" in known:
        values.setdefault("seed", seed)
    bare = Contender(entry.name, None)
    try:
        system = configure(kind, values)
        settings = _settings(system, values)
    except (LogInferError, MemoryError):
        raise
    except Exception as error:
        if kind.__module__.startswith("loginfer."):
            raise
        raise _failure(f"`{entry.name}` could not be made", error, kind) from error
    seed = int(settings.pop("seed", seed))
    return dataclasses.replace(
        bare, system=system, settings=settings, tuned=tuple(better), given=tuple(chosen), seed=seed
    )


def contender_of(system: System, *, name: str | None = None, seed: int = 0) -> Contender:
    """Let a system take part that was made by hand."""
    if not callable(getattr(system, "fit", None)):
        raise InputError(
            f"{type(system).__name__} is not a system: it has no method `fit`",
            hint="a model that PyKEEN has trained becomes one by loginfer.pykeen.Trained(model)",
        )
    settings = _settings(system, {})
    seed = int(settings.pop("seed", seed))
    return Contender(name or type(system).__name__, system, settings, seed=seed)


def _settings(system: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of a system as JSON values, as far as it tells them."""
    found: dict[str, Any] = {}
    for name, setting in settings_of(type(system)).items():
        value = getattr(system, name, values.get(name, setting.default))
        if value is not inspect.Parameter.empty:
            plain = value is None or isinstance(value, bool | int | float | str)
            found[name] = value if plain else str(value)
    return found


# -- somebody else's code --------------------------------------------------------------------------


def _failure(what: str, error: Exception, kind: type[Any]) -> InputError:
    """Say where in a user's own file something failed."""
    home = getattr(sys.modules.get(kind.__module__), "__file__", None)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if home and Path(frame.filename) == Path(home)]
    frame = own[-1] if own else None  # none of it where the call itself does not fit
    return InputError(
        f"{what}: {type(error).__name__}: {error}",
        where=home if frame is None else f"{frame.filename}:{frame.lineno}",
        hint=None if frame is None or not frame.line else f"the line is: {frame.line}",
    )


class _BlamedScorer:
    """A user's scorer, whose errors are told with their place."""

    def __init__(self, contender: Contender, scorer: Any) -> None:
        self._contender = contender
        self._scorer = scorer

    def score(self, triples: Any) -> Any:
        with self._contender._blamed("score"):
            return self._scorer.score(triples)


class _BlamedCandidateScorer(_BlamedScorer):
    def score_candidates(self, triples: Any, position: Position, candidates: Any) -> Any:
        with self._contender._blamed("score_candidates"):
            return self._scorer.score_candidates(triples, position, candidates)


def _blamed_scorer(contender: Contender, scorer: Any) -> Scorer:
    kind = _BlamedCandidateScorer if isinstance(scorer, CandidateScorer) else _BlamedScorer
    wrapped = kind(contender, scorer)
    if isinstance(scorer, StoredScorer):
        wrapped.arrays = scorer.arrays  # type: ignore[attr-defined]
    return wrapped
