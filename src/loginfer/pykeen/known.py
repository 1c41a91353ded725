"""Known negatives, looked up by what they have in common with a positive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from pykeen.triples import CoreTriplesFactory, TriplesFactory

from loginfer.errors import InputError

__all__ = ["KnownNegatives", "mapped", "with_inverse"]


class KnownNegatives(torch.nn.Module):
    """Known negatives in three orders, so that those of a relation, or of a relation and an end, are a slice.

    Parameters
    ----------
    triples
        int64[m, 3].
    num_entities
        How many entities there are.
    """

    def __init__(self, triples: torch.Tensor, num_entities: int) -> None:
        super().__init__()
        self._entities = num_entities
        heads, relations, tails = triples.unbind(dim=1)
        # The rows by relation and head, by relation and tail, and what they are ordered by.
        for name, keys in (
            ("head", relations * num_entities + heads),
            ("tail", relations * num_entities + tails),
        ):
            ordered, order = torch.sort(keys, stable=True)
            self.register_buffer(f"_{name}_keys", ordered, persistent=False)
            self.register_buffer(f"_{name}_rows", triples[order], persistent=False)

    def __len__(self) -> int:
        return len(self._buffer("head_rows"))

    def of_relation(self, positives: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return int64[n] each: where the negatives with each positive's relation begin, and how many."""
        keys, first = self._buffer("head_keys"), positives[:, 1] * self._entities
        begin = torch.searchsorted(keys, first)
        return begin, torch.searchsorted(keys, first + self._entities) - begin

    def of_end(self, positives: torch.Tensor, end: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the same for the negatives with the relation and the head (or the tail) of each positive."""
        keys = self._buffer(f"{end}_keys")
        wanted = positives[:, 1] * self._entities + positives[:, 0 if end == "head" else 2]
        begin = torch.searchsorted(keys, wanted)
        return begin, torch.searchsorted(keys, wanted, right=True) - begin

    def rows(self, places: torch.Tensor, end: str = "head") -> torch.Tensor:
        """Return the negatives at some places of one order."""
        return self._buffer(f"{end}_rows")[places]

    def _buffer(self, name: str) -> torch.Tensor:
        return self.get_buffer(f"_{name}")


def mapped(negatives: Any, factory: CoreTriplesFactory | None) -> torch.Tensor:
    """Return known negatives as int64[m, 3], whatever form they were given in.

    Parameters
    ----------
    negatives
        A factory, or rows of three: ids as a tensor or array, or names.
    factory
        The training triples' factory, which knows the names. With inverse triples each negative gets its
        inverse, and relations get the ids they have in training.

    Raises
    ------
    InputError
        If these are no triples, or a name is not known.
    """
    if isinstance(negatives, CoreTriplesFactory):
        negatives = _of_factory(negatives, factory)
    found = np.asarray(negatives.cpu() if isinstance(negatives, torch.Tensor) else negatives)
    if found.ndim != 2 or found.shape[1] != 3:
        raise InputError(
            f"known negatives are rows of head, relation and tail, not an array of shape {found.shape}"
        )
    if found.dtype.kind in "iu":
        ids = torch.from_numpy(found.astype(np.int64))
    else:
        ids = _ids(found.tolist(), factory)
    if factory is not None and factory.create_inverse_triples:
        ids = factory._add_inverse_triples_if_necessary(mapped_triples=ids)
    return ids


def with_inverse(triples: torch.Tensor, num_relations: int) -> bool:
    """Say whether these are triples with PyKEEN's inverse ones: all (h, 2r, t), then all (t, 2r + 1, h)."""
    if not len(triples) or len(triples) % 2 or num_relations % 2:
        return False
    given, inverse = triples.reshape(2, -1, 3)
    expected = given.flip(1) + given.new_tensor([0, 1, 0])
    return bool((given[:, 1] % 2 == 0).all()) and torch.equal(inverse, expected)


def _of_factory(negatives: CoreTriplesFactory, factory: CoreTriplesFactory | None) -> Any:
    """Return a factory's triples: by name if its ids are not those of training, otherwise by id."""
    if isinstance(negatives, TriplesFactory) and isinstance(factory, TriplesFactory):
        ids, others = ((known.entity_to_id, known.relation_to_id) for known in (negatives, factory))
        if ids != others:
            return negatives.label_triples(negatives.mapped_triples)
    return negatives.mapped_triples


def _ids(names: Sequence[Sequence[Any]], factory: CoreTriplesFactory | None) -> torch.Tensor:
    if not isinstance(factory, TriplesFactory):
        raise InputError(
            "known negatives were given by name, and no factory that knows the names",
            hint="triples_factory=dataset.training",
        )
    entities, relations = factory.entity_to_id, factory.relation_to_id
    rows = []
    for head, relation, tail in names:
        for name, known, kind in (
            (head, entities, "entity"),
            (relation, relations, "relation"),
            (tail, entities, "entity"),
        ):
            if name not in known:
                raise InputError(f"a known negative has the {kind} `{name}`, which the factory does not know")
        rows.append((entities[head], relations[relation], entities[tail]))
    return torch.tensor(rows, dtype=torch.long).reshape(-1, 3)
