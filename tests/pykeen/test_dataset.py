"""Benchmarks as PyKEEN's data sets: the same triples under the same ids, found by PyKEEN under a name."""

import dataclasses
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from pykeen.datasets import Dataset, get_dataset
from pykeen.models import InductiveNodePiece
from pykeen.training import SLCWATrainingLoop
from tests.support.made_up_benchmarks import family

import loginfer.pykeen
from loginfer.benchmark import Recipe, build
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph
from loginfer.pykeen import LogInfer, LogInferInductive

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path):
    family().save(tmp_path / "bench")
    return tmp_path / "bench"


def rows(factory):
    return factory.mapped_triples.numpy()


def inductive():
    draw = np.random.default_rng(2)
    names = [f"e{i:02}" for i in range(60)]
    edges = {(names[a], ("p", "q")[a % 2], names[b]) for a, b in draw.integers(0, 60, (400, 2)).tolist()}
    recipe = Recipe("random", rules=("(x,p,y), (y,q,z) -> (x,h,z)",), k2=60, inductive=True, inductive_share=0.4)
    return build(recipe, KnowledgeGraph.from_names(sorted(edges)))


# -- the data set ------------------------------------------------------------------------------------


def test_triples_and_ids_are_the_benchmarks_own(folder):
    benchmark = loginfer.load_benchmark(folder)
    made = loginfer.pykeen.dataset(folder)
    assert isinstance(made, Dataset)
    for factory, split in ((made.training, "train"), (made.validation, "valid"), (made.testing, "test")):
        assert np.array_equal(rows(factory), benchmark.positives[split])
        assert list(factory.entity_to_id) == list(benchmark.graph.entities)
        assert list(factory.relation_to_id) == list(benchmark.graph.relations)
        assert list(factory.entity_to_id.values()) == list(range(len(benchmark.graph.entities)))
    labelled = made.training.label_triples(made.training.mapped_triples).tolist()
    assert [tuple(row) for row in labelled] == benchmark.graph.names(benchmark.positives.train)


def test_negatives_stand_beside_the_factories_by_method_and_split(folder):
    benchmark = loginfer.load_benchmark(folder)
    made = loginfer.pykeen.dataset(benchmark)
    assert list(made.negatives) == ["pa", "qg"]
    for method, found in made.negatives.items():
        splits = benchmark.negatives[method].splits
        for tensor, triples in zip(
            (found.training, found.validation, found.testing), (t for _, t in splits.items()), strict=True
        ):
            assert tensor.dtype == torch.long
            assert np.array_equal(tensor.numpy(), triples)


def test_metadata_are_the_name_and_the_facts_of_the_manifest(folder):
    made = loginfer.pykeen.dataset(folder)
    assert made.metadata["name"] == "Family & co"
    assert made.metadata["kg"] == made.benchmark.manifest["kg"]
    assert "Family & co" in repr(made)
    assert "Training" in made.summary_str()


def test_a_benchmark_without_valid_has_no_validation_factory():
    assert loginfer.pykeen.dataset(family(valid=False)).validation is None


def test_inverse_triples_are_pykeens():
    made = loginfer.pykeen.dataset(family(), create_inverse_triples=True)
    assert made.create_inverse_triples
    assert made.num_relations == 2 * len(made.benchmark.graph.relations)
    assert not made.testing.create_inverse_triples


# -- inductive benchmarks ----------------------------------------------------------------------------


def test_an_inductive_benchmark_is_an_inductive_data_set_with_the_same_ids():
    benchmark = inductive()
    made = loginfer.pykeen.dataset(benchmark)
    assert isinstance(made, LogInferInductive)
    assert np.array_equal(rows(made.transductive_training), benchmark.positives.train)
    assert np.array_equal(rows(made.inductive_inference), benchmark.context.triples)
    assert np.array_equal(rows(made.inductive_testing), benchmark.positives.test)
    assert np.array_equal(rows(made.transductive_validation), benchmark.positives.valid)
    assert made.inductive_validation is None
    assert made.create_inverse_triples
    assert list(made.negatives) == list(benchmark.negatives)
    assert "Inductive Inference" in made.summary_str()


@pytest.mark.filterwarnings("ignore:Training instances are always shuffled:DeprecationWarning")
def test_an_inductive_model_of_pykeens_learns_from_it():
    made = loginfer.pykeen.dataset(inductive())
    model = InductiveNodePiece(
        triples_factory=made.transductive_training, inference_factory=made.inductive_inference,
        num_tokens=2, embedding_dim=8, random_seed=0,
    )  # fmt: skip
    loop = SLCWATrainingLoop(
        model=model, triples_factory=made.transductive_training, mode="training",
        automatic_memory_optimization=False,
    )  # fmt: skip
    loop.train(made.transductive_training, num_epochs=1, use_tqdm=False, pin_memory=False)
    scores = model.predict_hrt(made.inductive_testing.mapped_triples, mode="testing")
    assert torch.isfinite(scores).all()


