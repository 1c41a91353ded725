"""Which settings need the whole graph in memory, also where an engine would leave it in files."""

from __future__ import annotations

from loginfer.benchmark.recipe import Recipe

__all__ = ["settings_in_memory"]

# Methods that compare with every triple of train.
_METHODS = ("rc", "nm")


def settings_in_memory(recipe: Recipe) -> list[str]:
    """Return the settings of a recipe that bring the whole graph into memory, as the command line has them.

    All others leave a graph that is in a database there.
    """
    found = [f"negatives {method}" for method in recipe.negatives if method in _METHODS]
    found += [name for name in ("flipped", "missing", "inductive") if getattr(recipe, name)]
    # The overlap of rules, and the best heads, are measured on all triples.
    found += [f"select {recipe.select}"] if recipe.select != "support" else []
    found += [f"head {recipe.head}"] if recipe.head != "drawn" else []
    return [f"--{name}" for name in found]
