"""Embedding systems: TransE, RotatE, ComplEx, DistMult, BoxE, trained by compiled kernels on the CPU."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
