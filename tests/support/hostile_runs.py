"""A benchmark whose names try to break out of pages, with runs: built as anybody would build one."""

import numpy as np

NAMES = (
    "<script>alert(1)</script>",
    "a\"b'c & d",
    "http://example.org/" + "a/very/long/path/" * 12 + "ending#thing",
    "zażółć gęślą 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 名前",
    "</script><img src=x onerror=alert(2)>",
    "{{ 7 * 7 }} ${7*7} `7`",
    "=HYPERLINK(0)",
    "javascript:alert(3)",
)
RELATIONS = ("<b>likes</b>", "http://example.org/ns#" + "knows" * 30, "</script><script>alert(4)</script>")


def hostile_benchmark(folder):
    """Build the benchmark into a folder and return it."""
    from loginfer.benchmark import Recipe, build, load_benchmark, write_benchmark
    from loginfer.kg import KnowledgeGraph

    draw = np.random.default_rng(7)
    people = [*NAMES, *(f"person {number} <i>" for number in range(30))]
    triples = [
        (people[s], RELATIONS[r], people[o])
        for r in range(2)
        for s, o in draw.integers(len(people), size=(120, 2)).tolist()
    ]
    triples.append((people[0], RELATIONS[2], people[1]))
    graph = KnowledgeGraph.from_names(triples, type_predicate="")
    recipe = Recipe(
        "hostile.tsv", patterns=("composition",), k1=2, k2=250, negatives=("pa", "qg"), allow_fewer=True,
        min_new=1, name="<i>Hostile</i> & co", type_predicate="",
    )  # fmt: skip
    write_benchmark(build(recipe, graph), folder)
    return load_benchmark(folder)


def hostile_runs(folder):
    """Make the benchmark and the runs of three systems in a folder; return the folder."""
    from loginfer.evaluation import evaluate

    benchmark = hostile_benchmark(folder / "hostile")
    for system, settings in (("simpbl", {}), ("transe", {"epochs": 1}), ("oracle", {})):
        out = folder / "runs" / system
        evaluate(benchmark, system, settings=settings, negatives="qg", ranking=("filtered",), out=out)
    return folder
