"""What LogInfer costs, beside what other systems need for the same answers.

`python -m perf` (or `make bench`) measures and prints one table; `python -m perf.growth` (or
`make growth`) measures cost against the size of a synthetic graph, `python -m perf.pattern_growth` that
of each pattern. `docs/performance.md` and `docs/scaling.md` say how to read the results.
"""
