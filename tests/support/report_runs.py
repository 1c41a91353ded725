"""What tests of the report share: a few runs that are made once."""

from pathlib import Path

import pytest

from tests.support.made_up_benchmarks import family

SMALL_METHODS = ("pa", "qg")

# System, settings, seed.
SMALL_SYSTEMS = (("simpbl", {}, 0), ("transe", {"epochs": 1}, 0), ("transe", {"epochs": 1}, 1), ("oracle", {}, 0))


@pytest.fixture(scope="session")
def small_runs(tmp_path_factory) -> Path:
    """A folder with a benchmark, `family`, and the runs of three systems on the negatives of two methods.

    A run's folder is `runs/<system>-<method>-<seed>`. Do not write into it: all tests share it.
    """
    from loginfer.benchmark import load_benchmark, write_benchmark
    from loginfer.evaluation import evaluate

    folder = tmp_path_factory.mktemp("small")
    write_benchmark(family(methods=SMALL_METHODS), folder / "family")
    benchmark = load_benchmark(folder / "family")
    for method in SMALL_METHODS:
        for system, settings, seed in SMALL_SYSTEMS:
            out = folder / "runs" / f"{system}-{method}-{seed}"
            evaluate(
                benchmark,
                system,
                settings=settings,
                seed=seed,
                negatives=method,
                ranking=("filtered", "given", "unfiltered"),
                out=out,
            )
    return folder


@pytest.fixture(scope="session")
def suite_runs(tmp_path_factory) -> Path:
    """A folder with runs of `transe` and `simpbl` on two small benchmarks that have names of the suite.

    A run's folder is `<system>-<method>`; the benchmarks' folders are not there.
    """
    from dataclasses import replace

    from loginfer.evaluation import evaluate

    folder = tmp_path_factory.mktemp("suite")
    for method in SMALL_METHODS:
        benchmark = replace(family(methods=(method,)), name=f"LogInfer-FB-inter-{method}")
        for system, settings in (("transe", {"epochs": 1}), ("simpbl", {})):
            evaluate(benchmark, system, settings=settings, out=folder / f"{system}-{method}")
    return folder
