"""A trained model of PyKEEN as a scorer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from pykeen.models import Model

from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.systems.interface import Arrays, Position
from loginfer.systems.pykeen.freezing import cells_of, frozen

__all__ = ["PyKEENScorer", "arrays_of"]

Ids = npt.NDArray[np.int64]

# Numbers that may be computed at once: half a gigabyte of them.
_CELLS = 1 << 26


class PyKEENScorer:
    """The scores of a model.

    They are computed in double precision and rounded to single, so that a triple's score does not depend on
    how many others are asked for together with it, nor on whether it is asked for as a triple or as a
    candidate. (A model with inverse relations is the exception for subjects: as in PyKEEN's own evaluation,
    they are scored as objects of the inverse relation.)

    Parameters
    ----------
    model
        The model, which may be trained on afterwards: the scorer keeps the vectors it has now.
    graph
        Gives the names.
    entities, relations
        int64, the model's id of each of the graph's entities and relations; -1 for what it does not know. By
        default the ids are the same.
    """

    def __init__(
        self,
        model: Model,
        graph: KnowledgeGraph,
        entities: Ids | None = None,
        relations: Ids | None = None,
    ) -> None:
        self._trained = model
        self._model = frozen(model)
        self._graph = graph
        self._entities = np.arange(len(graph.entities)) if entities is None else entities
        self._relations = np.arange(len(graph.relations)) if relations is None else relations
        self._cells: dict[str, int] = {}

    def score(self, triples: Triples) -> npt.NDArray[np.float64]:
        """Return float64[n], one score a triple of int32[n, 3]."""
        rows = self._rows(triples)
        if not len(rows):
            return np.empty(0)
        most = self._most("triples", lambda count: self._triples(rows[:1].repeat(count, 1)))
        return np.concatenate([self._triples(part) for part in torch.split(rows, most)]).astype(np.float64)

    def score_candidates(
        self, triples: Triples, position: Position, candidates: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float32]:
        """Return float32[n, c]: the scores of each triple with each candidate in that position."""
        rows = self._rows(triples, but=position)
        wanted = self._ids(candidates, "relation" if position == "relation" else "entity")
        scores = np.empty((len(rows), len(wanted)), dtype=np.float32)
        if not scores.size:
            return scores
        most = self._most(
            position, lambda count: self._candidates(rows[:1], position, wanted[:1].repeat(count))
        )
        width = min(len(wanted), most)
        height = max(1, most // width)
        for top in range(0, len(rows), height):
            some = slice(top, top + height)
            for left in range(0, len(wanted), width):
                part = slice(left, left + width)
                scores[some, part] = self._candidates(rows[some], position, wanted[part])
        return scores

    def arrays(self) -> Arrays:
        """Return the model's weights by name."""
        return arrays_of(self._trained)

    # -- asking the model ---------------------------------------------------------------------------

    def _triples(self, rows: torch.Tensor) -> npt.NDArray[np.float32]:
        with torch.inference_mode():
            return _rounded(self._model.predict_hrt(rows)).reshape(-1)

    def _candidates(
        self, rows: torch.Tensor, position: Position, candidates: torch.Tensor
    ) -> npt.NDArray[np.float32]:
        model = self._model
        there = candidates.to(model.device)
        with torch.inference_mode():
            if position == "subject":
                found = model.predict_h(rows[:, 1:], heads=there)
            elif position == "object":
                found = model.predict_t(rows[:, :2], tails=there)
            else:
                # PyKEEN counts inverse relations here: the relation r has the id 2r.
                ids = there * 2 if model.use_inverse_triples else there
                found = model.predict_r(rows[:, ::2], relations=ids)
        return _rounded(found)

    def _most(self, what: str, ask: Any) -> int:
        """Return how many candidates, or triples, may be asked for at once."""
        if what not in self._cells:
            self._cells[what] = cells_of(ask)
        return max(1, _CELLS // self._cells[what])

    # -- ids ----------------------------------------------------------------------------------------

    def _rows(self, triples: Triples, but: Position | None = None) -> torch.Tensor:
        """Return triples by the model's ids; what stands in one position may not matter."""
        given = np.asarray(triples).reshape(-1, 3)
        columns = []
        for column, position in enumerate(("subject", "relation", "object")):
            if position == but:
                columns.append(torch.zeros(len(given), dtype=torch.long))
            else:
                columns.append(self._ids(given[:, column], "relation" if column == 1 else "entity"))
        return torch.stack(columns, dim=1)

    def _ids(self, ours: npt.NDArray[Any], kind: str) -> torch.Tensor:
        table, names = (
            (self._relations, self._graph.relations)
            if kind == "relation"
            else (self._entities, self._graph.entities)
        )
        found = table[ours]
        if len(found) and found.min() < 0:
            name = names[int(ours[int(found.argmin())])]
            raise InputError(
                f"the model does not know the {kind} `{name}`",
                hint="train it with loginfer.pykeen.dataset(path), which has all names of the benchmark",
            )
        return torch.from_numpy(found.astype(np.int64))


def arrays_of(model: Model) -> dict[str, npt.NDArray[Any]]:
    """Return the weights of a model by name, as arrays of their own."""
    return {name: value.detach().cpu().numpy().copy() for name, value in model.state_dict().items()}


def _rounded(scores: torch.Tensor) -> npt.NDArray[np.float32]:
    made: npt.NDArray[np.float32] = scores.to(torch.float32).cpu().numpy()
    return made
