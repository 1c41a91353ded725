"""The native engine: exact evaluation in memory by compiled kernels."""

from loginfer.engine.native.engine import NativeEngine

__all__ = ["NativeEngine"]
