"""Tables for other libraries and for notebooks: rows as a DataFrame or as HTML, and columns of text from one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from loginfer.errors import InputError, UnknownNameError

# So many rows are shown in a notebook.
SHOWN = 100


class Rows(ABC):
    """What comes down to a table: it becomes a DataFrame, and shows itself in a notebook."""

    columns: tuple[str, ...]

    @abstractmethod
    def rows(self) -> Iterable[Sequence[Any]]:
        """Yield a value for each of `columns`, row by row."""

    def to_frame(self) -> Any:
        """Return all rows (see `loginfer.frames.to_frame`)."""
        return to_frame(self.columns, self.rows())

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the first rows."""
        from loginfer.kg.vocabulary import shortened
        from loginfer.notebook import fragment, table

        def cell(value: Any) -> str:
            if isinstance(value, float):
                return f"{value:.4g}"
            return f"{value:,}" if isinstance(value, int) else shortened(str(value or ""))

        return fragment(table(self.columns, [list(map(cell, row)) for row in islice(self.rows(), SHOWN)]))


@dataclass(frozen=True)
class WrittenFolder(Rows):
    """What a function wrote into a folder.

    Parameters
    ----------
    path
        The folder.
    columns, values
        A row for each part of it.
    details
        Everything else about it, as JSON values.
    """

    path: Path
    columns: tuple[str, ...]
    values: list[tuple[Any, ...]] = field(repr=False)
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows."""
        return self.values


def to_frame(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Any:
    """Return rows as a DataFrame of pandas; where pandas is not installed, as a table of pyarrow."""
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    named = dict(zip(columns, map(list, values), strict=True))
    try:
        from pandas import DataFrame
    except ImportError:
        import pyarrow as pa

        return pa.table(named)
    return DataFrame(named)


def text_columns(frame: Any, columns: Sequence[str | int] | None, count: int) -> list[list[str]]:
    """Return columns of a table of pandas, polars or pyarrow as texts.

    Parameters
    ----------
    frame
        The table, or whatever pyarrow makes one of.
    columns
        The names of the columns; by default the first ones.
    count
        How many there must be.
    """
    import pyarrow as pa

    try:
        table = pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException) as error:
        hint = "give a DataFrame; where a column mixes numbers and texts: frame.astype(str)"
        raise InputError(f"{type(frame).__name__} is no table that pyarrow reads: {error}", hint=hint) from error
    # Without a header, pandas calls columns by numbers.
    names = list(map(str, table.column_names[:count] if columns is None else columns))
    if len(names) != count:
        raise InputError(f"{count} columns are needed, not {len(names)}: {', '.join(names)}")
    for name in names:
        if name not in table.column_names:
            raise UnknownNameError("column", name, table.column_names)
        if table[name].null_count:
            raise InputError(f"the column `{name}` has empty cells", hint="leave these rows out: dropna, drop_nulls")
    return [list(map(str, table[name].cast(pa.large_string()).to_pylist())) for name in names]
