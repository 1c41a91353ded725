"""Exactly uniform draws, without repetition, of the triples of a space that a test accepts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import member
from loginfer.kg import Triples
from loginfer.kg.triples import distinct_keys, merged_keys

if TYPE_CHECKING:
    from loginfer.benchmark.spaces import Space

__all__ = ["Draw", "Known", "Sampler", "draw"]

Ints = npt.NDArray[np.int64]
Accept = Callable[[Triples], npt.NDArray[np.bool_]]

# Up to this many places, all of them are put into a random order, unless few are wanted.
_FEW = 2**22
_MANY = 16
# Once half of a larger space has been looked at and no more than this is left, the rest is put into order.
_REST = 2**26
# At least and at most so many places are looked at in one go.
_LEAST, _MOST = 2**10, 2**22
# After this many places, or this many for each triple that is wanted, whichever is more, a search ends: where
# one triple in a million is accepted, it would never.
LIMIT, FOR_EACH = 200_000_000, 4


class Known(Protocol):
    """A set of triples of which only membership is asked."""

    def contains(self, triples: Triples) -> npt.NDArray[np.bool_]:
        """Return bool[n]: which of these triples are in it."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Triples that were drawn.

    Parameters
    ----------
    triples
        int32[n, 3], distinct, in random order.
    exhausted
        Whether fewer than asked were drawn because there are no more. Where fewer were drawn and this is
        false, the search was given up.
    examined
        How many places the sampler has looked at so far.
    """

    triples: Triples
    exhausted: bool
    examined: int


class Sampler:
    """Draws from a space without repetition; each `take` goes on where the last one stopped.

    Places are looked at in a random order, and those accepted are returned in that order. Whatever has been
    drawn, each remaining candidate is equally likely to be next.

    Parameters
    ----------
    space
        What to draw from.
    rng
        The randomness.
    accept
        Says which of some triples are candidates; called with many at a time.
    taken
        Triples that are no candidates, whatever `accept` says.
    limit
        After this many places the search is given up.
    """

    def __init__(
        self,
        space: Space,
        rng: np.random.Generator,
        accept: Accept,
        *,
        taken: Known | None = None,
        limit: int = LIMIT,
    ) -> None:
        self._space = space
        self._rng = rng
        self._accept = accept
        self._taken = taken
        self._limit = limit
        self._accepted = 0
        self._examined = 0
        self._ready = np.empty((0, 3), dtype=np.int32)  # accepted, not yet taken
        self._seen = np.empty(0, dtype=np.int64)  # sorted places, while the rest is not in order
        self._rest: Ints | None = None  # places that have not been seen, in random order

    def take(self, count: int) -> Draw:
        """Return up to `count` more triples."""
        left = len(self._ready) + self._space.places - self._examined
        found = np.empty((max(min(count, left), 0), 3), dtype=np.int32)
        have, fresh = 0, self._ready
        while True:
            used = fresh[: len(found) - have]
            found[have : have + len(used)] = used
            have += len(used)
            self._ready = fresh[len(used) :]
            if have >= count or self._examined >= min(self._limit, self._space.places):
                break
            fresh = self._look(count - have)
        exhausted = have < count and self._examined == self._space.places
        return Draw(found[:have], exhausted, self._examined)

    def _look(self, missing: int) -> Triples:
        """Look at places that should hold about as many candidates as are missing."""
        rate = (self._accepted + 1) / (self._examined + 1)
        wanted = int(missing / rate * 1.02) + 16
        places = self._next(min(max(wanted, _LEAST), _MOST, self._limit - self._examined))
        triples = self._space.at(places)
        self._examined += len(places)
        good = ~self._space.leaves_out(places, triples)
        if self._taken is not None:
            good &= ~self._taken.contains(triples)
        if not good.all():
            triples = triples[good]
        triples = triples[self._accept(triples)]
        self._accepted += len(triples)
        if self._rest is None:  # in the order of places so far
            triples = triples[self._rng.permutation(len(triples))]
        return triples

    def _next(self, count: int) -> Ints:
        """Return places that have not been seen: the next ones in order, or a random set, sorted."""
        size = self._space.places
        left = size - self._examined
        few = size <= _FEW and count > left // _MANY
        if self._rest is None and (few or (left <= _REST and left <= size // 2)):
            self._rest = self._in_order(size)
        if self._rest is not None:
            places, self._rest = self._rest[:count], self._rest[count:]
            return places
        places = distinct_keys(self._rng.integers(0, size, size=count))
        places = places[~member(self._seen, places)]
        self._seen = merged_keys(self._seen, places)
        return places

    def _in_order(self, size: int) -> Ints:
        unseen = np.ones(size, dtype=bool)
        unseen[self._seen] = False
        self._seen = self._seen[:0]
        return self._rng.permutation(np.flatnonzero(unseen))


def draw(
    space: Space,
    count: int,
    rng: np.random.Generator,
    accept: Accept,
    *,
    taken: Known | None = None,
) -> Draw:
    """Draw once: up to `count` of the triples that are accepted, each set of that size equally likely."""
    limit = max(LIMIT, FOR_EACH * count)
    return Sampler(space, rng, accept, taken=taken, limit=limit).take(count)
