"""What notebooks show: well-formed HTML that escapes every name, with the figures of the value itself."""

import dataclasses
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.made_up_benchmarks import family
from tests.support.near_miss_benchmarks import recipe_of, small_graph

import loginfer
from loginfer.benchmark import audit, build, explain_triple
from loginfer.benchmark.auditing.findings import Audit, Example, Finding
from loginfer.benchmark.explain import Derivation, TripleStory
from loginfer.evaluation import evaluate, load_run
from loginfer.logic import parse_pattern, parse_rule
from loginfer.logic.rule import Atom, Constant, Inequality, Negation, Rule, Variable, prose
from loginfer.notebook import Markup, element, fragment, table

EVIL = "<script>alert('x')</script>&\"`"
X, Y, Z = map(Variable, "xyz")


class Reading(HTMLParser):
    """Reads HTML as a browser would: elements, their titles and the text; fails where tags do not match."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.titles, self.pieces = [], [], [], []
        self.feed(html)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        assert set(known) <= {"class", "title"}, known
        self.open.append(tag)
        self.tags.append(tag)
        self.titles += [known["title"]] if "title" in known else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.pieces.append(data)

    @property
    def text(self):
        return "".join(self.pieces)


def read(value):
    found = Reading(value._repr_html_())
    assert "script" not in found.tags
    assert found.tags.count("style") == 1
    return found


@pytest.fixture(scope="module")
def benchmark():
    return build(recipe_of(), small_graph())


@pytest.fixture(scope="module")
def evil():
    """A benchmark whose every name is a script."""
    made = family()
    graph = made.graph
    triples = [tuple(f"{part}{EVIL}" for part in triple) for triple in graph.names(graph.triples)]
    rule = Rule((Atom(X, EVIL, Y), Negation(Atom(Y, f"<{EVIL}", Z))), Atom(X, f"http://x.org/{EVIL}", Y))
    rules = tuple(dataclasses.replace(known, rule=rule, pattern=EVIL) for known in made.rules)
    return dataclasses.replace(
        made, name=EVIL, rules=rules, notes=(EVIL, f"`{EVIL}`"), graph=loginfer.KnowledgeGraph.from_names(triples)
    )


# -- pieces ----------------------------------------------------------------------------------------


@given(st.text(), st.text())
def test_any_text_comes_out_as_it_went_in(inside, title):
    found = Reading(element("span", inside, kind="good", title=title))
    assert found.text == inside
    assert found.titles == ([title] if title else [])


def test_only_what_was_made_here_is_markup():
    assert element("b", "<i>") == "<b>&lt;i&gt;</b>"
    assert element("b", element("i")) == "<b><i></i></b>"
    assert element("b", Markup("<i></i>")) == "<b><i></i></b>"


def test_a_table_has_a_cell_for_each_column_and_scrolls():
    made = table(("a", "b"), [("1", "2"), ("3", "4")], numbers=("b",))
    found = Reading(made)
    assert (found.tags.count("th"), found.tags.count("td")) == (2, 4)
    assert made.startswith('<div class="li-scroll">')
    with pytest.raises(ValueError, match="argument 2"):
        table(("a", "b"), [("1",)])


def test_a_fragment_needs_nothing_from_elsewhere_and_touches_nothing_else():
    made = fragment("text")
    for word in ("http", "url(", "import", "src="):
        assert word not in made
    style = made[made.index("<style>") + 7 : made.index("</style>")]
    selectors = [s for rule in style.split("}") if "{" in rule for s in rule.split("{")[0].split(",")]
    assert len(selectors) > 15
    assert all(selector.strip().startswith(".loginfer") for selector in selectors)
    assert len(made) < 3000


def test_dollar_signs_in_names_are_no_formula():
    """Notebooks typeset what stands between two of them, but in elements of these classes."""
    rule = Rule((Atom(X, "costs $1", Y),), Atom(X, "is worth $2", Y))
    assert rule._repr_html_().startswith('<div class="loginfer tex2jax_ignore mathjax_ignore">')
    assert "costs $1" in read(rule).text


def test_what_stands_between_backticks_is_set_off():
    assert prose("see `a<b` and `c`") == "<span>see <code>a&lt;b</code> and <code>c</code></span>"
    assert prose("one ` alone") == "<span>one ` alone</span>"


def test_atoms_in_a_sentence_have_short_names_and_the_whole_ones_are_told():
    text = "`every (x,/a/film/country,z)` instead of `(x,/b/film/country,y), (y,http://x.org/in,z) -> (x,r,z)`"
    found = Reading(prose(text))
    assert found.text == "every a/film/country(x,z) instead of b/film/country(x,y) ∧ in(y,z) → r(x,z)"
    assert found.titles == [text]
    untouched = "8:1:1 (train, valid, test), f(/a/b), (a b,/c/d,e)"
    assert prose(untouched) == f"<span>{untouched}</span>"


# -- rules -----------------------------------------------------------------------------------------


def test_a_rule_shows_short_names_and_tells_the_whole_ones():
    rule = parse_rule("(x,<http://a.org/o#r>,y), (y,rdf:type,</people/person>), x != y -> (y,</r/s>,x)")
    found = read(rule)
    assert found.text == "r(x, y) ∧ type(y, person) ∧ x ≠ y → s(y, x)"
    assert found.titles == ["http://a.org/o#r", loginfer.kg.RDF_TYPE, "/people/person", "/r/s"]


def test_relations_with_the_same_last_part_are_told_apart():
    rule = parse_rule("(x,</actor/film>,y), not (y,</award/film>,z) -> (x,film,y)")
    assert read(rule).text == "actor/film(x, y) ∧ not award/film(y, z) → film(x, y)"


def test_a_pattern_shows_its_templates():
    assert read(parse_pattern("(x,_R,y), (y,type,_t) -> (x,_S,y)")).text == "_R(x, y) ∧ type(y, _t) → _S(x, y)"


def test_a_rule_with_nothing_but_a_head_is_shown():
    assert read(Rule((), Atom(Constant("a"), "r", Constant("b")))).text == " → r(a, b)"


names = st.text(min_size=1, max_size=12) | st.sampled_from([EVIL, "http://x/<b>", "/a/b", "/c/b"])


@given(names, names, names, names)
def test_whatever_a_rule_is_made_of_is_text_and_can_be_read_in_full(r, s, t, constant):
    rule = Rule((Atom(X, r, Y), Atom(Y, s, Constant(constant)), Inequality(X, Y)), Atom(X, t, Y))
    found = read(rule)
    for name in {r, s, t, constant}:
        assert name in found.titles or name in found.text


# -- benchmarks, stories, audits -------------------------------------------------------------------


def test_a_benchmark_shows_its_sizes_rules_and_notes(benchmark):
    found = read(benchmark)
    assert benchmark.name in found.text
    for size in (*benchmark.positives.sizes.values(), *benchmark.negatives["nm"].splits.sizes.values()):
        assert f"{size:,}" in found.pieces
    assert found.tags.count("tr") == 3 + 1 + len(benchmark.rules)
    for known in benchmark.rules:
        assert f"{known.support:,}" in found.pieces
    assert all(note in found.text for note in benchmark.negatives["nm"].notes)
    assert f"{len(graph_relations(benchmark)):,} relations" in found.text


def graph_relations(benchmark):
    kept = benchmark.graph.type_relation
    return [r for r in range(len(benchmark.graph.relations)) if r != kept]


def test_a_rule_of_a_benchmark_shows_its_figures(benchmark):
    known = benchmark.rules[0]
    assert f"support {known.support:,} · new {known.new:,} · sampled {known.sampled:,}" in read(known).text


def test_very_many_rules_are_counted_and_not_all_shown(benchmark):
    many = dataclasses.replace(benchmark, rules=benchmark.rules[:1] * 130)
    found = read(many)
    assert "and 30 more rules" in found.text
    assert found.tags.count("tr") == 3 + 1 + 100


def test_a_benchmark_without_rules_and_negatives_is_shown_too():
    bare = dataclasses.replace(family(methods=()), rules=(), recipe=None, provenance=None)
    assert "the rules are not known" in read(bare).text


def test_the_story_of_a_positive_shows_its_premises(benchmark):
    names = benchmark.graph.names(benchmark.positives.test[:1])[0]
    story = explain_triple(benchmark, names)
    found = read(story)
    assert found.text.startswith(f"({', '.join(names)})is in P_test")
    for premise in story.derivations[0].premises:
        assert f"because ({', '.join(premise)})" in found.text


def test_names_are_told_apart_in_all_that_a_story_or_an_audit_shows():
    first, second = "http://a.org/ann/paper", "http://a.org/bob/paper"
    premises = ((first, "/r/cites", "x1"), ("x1", "/r/cites", second))
    derivation = Derivation(0, "(x,/r/cites,y) -> (x,/s/cites,y)", {}, premises)
    text = read(TripleStory((first, "/s/cites", "x1"), ("K",), True, (derivation,), "K")).text
    assert text.startswith("(ann/paper, s/cites, x1)")
    assert "r/cites(x, y) → s/cites(x, y)" in text
    assert "(x1, r/cites, bob/paper)" in text
    examples = [Example("", None, (name, "/r/cites", "x1")) for name in (first, second)]
    text = read(Audit("a", tuple(Finding("c", "error", 1, "wrong", (example,)) for example in examples), ())).text
    assert "(ann/paper, cites, x1)" in text
    assert "(bob/paper, cites, x1)" in text


def test_the_story_of_a_near_miss_shows_what_would_have_to_be_different(benchmark):
    negatives = benchmark.negatives["nm"].splits.test
    stories = [explain_triple(benchmark, triple) for triple in negatives]
    stories = [story for story in stories if story.negatives[0].near_miss is not None]
    assert len(stories) > 10
    for story in stories:
        text = read(story).text
        told = story.negatives[0]
        assert f"near miss of rule {told.rule}" in text
        assert "would follow if " in text
        assert "does not follow: " in text
    assert any("since (" in read(story).text for story in stories)


@pytest.mark.parametrize("method", ["pa", "qg"])
def test_the_story_of_other_negatives_is_shown_too(method):
    made = family()
    for triple in made.negatives[method].splits.train:
        assert f"negative by {method} for train" in read(explain_triple(made, triple)).text


def test_an_audit_shows_its_verdict_findings_shortcuts_and_checks(benchmark):
    made = audit(benchmark)
    found = read(made)
    assert f"{benchmark.name}: ok" in found.text
    assert f"passed ({len(made.passed)})" in found.text
    assert f"skipped ({len(made.skipped)})" in found.text
    shown = made.accuracies()
    assert list(shown)[:2] == ["learned", "skeleton"]
    for name, (accuracy,) in shown.items():
        place = found.pieces.index(name)
        assert found.pieces[place + 1] == f"{100 * accuracy:.1f}"
    assert "oracle" in shown
    assert repr(made).startswith(f"Audit({benchmark.name!r}, ok: {len(made.passed)} checks passed")


def test_errors_and_examples_of_an_audit_are_escaped():
    finding = Finding(EVIL, "error", 2, f"wrong: {EVIL}", (Example(EVIL, EVIL), Example("t", None, (EVIL,) * 3)))
    made = Audit(EVIL, (finding, Finding("quiet", "note", 1, "x")), (EVIL,), {EVIL: EVIL}, {EVIL: {EVIL: {}}})
    found = read(made)
    assert "not ok" in found.text
    assert "1 error · 0 warnings · 1 note" in found.text
    assert found.text.count("<script>") >= 10
    assert "not ok: 1 checks passed, error" in repr(made)


# -- results ---------------------------------------------------------------------------------------


def test_a_result_shows_its_figures_and_what_became_of_each_rule(benchmark, tmp_path):
    made = evaluate(benchmark, "simpbl", ranking=("filtered", "given"), out=tmp_path / "run")
    found = read(made)
    assert f"simpbl on {benchmark.name}" in found.text
    for figure in (made.metrics["accuracy"], made.metrics["roc_auc"], made.ranking["given"]["c_mrr"]):
        assert f"{100 * figure:.1f}" in found.pieces
    for row in made.measures.diagnosis["rules"]:
        assert row["verdict"] in found.pieces
        assert f"{row['predicted']} of {row['conclusions']}" in found.pieces
    assert made.measures.diagnosis["summary"][0] in found.text
    run = load_run(tmp_path / "run")
    assert run._repr_html_() == made._repr_html_()
    assert repr(made).startswith(f"Evaluation('simpbl' on {benchmark.name!r}, negatives nm, accuracy ")
    assert repr(run).startswith(f"Run('simpbl' on {benchmark.name!r}, seed 0, in ")
    assert "\n" not in repr(made) + repr(run)


def test_a_result_says_how_its_threshold_came_about(benchmark):
    def told(**options):
        return read(evaluate(benchmark, "object-popularity", ranking=(), **options)).text

    assert "threshold 3, given" in told(threshold=3.0)
    assert "one threshold for each relation, chosen on valid for the best F1" in told(
        threshold="relation", criterion="f1"
    )


def test_a_result_without_negatives_or_rules_is_shown_too():
    made = evaluate(family(methods=()), "object-popularity")
    assert "has no negatives, so there is nothing to classify" in read(made).text
    assert repr(made) == "Evaluation('object-popularity' on 'Family & co')"


def test_names_that_are_scripts_are_text_everywhere(evil):
    class Model:
        def fit(self, benchmark):
            return self

        def score(self, triples):
            return np.zeros(len(triples))

    Model.__name__ = EVIL
    made = evaluate(family(), Model(), negatives="pa", ranking=("given",))
    assert EVIL in read(made).text
    assert EVIL in read(evil).text
    assert EVIL in read(evil.rules[0]).text
    story = explain_triple(family(), ("ada", "likes", "Bob ⟨x⟩"))
    assert EVIL in read(dataclasses.replace(story, triple=(EVIL, EVIL, EVIL), sets=(EVIL,), reason=EVIL)).text
