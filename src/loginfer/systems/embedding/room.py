"""Room for the arrays that kernels change, with a margin around each.

The compiler makes two versions of a loop over rows of two arrays: a fast one, and a careful one for rows so
close to each other in memory that they might overlap. Their last bits can differ. Rows of different arrays
must therefore never be neighbours, or results would depend on where the system happens to put arrays.
"""

from __future__ import annotations

import math

import numpy as np

from loginfer.systems.embedding.system import Floats

__all__ = ["apart", "zeros"]

# Numbers on either side: more than the fast versions of loops take at a time, and a whole page, so that rows
# begin where a cache line does as often as before.
_MARGIN = 1024


def zeros(*shape: int) -> Floats:
    """Return an array of zeros with a margin."""
    count = math.prod(shape)
    return np.zeros(count + 2 * _MARGIN, dtype=np.float32)[_MARGIN : _MARGIN + count].reshape(shape)


def apart(array: Floats) -> Floats:
    """Return a copy of an array with a margin."""
    copy = zeros(*array.shape)
    copy[:] = array
    return copy
