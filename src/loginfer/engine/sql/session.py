"""What an SQL engine asks of its database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from loginfer.engine.sql.queries import Dialect

__all__ = ["Session"]


class Session(Protocol):
    """A connection to a database that holds the table `triples` of ids s, r, o.

    Tables made here are temporary: they go when the session ends.
    """

    @property
    def dialect(self) -> Dialect:
        """What the database speaks."""
        ...

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the only row of a query, with whole numbers of any size as they are."""
        ...

    def columns(self, query: str) -> list[npt.NDArray[Any]]:
        """Return the columns of a query as arrays of numbers."""
        ...

    def stream(self, query: str) -> Iterator[list[npt.NDArray[Any]]]:
        """Yield the columns of a query some rows at a time, in order.

        Nothing else may be asked until it is finished or let go.
        """
        ...

    def hashed(self, query: str, key: str, salt: int) -> str:
        """Return a query for the rows of another one with a column h.

        Ordered by h, rows are in the order of `hashing.hash_order` of a key, an expression over them (BIGINT,
        not negative), with this salt.
        """
        ...

    def load(self, table: str, columns: Mapping[str, npt.NDArray[np.integer[Any]]]) -> None:
        """Make a table of some arrays."""
        ...

    def create(self, table: str, query: str) -> int:
        """Make a table of a query's result; return the number of its rows."""
        ...

    def view(self, name: str, query: str) -> None:
        """Give a query a name, under which it can be read like a table."""
        ...

    def append(self, table: str, query: str) -> int:
        """Add a query's result to a table; return how many rows came."""
        ...

    def drop(self, table: str) -> None:
        """Drop a table if it exists."""
        ...
