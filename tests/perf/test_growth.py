"""Cost against size: what is measured, what follows from it, and what is estimated."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from perf.growth.axes import AXES, BASE
from perf.growth.estimate import Target, estimates
from perf.growth.fitting import exponent, exponents
from perf.growth.measuring import measure
from perf.growth.results import read, write
from perf.growth.table import differing
from perf.growth.units import unit_costs

ROOT = Path(__file__).resolve().parents[2]


def record(size: Any, step: str, what: str, engine: str, cpu: float, **summary: Any) -> dict[str, Any]:
    return {
        "triples": size.triples,
        "relations": size.relations,
        "entities": size.entities,
        "constants": size.entities,
        "step": step,
        "what": what,
        "engine": engine,
        "warm": cpu,
        "megabytes": 100 + size.triples / 10_000,
        "summary": {"call_wall": cpu, "all_megabytes": 0.0, **summary},
        "failure": None,
    }


def composition(law: Any) -> list[dict[str, Any]]:
    sizes = {size for sizes in AXES.values() for size in sizes}
    return [record(size, "ranking", "composition", "native", law(size)) for size in sizes]


def figures(records: list[dict[str, Any]]) -> dict[str, Any]:
    return {"measured": records, "exponents": exponents(records), "unit_costs": unit_costs(records)}


def test_an_exponent_is_that_of_the_last_points_alone():
    sizes = [10, 100, 1000, 10_000]
    assert exponent(sizes, [7.0, *(n**1.5 for n in sizes[1:])]) == pytest.approx(1.5)
    assert exponent(sizes[:1], [1.0]) is None


def test_exponents_are_found_along_each_axis():
    found = exponents(composition(lambda s: 1e-6 * s.triples * s.relations**0.5 * s.entities**0.25))
    # Along the triples the constants grow with them.
    assert {row["axis"]: row["cpu"] for row in found} == {"triples": 1.25, "relations": 0.5, "constants": 0.25}


def test_an_estimate_follows_the_law_that_the_figures_follow():
    def law(size: Any) -> float:
        # As fractions of the base: rounding an exponent to two places costs nothing.
        return float((size.triples / BASE.triples) * (size.relations / BASE.relations) ** 0.5)

    target = Target("large", 100_000_000, 2_000, 10_000_000)
    (made,) = estimates(figures(composition(law)), target)
    assert made.powers == pytest.approx(100 * 2.0)
    assert made.proportional == pytest.approx(100)
    # 100 MB and 100 MB for each million triples.
    assert made.gigabytes == pytest.approx((100 + 100 * 100) / 1024, rel=0.01)


def test_an_estimate_never_grows_more_slowly_than_the_triples():
    (made,) = estimates(
        figures(composition(lambda size: (size.triples / 10_000_000) ** 0.5)),
        Target("large", 1_000_000_000, BASE.relations, 100_000_000),
    )
    assert made.powers == pytest.approx(100)


def test_training_is_estimated_for_all_epochs():
    sizes = {size for sizes in AXES.values() for size in sizes}
    seconds = {size: 3.0 * size.triples / 1_000_000 for size in sizes}
    records = [record(size, "training", "one epoch", "", seconds[size], positives=size.triples) for size in sizes]
    (made,) = estimates(figures(records), Target("large", 100_000_000, 500, 10_000_000, epochs=4))
    assert made.proportional == made.powers == pytest.approx(3.0 * 100 * 4)


def test_ranked_queries_are_estimated_by_queries_and_constants():
    size = AXES["triples"][-1]
    ranked = record(size, "evaluating", "1,000 ranked", "", 10.0, queries=2000)
    # 10 s for 2 × 1,000 queries among a million constants; asked for are 2 × 4,000 among five million.
    (made,) = estimates(figures([ranked]), Target("large", 21_000_000, 822, 5_000_000))
    assert made.proportional == pytest.approx(10.0 * 4 * 5)
    assert made.powers is None


def test_engines_that_built_different_benchmarks_are_told():
    same = [record(BASE, "building", "benchmark", engine, 1.0, checksum="a") for engine in ("native", "duckdb")]
    assert differing(same) == []
    other = record(BASE, "building", "benchmark", "spark", 1.0, checksum="b")
    assert len(differing([*same, other])) == 1


def test_what_is_measured_is_not_measured_again(tmp_path):
    file = tmp_path / "growth.json"
    write(file, [record(BASE, "ranking", "composition", "native", 12.5)])
    before = file.read_bytes()
    from perf.growth.plan import KINDS

    kinds = [kind for kind in KINDS if kind.what == "composition" and kind.engine == "native"]
    # No time at all is allowed: a graph that had to be made would end the program.
    found = measure([BASE], kinds, tmp_path, file, limit=0, force=False, keep=True)
    assert [made["warm"] for made in found] == [12.5]
    assert file.read_bytes() == before


def test_a_small_graph_is_measured(tmp_path):
    file = tmp_path / "growth.json"
    command = [sys.executable, "-m", "perf.growth", "--sizes", "3000-5-300", "--engines", "native"]
    options = ["--steps", "ranking", "--json", str(file), "--no-plots", "--work", str(tmp_path)]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    measured = read(file)
    assert [made["what"] for made in measured] == ["composition", "triangle"]
    for made in measured:
        assert made["failure"] is None
        assert 0 < made["constants"] <= 300
        assert 0 < made["warm"] <= made["process"]
        assert made["megabytes"] > 0
    assert json.loads(file.read_text())["exponents"] == []  # it is on no axis


def test_the_same_figures_give_the_same_drawing(tmp_path):
    pytest.importorskip("matplotlib", reason="drawings need the extra `bench`")
    from perf.growth.drawing import draw

    records = composition(lambda size: size.triples / 1e6)
    (first,) = draw(records, tmp_path / "first")
    (second,) = draw(records, tmp_path / "second")
    assert first.name == "growth-ranking.svg"
    assert "composition, native" in first.read_text()
    assert first.read_bytes() == second.read_bytes()
