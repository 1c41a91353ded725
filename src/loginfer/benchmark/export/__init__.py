"""Benchmarks in the formats of other programs, and the way back.

`export_benchmark` writes a folder, `read_export` verifies it and gives every set of triples by name. A format is a file
here, under its own name, with a value `FORMAT`.
"""

import lazy_loader

# Files of this folder that are no formats.
NO_FORMATS = ("base", "export")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
