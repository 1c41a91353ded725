"""Random rules for the tests of this room."""

from __future__ import annotations

from itertools import permutations

from hypothesis import strategies as st

from loginfer.kg import RDF_TYPE
from loginfer.logic import Atom, Constant, Inequality, Negation, Rule, Variable
from loginfer.logic.rule import is_literal

AWKWARD = [
    "", " ", "a", "x", "type", "rdf:type", "not", "_R", "_t2", "?x", "X", "<", ">", "<a>", "\\",
    "\\n", "\n", "\r\n",
    "\t", "a b", "a  b", "a,b", "(a", "a)", "a(X,Y)", "a(X,b)", "a -> b", "->", "!=", "<=", "=>",
    ":-", "a.", ".", "#",
    "a #b", "%", "'", "it's", '"', '"a', '"a"', '"a b"@en', '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"a"@en-', '"a\\"b"', "@prefix", "p:q", ":p", "http://a.b/c#d", "http://a.b/c?d=e&f",
    "/award/a./b", "00260881",
    "12", "1.5", "true", "{", "}", "|", "^", "`", "\u2028", "\x00", "\x85", "\u3000", "é", "雪",
    "𝄞", "FILTER", "NOT",
    "=> b", "x != y", "[", "]", "PREFIX", "\ufeff", "∧", "→", "≠", "¬", "~", "&",
]  # fmt: skip
FRIENDLY = [
    "_hypernym", "00260881", "/people/person/nationality", "/m/02mjmr", "worksFor", "New York, NY",
    "Paris (Texas)",
    "/award/award_winner/awards_won./award/award_honor/award_winner",
    "http://swat.cse.lehigh.edu/univ-bench.owl#advisor",
]  # fmt: skip

hostile_names = st.one_of(
    st.sampled_from(AWKWARD), st.text(max_size=6), st.text(alphabet="ab<>\\\"'(),.:?#%_-=! \tXY1", max_size=8)
)
friendly_names = st.sampled_from(FRIENDLY)
relation_names = hostile_names.filter(lambda name: not is_literal(name))
VARIABLES = [Variable(name) for name in ("x", "y", "z", "w", "x'", "y2", "person", "X", "_v", "Y1", "V1")]


@st.composite
def rules(
    draw,
    names=hostile_names,
    relations=relation_names,
    inequalities=True,
    max_atoms=4,
    variables=VARIABLES,
    negations=0,
):
    constants = st.builds(Constant, names)
    terms = st.one_of(st.sampled_from(variables), st.sampled_from(variables), constants)
    predicates = st.one_of(relations, relations, st.just(RDF_TYPE))

    def atom(subject, object_):
        relation = draw(predicates)
        if relation == RDF_TYPE and draw(st.integers(0, 3)):
            return Atom(draw(subject), relation, Constant(draw(relations)))
        return Atom(draw(subject), relation, draw(object_))

    body = [atom(terms, terms) for _ in range(draw(st.integers(0, max_atoms)))]
    bound = sorted({v for a in body for v in a.variables})
    safe = st.one_of(st.sampled_from(bound), constants) if bound else constants
    head = atom(safe, safe)
    if inequalities:
        for _ in range(draw(st.integers(0, 3))):
            inequality = Inequality(draw(safe), draw(safe))
            body.insert(draw(st.integers(0, len(body))), inequality)
    for number in range(draw(st.integers(0, negations))):
        ends = st.one_of(safe, st.just(Variable(f"n{number}")))
        body.insert(draw(st.integers(0, len(body))), Negation(atom(ends, ends)))
    return Rule(body, head)


@st.composite
def small_rules(draw, max_parts=5, variables=4, relations=2, negations=0):
    """Rules in which much is equal, so that equivalence is interesting."""
    pool = [Variable(n) for n in "xyzw"[:variables]]
    terms = st.one_of(st.sampled_from(pool), st.sampled_from(pool), st.sampled_from(pool), st.just(Constant("c0")))
    relation = st.sampled_from([f"R{i}" for i in range(relations)])
    body = draw(st.lists(st.builds(Atom, terms, relation, terms), min_size=1, max_size=max_parts))
    bound = sorted({v for a in body for v in a.variables})
    safe = st.one_of(*([st.sampled_from(bound)] if bound else []), st.sampled_from([Constant("c0"), Constant("c1")]))
    room = max_parts - len(body)
    if bound and room:
        body += draw(st.lists(st.builds(Inequality, safe, safe), max_size=room))
    for number in range(draw(st.integers(0, negations))):
        ends = st.one_of(safe, st.just(Variable(f"n{number}")))
        body.append(Negation(Atom(draw(ends), draw(relation), draw(ends))))
    head = Atom(draw(safe), draw(relation), draw(safe))
    return Rule(draw(st.permutations(body)), head)


def as_sets(rule, names):
    """The rule under a renaming, with nothing left that does not count."""
    body = set()
    for part in rule.body:
        if isinstance(part, Negation):
            twice = part.terms[0] == part.terms[1]
            own = Variable("itself" if twice else "anything")
            part = part.rename(dict.fromkeys(rule.existential(part), own))
        part = part.rename(names)
        body.add(frozenset(part.terms) if isinstance(part, Inequality) else part)
    return frozenset(body), rule.head.rename(names)


def equivalent_by_definition(left, right):
    """Try all bijections of the variables."""
    mine, theirs = list(left.variables), list(right.variables)
    if len(mine) != len(theirs):
        return False
    wanted = as_sets(right, {})
    return any(as_sets(left, dict(zip(mine, order, strict=True))) == wanted for order in permutations(theirs))
