"""What the rules of one round conclude, until the round ends."""

from __future__ import annotations

import numpy as np

from loginfer.engine.binding import BoundAtom
from loginfer.engine.native.materialise_relations import Ids, Keys, pack
from loginfer.engine.native.materialise_store import Store
from loginfer.errors import LimitError

__all__ = ["Conclusions"]


class Conclusions:
    """Conclusions of the current round, under their relations, perhaps repeated or known already.

    Parameters
    ----------
    store
        The triples they will be added to.
    limit
        How many triples may be added in all.
    rounds, total
        Rounds before this one, and what they have added.
    """

    def __init__(self, store: Store, limit: int | None, rounds: int = 0, total: int = 0) -> None:
        self.store = store
        self.limit = limit
        self.total = total
        self.round = rounds + 1
        self._keys: dict[int, list[Keys]] = {}
        self._members: dict[tuple[int, int], list[Ids]] = {}

    def add_keys(self, relation: int, keys: Keys) -> None:
        """Add pairs of a relation."""
        if len(keys):
            self._keys.setdefault(relation, []).append(keys)

    def add_entities(self, head: BoundAtom, found: Ids) -> None:
        """Add the head for each value of its variable; if it has none, once for any value."""
        if not len(found):
            return
        if max(head.subject, head.object) < 0:
            found = found[:1]
        subject = found if head.subject >= 0 else np.full(len(found), ~head.subject, dtype=np.int32)
        if head.relation in self.store.pairs:
            keys = pack(subject, found if head.object >= 0 else ~head.object)
            self.add_keys(head.relation, keys)
        else:
            self._members.setdefault((head.relation, ~head.object), []).append(subject)

    @property
    def room(self) -> int | None:
        """How many more triples may be added."""
        return None if self.limit is None else self.limit - self.total

    def check(self, new: int) -> None:
        """Raise if so many triples, none of them known before this round, are too many."""
        if self.limit is not None and self.total + new > self.limit:
            raise LimitError(
                f"the rules derive more than {self.limit:,} new triples: {self.total:,} in the first "
                f"{self.round - 1} rounds, at least {new:,} more in round {self.round}",
                hint="allow more triples, or leave out the rules that derive most of them",
            )

    def flush(self) -> int:
        """End the round: add its conclusions to the triples; return how many are new."""
        added = self.store.advance(self.round, self._keys, self._members)
        self._keys, self._members = {}, {}
        self.check(added)
        self.total += added
        self.round += 1
        return added
