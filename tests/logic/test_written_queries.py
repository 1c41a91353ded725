from itertools import product

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.logic_strategies import small_rules

from loginfer.logic import Variable, body_to_sparql, dialect_named, parse_rule

NAMES = ["c0", "c1", "d"]
triples = st.sets(st.tuples(st.sampled_from(NAMES), st.sampled_from(["R0", "R1"]), st.sampled_from(NAMES)))


def witnesses(rule, graph):
    """Try all substitutions."""
    found = set()
    for values in product(NAMES, repeat=len(rule.variables)):
        names = dict(zip(rule.variables, values, strict=True))

        def value(term, names=names):
            return names[term] if isinstance(term, Variable) else term.name

        holds = all((value(a.subject), a.relation, value(a.object)) in graph for a in rule.atoms)

        def occurs(negation, value=value, own=()):
            """Whether there is such a triple; variables of the negation's own match anything."""
            for s, r, o in graph:
                ends = list(zip(negation.terms, (s, o), strict=True))
                fits = all(t in own or value(t) == name for t, name in ends)
                twice = len(set(negation.terms)) == 1 and s != o
                if r == negation.atom.relation and fits and not twice:
                    return True
            return False

        absent = not any(occurs(n, own=rule.existential(n)) for n in rule.negations)
        if holds and absent and all(value(i.left) != value(i.right) for i in rule.inequalities):
            found.add(values)
    return found


@settings(deadline=None, max_examples=60)
@given(small_rules(variables=3, negations=2), triples)
def test_the_sparql_of_a_body_finds_its_witnesses_and_that_of_a_rule_its_conclusions(rule, graph):
    base = "http://e.org/"
    store = ox.Store()
    store.extend(ox.Quad(*(ox.NamedNode(base + name) for name in triple)) for triple in sorted(graph))
    expected = witnesses(rule, graph)
    rows = store.query(body_to_sparql(rule), base_iri=base)
    found = {tuple(row[v.name].value.removeprefix(base) for v in rule.variables) for row in rows}
    assert found == expected
    derived = set()
    for values in expected:
        names = dict(zip(rule.variables, values, strict=True))
        ends = [names[t] if isinstance(t, Variable) else t.name for t in rule.head.terms]
        derived.add((ends[0], rule.head.relation, ends[1]))
    quads = store.query(dialect_named("sparql").write(rule), base_iri=base)
    parts = {tuple(p.value.removeprefix(base) for p in (t.subject, t.predicate, t.object)) for t in quads}
    assert parts == derived


def test_inequalities_compare_terms_not_values():
    text = body_to_sparql(parse_rule('(x,R,y), x != y, y != "1" -> (x,S,y)'))
    assert text == 'SELECT ?x ?y WHERE { ?x <R> ?y . FILTER(!sameTerm(?x, ?y)) FILTER(!sameTerm(?y, "1")) }'


def test_the_sql_of_a_rule_comes_with_its_text():
    lines = dialect_named("sql").write(parse_rule("(x,R,y) -> (y,R,x)")).split("\n")
    assert lines[0] == "-- (x,R,y) -> (y,R,x)"
    assert lines[1].startswith("SELECT")
    assert lines[-1].endswith(";")


@pytest.mark.parametrize("name", ["sparql", "sql"])
def test_queries_are_written_only(name):
    from loginfer.errors import InputError

    with pytest.raises(InputError, match="but not read"):
        dialect_named(name).read("SELECT")
