"""Near misses on WN18RR and FB15k-237: what shortcuts are worth, and that no negative follows."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from tests.support.single_shortcuts import single_accuracies

from loginfer.benchmark import build
from loginfer.benchmark.auditing.audit import audit
from loginfer.benchmark.benchmark import SPLITS
from loginfer.benchmark.construction.suite import groups
from loginfer.kg import load_graph

pytestmark = pytest.mark.data
POPULARITY = ("subject-popularity", "object-popularity")


def made(data_folder, name, match=(), **settings):
    """A benchmark of the suite, with near misses."""
    (group,) = (g for g in groups() if g.name == name)
    archive = {"WN": "WN18RR.tar.gz", "FB": "FB15k-237.tar.gz"}[name.split("-")[0]]
    recipe = group.recipe(("nm",), {"protocol": "sound"}, match).changed(**settings)
    return build(recipe, load_graph(data_folder / archive))


def accuracies(benchmark):
    return single_accuracies(benchmark, "nm")


def derivable(benchmark, splits=None):
    """How many triples, negatives if no others are given, are in P_all or follow from it: SQL of our own."""
    splits = benchmark.negatives["nm"].splits if splits is None else splits
    with duckdb.connect(config={"threads": 1}) as base:
        filled(base, "p", benchmark.everything.triples)
        filled(base, "n", np.concatenate([splits[split] for split in SPLITS]))
        heads = [follows(rule, benchmark.graph) for rule in benchmark.program]
        known = "EXISTS (SELECT 1 FROM p WHERE p.s = n.s AND p.r = n.r AND p.o = n.o)"
        counts = [base.execute(f"SELECT count(*) FROM n WHERE {test}").fetchone()[0] for test in (known, *heads)]
    return sum(counts)


def filled(base, table, triples):
    columns = [triples[:, i].copy() for i in range(3)]
    base.execute(f"CREATE TABLE {table} AS SELECT unnest($1) AS s, unnest($2) AS r, unnest($3) AS o", columns)


def follows(rule, graph):
    """That a row of n follows from p by a rule, as a condition."""
    head = {rule.head.subject: "n.s", rule.head.object: "n.o"}
    names, tables, tests = dict(head), [], []
    for number, part in enumerate(rule.atoms):
        tables.append(f"p AS t{number}")
        tests.append(f"t{number}.r = {graph.relation_id(str(part.relation))}")
        for column, term in (("s", part.subject), ("o", part.object)):
            value = f"t{number}.{column}"
            tests.append(f"{value} = {names.setdefault(term, value)}")
    tests += [f"{names[part.left]} != {names[part.right]}" for part in rule.inequalities]
    body = f"SELECT 1 FROM {', '.join(tables)} WHERE {' AND '.join(tests)}"
    return f"n.r = {graph.relation_id(str(rule.head.relation))} AND EXISTS ({body})"


@pytest.mark.parametrize(
    ("name", "adjacent", "settings"),
    [
        pytest.param("WN-inver", 0.55, {}, marks=pytest.mark.slow),
        pytest.param("WN-hier", 0.55, {}, marks=pytest.mark.slow),
        pytest.param("WN-comp", 0.55, {"k2": 500}, marks=pytest.mark.slow),
        ("WN-trian", 0.70, {"k2": 800}),
        pytest.param("WN-diam", 0.72, {"k2": 400}, marks=pytest.mark.slow),
        pytest.param("FB-hier", 0.55, {"k1": 40}, marks=pytest.mark.slow),
        pytest.param("FB-inter", 0.55, {"k1": 40}, marks=pytest.mark.slow),
    ],
)
def test_no_shortcut_solves_near_misses(data_folder, name, adjacent, settings):
    """The bounds that near misses are made for; the seed is fixed, and so are the figures."""
    benchmark = made(data_folder, name, **settings)
    plain = accuracies(benchmark)
    assert plain["relation-name"] == pytest.approx(0.5, abs=0.01)
    assert plain["adjacent"] <= adjacent
    assert derivable(benchmark) == 0
    found = audit(benchmark)
    assert not [finding for finding in found.findings if finding.severity == "error"]
    assert found.oracle["nm"]["accuracy"] == 1.0
    twins = made(data_folder, name, ("all",), **settings)
    assert derivable(twins) == 0
    matched = accuracies(twins)
    assert matched["relation-name"] == pytest.approx(0.5, abs=0.01)
    assert max(matched[shortcut] for shortcut in POPULARITY) <= 0.6
    assert matched["adjacent"] == pytest.approx(0.5, abs=0.01)


def test_symmetry_stays_near_its_bound(data_folder):
    """On WN18RR another relation connects 0.25 % of the conclusions: 74.9 % is the least there is.

    It is a little more, since near misses are scarce: no split is served before another.
    """
    benchmark = made(data_folder, "WN-sym")
    plain = accuracies(benchmark)
    assert plain["relation-name"] == pytest.approx(0.5, abs=0.01)
    assert max(plain.values()) == plain["adjacent"]
    assert 0.748 < plain["adjacent"] < 0.758
    assert derivable(benchmark, benchmark.positives) > len(benchmark.provenance.triples), "it can be seen"
    assert max(plain[shortcut] for shortcut in POPULARITY) <= 0.6
    assert derivable(benchmark) == 0
    assert audit(benchmark).ok


def test_where_conclusions_can_be_chosen_symmetry_has_no_shortcut(data_folder):
    benchmark = made(data_folder, "FB-sym", ("all",), k1=25)
    assert max(accuracies(benchmark).values()) <= 0.6
    assert derivable(benchmark) == 0
    assert audit(benchmark).ok
