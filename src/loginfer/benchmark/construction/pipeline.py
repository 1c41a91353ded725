"""The three steps, one after the other: from a recipe to a benchmark."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loginfer.benchmark.benchmark import Benchmark, Splits
from loginfer.benchmark.construction.positives import (
    Positives,
    choose_paired,
    deepen,
    distribute,
    paired_sample,
    rules_with_twins,
    universe,
    widened,
    with_twins,
)
from loginfer.benchmark.construction.rules import Selection, given_rules, named_patterns, select_rules
from loginfer.benchmark.folder.writing import check_output, write_benchmark
from loginfer.benchmark.negatives import Context, sample_negatives
from loginfer.benchmark.negatives.methods import method_named
from loginfer.benchmark.program import Rounds, refuse_negations
from loginfer.benchmark.recipe import Recipe, recipe_of, recipe_settings
from loginfer.engine import Engine, extend, open_engine_in
from loginfer.engine.registry import ENGINES
from loginfer.errors import UnknownNameError
from loginfer.kg import KnowledgeGraph, load_graph
from loginfer.logic.rule import Rule
from loginfer.progress import Progress, ProgressChoice, shown

if TYPE_CHECKING:
    from loginfer.benchmark.construction.inductive import Sides


@dataclass(frozen=True)
class Foundation:
    """Rules and positives, on which any methods for negatives can be built.

    Parameters
    ----------
    recipe
        What was asked for.
    selection
        Step 1.
    positives
        Step 2.
    context
        What step 3 needs; its intermediate results are shared by all methods.
    sides
        Of an inductive benchmark: the two sides of K; `context` is that of the train side.
    """

    recipe: Recipe
    selection: Selection
    positives: Positives
    context: Context
    sides: Sides | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know."""
        return (*self.selection.notes, *self.positives.notes)

    def benchmark(self, methods: Sequence[str] | None = None, name: str | None = None) -> Benchmark:
        """Return the benchmark with the negatives of these methods, by default those of the recipe."""
        recipe = self.recipe.changed(negatives=tuple(methods or self.recipe.negatives), name=name or self.recipe.name)
        splits = self.positives.splits
        sample = partial(sample_negatives, self.context) if self.sides is None else self.sides.negatives
        kg = self.context.kg if self.context.rounds is None else self.context.rounds.kg
        benchmark = Benchmark(
            name=recipe.name or default_name(recipe),
            graph=splits.train_graph(self.context.kg),
            positives=splits,
            negatives={method: sample(method) for method in recipe.negatives},
            rules=self.selection.rules,
            provenance=self.positives.provenance,
            recipe=recipe,
            passed_over=self.selection.passed_over,
            notes=self.notes,
            context=None if self.sides is None else self.sides.division.test,
            stored_kg=None if kg.in_memory else kg,
        )
        if not (recipe.flipped or recipe.missing):
            return benchmark
        from loginfer.benchmark.construction.noise import add_noise

        return add_noise(benchmark, recipe, self.context.open_engine)


def default_name(recipe: Recipe) -> str:
    """Return a name for a benchmark that has none: graph, patterns, methods, and what is not as usual."""
    patterns = ["pattern" if "->" in pattern else pattern for pattern in recipe.patterns]
    file = " ".join(Path(recipe.kg).name.split())
    graph = file.split(".")[0] or file
    variants = [f"{key}{share:g}" for key in ("flipped", "missing") if (share := getattr(recipe, key))]
    variants += ["inductive"] if recipe.inductive else []
    variants += [recipe.protocol] if recipe.protocol != "sound" else []
    variants += [recipe.select] if recipe.select != "support" else []
    variants += [f"depth{recipe.depth}"] if recipe.depth > 1 else []
    methods = [method_named(name).names[-1 if recipe.match else 0] for name in recipe.negatives]
    return "-".join([graph, *(patterns or ["rules"]), *methods, *variants])


def check_recipe(recipe: Recipe) -> tuple[Rule, ...]:
    """Return the given rules; a mistake in patterns or rules is reported before the graph is loaded."""
    patterns, rules = named_patterns(recipe), given_rules(recipe)
    if recipe.depth > 1:
        refuse_negations((*patterns, *rules))
    return rules


