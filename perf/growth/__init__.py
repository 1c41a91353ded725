"""Cost of ranking, building, training and evaluating against triples, relations and constants.

`python -m perf.growth` measures on synthetic graphs with the skew of real ones, one process a
measurement, and draws; what is measured already is kept. `python -m perf.growth.estimate` prints what
the figures say about graphs that are too large to be measured. `docs/scaling.md` says how to read them.
"""