def test_the_class_for_other_benchmarks_refuses_an_inductive_one():
    with pytest.raises(InputError, match="is inductive"):
        LogInfer(inductive())
    with pytest.raises(InputError, match="is not inductive"):
        LogInferInductive(family())


# -- found by PyKEEN ---------------------------------------------------------------------------------


def test_get_dataset_reads_the_folder_each_time_not_a_copy(folder):
    def asked():
        return get_dataset(dataset="LogInfer", dataset_kwargs={"path": str(folder)})

    first = asked()
    assert isinstance(first, LogInfer)
    assert first.negatives.keys() == {"pa", "qg"}
    dataclasses.replace(family(methods=("pa",)), name="other").save(folder, force=True)
    again = asked()
    assert isinstance(again, LogInfer)
    assert (again.benchmark.name, list(again.negatives)) == ("other", ["pa"])


def test_get_dataset_means_the_current_folder_by_a_relative_path(tmp_path, monkeypatch):
    for name in ("one", "two"):
        dataclasses.replace(family(), name=name).save(tmp_path / name / "bench")
        monkeypatch.chdir(tmp_path / name)
        assert get_dataset(dataset="LogInfer", dataset_kwargs={"path": "bench"}).benchmark.name == name


def test_get_dataset_takes_inverse_triples_from_its_copy_too(folder):
    for wanted in (False, True, True, False):
        made = get_dataset(dataset="LogInfer", dataset_kwargs={"path": str(folder), "create_inverse_triples": wanted})
        assert made.create_inverse_triples is wanted


def test_a_benchmark_without_folder_is_kept_as_pykeen_keeps_data_sets(tmp_path):
    made = loginfer.pykeen.dataset(family())
    made.to_directory_binary(tmp_path / "kept")
    again = LogInfer.from_directory_binary(tmp_path / "kept")
    assert torch.equal(again.training.mapped_triples, made.training.mapped_triples)


def test_benchmarks_that_look_the_same_are_not_taken_for_one_another():
    one = family()
    other = dataclasses.replace(one, manifest={**one.manifest, "seed": 1})
    assert repr(one) == repr(other)
    for benchmark in (one, other, one):
        made = get_dataset(dataset="LogInfer", dataset_kwargs={"path": benchmark})
        assert made.benchmark is benchmark


def test_without_a_path_one_message_says_how_to_give_it():
    with pytest.raises(InputError, match="needs a benchmark's folder"):
        LogInfer()


def test_pykeen_can_sort_it_among_its_own():
    assert LogInfer.docdata("statistics", "triples") == 0


POINTS = {"loginfer": "loginfer.pykeen:LogInfer"}


def test_the_package_declares_the_entry_point():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pykeen.datasets"] == POINTS


def with_entry_points(tmp_path):
    """Return a folder that looks like an installed package with our entry point."""
    info = tmp_path / "path" / "bridge_of_a_test-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bridge-of-a-test\nVersion: 1\n")
    lines = [f"{name} = {target}" for name, target in POINTS.items()]
    (info / "entry_points.txt").write_text("\n".join(["[pykeen.datasets]", *lines, ""]))
    return info.parent


FIRST = {
    "PyKEEN first": "import pykeen.datasets",
    "the bridge first": "from loginfer.pykeen import LogInfer",
    "the sampler first": "from loginfer.pykeen import ExplicitNegativeSampler",
}


@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST)
def test_pykeen_finds_the_data_set_whoever_is_imported_first_and_imports_little_for_it(tmp_path, first):
    script = f"""
        import sys
        {first}
        from pykeen.datasets import dataset_resolver, has_dataset
        assert has_dataset("LogInfer"), sorted(dataset_resolver.lookup_dict)
        import loginfer.pykeen
        assert dataset_resolver.lookup("loginfer") is loginfer.pykeen.LogInfer
        heavy = [name for name in sys.modules if name.startswith(("loginfer.benchmark", "loginfer.systems"))]
        assert not heavy and "numba" not in sys.modules, heavy
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False,
        env={"PYTHONPATH": f"{with_entry_points(tmp_path)}:{ROOT / 'src'}", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "could not load" not in done.stderr
