"""A negative sampler for PyKEEN that hands out negatives that are known to be false."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from pykeen.sampling import BasicNegativeSampler, NegativeSampler, negative_sampler_resolver
from pykeen.triples import CoreTriplesFactory, TriplesFactory

from loginfer.errors import InputError, UnknownNameError
from loginfer.pykeen.versions import check_version

# The columns of a triple's ends.
_COLUMNS = {"head": 0, "tail": 2}


class KnownNegatives(torch.nn.Module):
    """Known negatives in two orders, so that those of a relation, or of a relation and an end, are a slice.

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
        # The rows by relation and head, by relation and tail, and what they are ordered by.
        for end, column in _COLUMNS.items():
            ordered, order = torch.sort(triples[:, 1] * num_entities + triples[:, column], stable=True)
            self.register_buffer(f"_{end}_keys", ordered, persistent=False)
            self.register_buffer(f"_{end}_rows", triples[order], persistent=False)

    def __len__(self) -> int:
        return len(self.get_buffer("_head_rows"))

    def of_relation(self, positives: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return int64[n] each: where the negatives with each positive's relation begin, and how many."""
        first = positives[:, 1] * self._entities
        return self._between("head", first, first + self._entities)

    def of_end(self, positives: torch.Tensor, end: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the same for the negatives with the relation and the head (or the tail) of each positive."""
        first = positives[:, 1] * self._entities + positives[:, _COLUMNS[end]]
        return self._between(end, first, first + 1)

    def rows(self, indices: torch.Tensor, end: str = "head") -> torch.Tensor:
        """Return the negatives at some indices of one order."""
        return self.get_buffer(f"_{end}_rows")[indices]

    def _between(self, end: str, first: torch.Tensor, limit: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        keys = self.get_buffer(f"_{end}_keys")
        begin = torch.searchsorted(keys, first)
        return begin, torch.searchsorted(keys, limit) - begin


def mapped_negatives(negatives: Any, factory: CoreTriplesFactory | None) -> torch.Tensor:
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
    rows = np.asarray(negatives.cpu() if isinstance(negatives, torch.Tensor) else negatives)
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise InputError(f"known negatives are rows of head, relation and tail, not an array of shape {rows.shape}")
    numbers = rows.dtype.kind in "iu"
    ids = torch.from_numpy(rows.astype(np.int64)) if numbers else _ids(rows.tolist(), factory)
    if factory is not None and factory.create_inverse_triples:
        ids = factory._add_inverse_triples_if_necessary(mapped_triples=ids)
    return ids


def with_inverse(triples: torch.Tensor, num_relations: int) -> bool:
    """Say whether these are triples with PyKEEN's inverse ones: all (h, 2r, t), then all (t, 2r + 1, h)."""
    if not len(triples) or len(triples) % 2 or num_relations % 2:
        return False
    forward, inverse = triples.reshape(2, -1, 3)
    expected = forward.flip(1) + forward.new_tensor([0, 1, 0])
    return bool((forward[:, 1] % 2 == 0).all()) and torch.equal(inverse, expected)


def _of_factory(negatives: CoreTriplesFactory, factory: CoreTriplesFactory | None) -> Any:
    """Return a factory's triples: by name if its ids are not those of training, otherwise by id."""
    if isinstance(negatives, TriplesFactory) and isinstance(factory, TriplesFactory):
        ids, others = ((vocabulary.entity_to_id, vocabulary.relation_to_id) for vocabulary in (negatives, factory))
        if ids != others:
            return negatives.label_triples(negatives.mapped_triples)
    return negatives.mapped_triples


def _ids(names: Sequence[Sequence[Any]], factory: CoreTriplesFactory | None) -> torch.Tensor:
    if not isinstance(factory, TriplesFactory):
        hint = "triples_factory=dataset.training"
        raise InputError("known negatives were given by name, and no factory that knows the names", hint=hint)
    entity, relation = (factory.entity_to_id, "entity"), (factory.relation_to_id, "relation")
    rows = []
    for triple in names:
        for name, (ids, kind) in zip(triple, (entity, relation, entity), strict=True):
            if name not in ids:
                raise InputError(f"a known negative has the {kind} `{name}`, which the factory does not know")
            rows.append(ids[name])
    return torch.tensor(rows, dtype=torch.long).reshape(-1, 3)


Match = Literal["end", "relation", "any"]
Fallback = Literal["corrupt", "any", "refuse"]


class ExplicitNegativeSampler(NegativeSampler):
    """Gives positives negatives that are known to be false, instead of corruptions that may well be true.

    Which known negatives may a positive (h, r, t) get? That depends on `match`:

    - `end`: those of the form (h, r, ·) or (·, r, t); if there are none, those with the relation r;
    - `relation`: those with the relation r;
    - `any`: all; they are dealt out in random order, each once before any comes again.

    Otherwise each of them is equally likely, and draws are independent: with replacement. A positive that
    has none (one whose relation no known negative has) is left to `fallback`: it is corrupted as by PyKEEN's
    own `BasicNegativeSampler`, gets any known negative, or is refused from the start. Where a positive gets
    several corruptions, half are of its head and half of its tail.

    Draws follow torch's seed, so PyKEEN's `random_seed` makes them reproducible. It goes into any sLCWA
    training loop, and into `pipeline`, under the name `explicit` once this class is imported:

        pipeline(…, training_loop="sLCWA", negative_sampler=ExplicitNegativeSampler,
                 negative_sampler_kwargs=dict(negatives=…, num_negs_per_pos=2))

    Parameters
    ----------
    mapped_triples
        The positive training triples; PyKEEN gives them.
    negatives
        The known negatives: a triples factory, or rows of head, relation and tail as ids or names.
    triples_factory
        The training triples' factory. Needed for names, and for training with inverse triples.
    num_explicit
        How many negatives of each positive are known ones; the rest are random corruptions, which come after
        them. By default all.
    match
        Which known negatives a positive may get.
    fallback
        What a positive gets that has none.
    num_entities, num_relations, num_negs_per_pos, filtered, filterer, filterer_kwargs
        As of any negative sampler.
    """

    def __init__(
        self,
        *,
        mapped_triples: torch.Tensor,
        negatives: Any,
        triples_factory: CoreTriplesFactory | None = None,
        num_explicit: int | None = None,
        match: Match = "end",
        fallback: Fallback = "corrupt",
        **kwargs: Any,
    ) -> None:
        check_version()
        super().__init__(mapped_triples=mapped_triples, **kwargs)
        for kind, value, choices in (("match", match, Match), ("fallback", fallback, Fallback)):
            if value not in get_args(choices):
                raise UnknownNameError(kind, str(value), get_args(choices))
        explicit = self.num_negs_per_pos if num_explicit is None else num_explicit
        if not 0 <= explicit <= self.num_negs_per_pos:
            raise InputError(f"{explicit} of {self.num_negs_per_pos} negatives of each positive cannot be known ones")
        self.match, self.fallback, self.num_explicit = match, fallback, explicit
        if triples_factory is None and with_inverse(mapped_triples, self.num_relations):
            message = "training has inverse triples, in which a relation has another id than in the negatives"
            raise InputError(message, hint="triples_factory=dataset.training")
        ids = mapped_negatives(negatives, triples_factory)
        self._check_ids(ids)
        self.known = KnownNegatives(ids, self.num_entities)
        counts: dict[str, Any] = {"num_entities": self.num_entities, "num_relations": self.num_relations}
        self._basic = BasicNegativeSampler(mapped_triples=mapped_triples, num_negs_per_pos=1, **counts)
        # Indices of known negatives that are still to be dealt out.
        self._left: torch.Tensor = torch.empty(0, dtype=torch.long)
        if explicit and fallback == "refuse":
            self._refuse(mapped_triples)

    def corrupt_batch(self, positive_batch: torch.Tensor) -> torch.Tensor:
        """Return int64[…, num_negs_per_pos, 3]: the known negatives of each positive, then random ones."""
        positives = positive_batch.view(-1, 3)
        parts = []
        if self.num_explicit:
            parts.append(self._explicit(positives))
        if self.num_explicit < self.num_negs_per_pos:
            parts.append(self._corrupted(positives, self.num_negs_per_pos - self.num_explicit))
        return torch.cat(parts, dim=1).view(*positive_batch.shape[:-1], self.num_negs_per_pos, 3)

    # -- drawing known negatives --------------------------------------------------------------------

    def _explicit(self, positives: torch.Tensor) -> torch.Tensor:
        """Return int64[n, num_explicit, 3]."""
        if self.match == "any":
            return self._any(len(positives), positives.device)
        begin, count = self.known.of_relation(positives)
        negatives = self.known.rows(self._draw(begin, count))
        if self.match == "end":
            negatives = self._sharing_an_end(positives, negatives)
        has_none = count == 0
        if has_none.any() and self.fallback == "any":
            negatives[has_none] = self._any(int(has_none.sum()), positives.device)
        elif has_none.any():
            negatives[has_none] = self._corrupted(positives[has_none], self.num_explicit)
        return negatives

    def _sharing_an_end(self, positives: torch.Tensor, otherwise: torch.Tensor) -> torch.Tensor:
        """Draw among the known negatives that share an end as well, where there are any."""
        heads, by_head = self.known.of_end(positives, "head")
        tails, by_tail = self.known.of_end(positives, "tail")
        # One draw over both kinds; the first offsets are those that share the head.
        offsets = self._draw(torch.zeros_like(by_head), by_head + by_tail)
        with_head = offsets < by_head[:, None]
        last = len(self.known) - 1
        of_head = self.known.rows((heads[:, None] + offsets).clamp(0, last))
        of_tail = self.known.rows((tails[:, None] + offsets - by_head[:, None]).clamp(0, last), "tail")
        sharing = torch.where(with_head[:, :, None], of_head, of_tail)
        return torch.where((by_head + by_tail > 0)[:, None, None], sharing, otherwise)

    def _draw(self, begin: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        """Return int64[n, num_explicit]: indices from `begin` on, evenly; any valid index where count is 0."""
        size = (len(begin), self.num_explicit)
        share = torch.rand(size, device=begin.device, dtype=torch.float64)
        offsets = (share * count[:, None]).long().clamp(max=(count - 1).clamp(min=0)[:, None])
        return (begin[:, None] + offsets).clamp(max=len(self.known) - 1)

    def _any(self, count: int, device: torch.device) -> torch.Tensor:
        """Deal out known negatives."""
        total = count * self.num_explicit
        while len(self._left) < total:
            self._left = torch.cat([self._left, torch.randperm(len(self.known))])
        indices, self._left = self._left[:total], self._left[total:]
        return self.known.rows(indices.to(device).view(count, self.num_explicit))

    def shuffle(self) -> None:
        """Deal all known negatives out anew, whatever is left of the last round."""
        self._left = torch.empty(0, dtype=torch.long)

    def _corrupted(self, positives: torch.Tensor, count: int) -> torch.Tensor:
        """Return int64[n, count, 3]: corruptions, half of them of each positive's head, half of its tail.

        PyKEEN's sampler corrupts the heads of the first half of what it gets, and the tails of the second.
        Given all positives of a batch in turn, not each of them several times in a row, it does so for each.
        """
        return self._basic.corrupt_batch(positives.repeat(count, 1)).view(count, -1, 3).transpose(0, 1)

    # -- complaints ---------------------------------------------------------------------------------

    def _check_ids(self, ids: torch.Tensor) -> None:
        if self.num_explicit and not len(ids):
            raise InputError("no negatives are known", hint="use PyKEEN's own sampler, or num_explicit=0")
        sizes = torch.tensor([self.num_entities, self.num_relations, self.num_entities])
        wrong = ((ids < 0) | (ids >= sizes)).any(dim=1)
        if wrong.any():
            first = tuple(ids[wrong][0].tolist())
            message = f"{int(wrong.sum())} known negatives have ids that training has not, the first: {first}"
            raise InputError(message, hint="ids must be those of the training triples' factory")

    def _refuse(self, positives: torch.Tensor) -> None:
        """Complain about relations that no known negative has."""
        if self.match == "any":
            return
        _, count = self.known.of_relation(positives)
        if (count == 0).any():
            relations = sorted(set(positives[count == 0][:, 1].tolist()))
            raise InputError(
                f"no negative is known for {int((count == 0).sum())} positives, "
                f"which have {len(relations)} relations, the first with the id {relations[0]}",
                hint="fallback='corrupt' or fallback='any'",
            )


if ExplicitNegativeSampler not in negative_sampler_resolver.lookup_dict.values():
    negative_sampler_resolver.register(ExplicitNegativeSampler)