@contextlib.contextmanager
def foundation(
    recipe: Recipe,
    graph: KnowledgeGraph | None = None,
    *,
    engine: str = "native",
    progress: Progress | None = None,
    **options: Any,
) -> Iterator[Foundation]:
    """Take the first two steps of a recipe; engines are closed at the end.

    Parameters
    ----------
    recipe
        What to build.
    graph
        The graph K, if it is loaded already; otherwise the recipe's.
    engine
        `native` or `duckdb`; the result is the same.
    progress
        Called with what is being done, how much is done, and how much there is.
    **options
        Options of the engine.
    """
    rules = check_recipe(recipe)
    if graph is None:
        graph = load_graph(recipe.kg, recipe.reading)
    with contextlib.ExitStack() as stack:

        def open_engine(over: KnowledgeGraph) -> Engine:
            return open_engine_in(stack, over, engine, **options)

        over_kg = open_engine(extend(graph, rules))
        selection = select_rules(widened(recipe), over_kg, progress)

        def context(chosen: Selection, splits: Splits, rounds: Rounds | None = None) -> Context:
            premises = over_kg if rounds is None else rounds.last
            return Context(recipe, premises, open_engine, chosen.program, splits, progress, rounds=rounds)

        if recipe.select == "twins":
            candidates = context(selection, universe(over_kg.graph, selection.samples))
            selection = rules_with_twins(recipe, candidates, selection)
        if recipe.inductive:
            from loginfer.benchmark.construction.inductive import inductive_sides

            sides = inductive_sides(recipe, over_kg.graph, selection, open_engine, progress)
            yield Foundation(recipe, sides.selection, sides.positives, sides.train, sides)
            return
        rounds = None
        if recipe.depth > 1:
            rounds = Rounds(
                over_kg, selection.program, recipe.depth, open_engine, max_triples=recipe.max_triples, progress=progress
            )
            selection = deepen(recipe, selection, rounds, progress)
        twins = None
        if recipe.match:
            twins = choose_paired(context(selection, universe(over_kg.graph, selection.samples), rounds), selection)
            samples = [paired_sample(recipe, sample, twins)[: recipe.k2] for sample in selection.samples]
            selection = with_twins(selection, samples, twins)
        positives = distribute(recipe, over_kg, selection, progress, rounds)
        laid = replace(context(selection, positives.splits, rounds), twins=twins)
        yield Foundation(recipe, selection, positives, laid)


def build(
    recipe: Recipe | str | Path | KnowledgeGraph,
    graph: KnowledgeGraph | str | Path | None = None,
    *,
    out: str | Path | None = None,
    force: bool = False,
    engine: str = "native",
    progress: ProgressChoice = None,
    **settings: Any,
) -> Benchmark:
    """Build a benchmark: select rules, distribute their conclusions, sample negatives (section 3).

    Parameters
    ----------
    recipe
        What to build: a recipe, or the path of its TOML file; or a graph, its name or path, with settings.
    graph
        The graph K, if it is not the recipe's, or is loaded already.
    out
        Write it to this folder, too, as `write_benchmark` does.
    force
        Replace a benchmark that is there.
    engine
        `native` or `duckdb`; the result is the same.
    progress
        True for a bar; or called with what is being done, how much is done, and how much there is.
    **settings
        Settings of the recipe, as in its TOML file; they come before its own. Also options of the engine, such as
        `memory_limit="4GB"` for DuckDB.

    Examples
    --------
    >>> import loginfer
    >>> loginfer.build("wn18rr", patterns=["triangle"], negatives=["qg"], k1=20, out="wn-trian")  # doctest: +SKIP
    Benchmark('wn18rr-triangle-qg', 20 rules, positives 109,283 / 4,553 / 4,560, negatives qg)
    """
    if not isinstance(recipe, Recipe | str | Path):
        graph, recipe = load_graph(recipe), str(settings.pop("kg", "graph"))
    of_engine = [option.name for option in fields(ENGINES[engine].options)] if engine in ENGINES else []
    options = {name: settings.pop(name) for name in of_engine if name in settings}
    if unknown := [name for name in settings if name not in recipe_settings()]:
        raise UnknownNameError("setting", unknown[0], [*recipe_settings(), *of_engine])
    complete = recipe_of(recipe, settings)
    if graph is not None:
        graph = load_graph(graph, type_predicate=complete.type_predicate)
    if out is not None:
        check_output(out, force=force)
    with shown(progress) as show, foundation(complete, graph, engine=engine, progress=show, **options) as base:
        benchmark = base.benchmark()
        if out is not None:
            write_benchmark(benchmark, out, force=force)
        return benchmark
