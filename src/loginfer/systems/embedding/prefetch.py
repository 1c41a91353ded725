"""A hint to the processor that rows will be needed soon.

Rows of random entities lie all over memory, so that most of the time of training would be spent waiting for
them. What comes next is known well before, though.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from loginfer.compiled import fast_inlined
from loginfer.systems.embedding.system import Floats

__all__ = ["prefetch_row"]

# Numbers of four bytes in a cache line.
_LINE = 16


@intrinsic
def _prefetch(context: Any, array: Any, place: Any) -> Any:
    """Ask for the cache line of a place in an array, counted in its elements."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(made.data, [arguments[1]]), cgutils.voidptr_t)
        number = ir.IntType(32)
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module,
            ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number]),
            "llvm.prefetch.p0",
        )
        # To be read, to be kept in all caches, data.
        builder.call(function, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@fast_inlined
def prefetch_row(rows: Floats, row: Any, width: int) -> None:
    """Ask for a row of an array of rows that are so wide."""
    start = row * width
    for j in range(0, width, _LINE):
        _prefetch(rows, start + j)  # type: ignore[call-arg]
