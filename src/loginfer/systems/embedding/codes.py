"""The numbers by which compiled kernels know a model, its comparison and the end that a query lacks.

A kernel that takes functions as arguments cannot be kept on disk, so the kernels switch over these instead.
"""

from __future__ import annotations

__all__ = [
    "BOX",
    "BOXE",
    "COMPLEX",
    "DISTMULT",
    "DOT",
    "L1",
    "L2",
    "MODULI",
    "OBJECT",
    "ROTATE",
    "SUBJECT",
    "TRANSE",
]

# How the known end of a triple and its relation make a query.
TRANSE, ROTATE, COMPLEX, DISTMULT, BOXE = range(5)

# How a query is compared with a candidate for the end that it lacks.
#   L1      −Σ|q − c|
#   L2      −√Σ(q − c)²
#   MODULI  −Σ|q − c| of complex numbers
#   DOT     Σ q·c
#   BOX     −Σ of BoxE's distances of points to boxes
L1, L2, MODULI, DOT, BOX = range(5)

# The end that a query lacks.
OBJECT, SUBJECT = range(2)
