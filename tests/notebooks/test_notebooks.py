"""The notebooks of the examples: stored clean, executed to the last cell, with what they promise."""

import json
import re
from pathlib import Path

import pytest
from tests.support.notebook_runner import NOTEBOOKS, install_kernel, run, shown

pytest.importorskip("ipykernel")
pytest.importorskip("nbclient")

NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))

# What the program itself says while it compiles or works, and what the kernel says about its transport.
QUIET = re.compile(r"loginfer: compiling kernels|Kernel is running over TCP")


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """Give a function that returns an executed notebook; each is executed once."""
    folder = tmp_path_factory.mktemp("notebooks")
    made = {}

    def execute(name):
        if name not in made:
            made[name] = run(name, folder)
        return made[name]

    with pytest.MonkeyPatch.context() as patch:
        for key, value in install_kernel(folder).items():
            patch.setenv(key, value)
        patch.delenv("LOGINFER_DATA", raising=False)
        yield execute


def test_there_are_two_notebooks():
    assert NAMES == ["first-steps.ipynb", "your-own-model.ipynb"]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_stored_without_outputs_and_without_traces_of_a_machine(name):
    import nbformat

    text = (NOTEBOOKS / name).read_text(encoding="utf-8")
    stored = json.loads(text)
    nbformat.validate(stored)
    assert text == json.dumps(stored, indent=1, ensure_ascii=False) + "\n"
    assert stored["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in stored["cells"]:
        assert cell["metadata"] == {}
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_of_a_notebook_runs_and_complains_about_nothing(name, executed):
    notebook = executed(name)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error"
            if output.output_type == "stream" and output.name == "stderr":
                strange = [line for line in output.text.splitlines() if line and not QUIET.search(line)]
                assert not strange, cell.source


def test_the_first_steps_lead_from_a_graph_to_a_report(executed):
    graph, benchmark, rule, near, positive, negative, audit, embedding, miner, read, report = shown(
        executed("first-steps.ipynb")
    )
    assert graph.startswith("KnowledgeGraph(67,464 triples")
    assert ">university<" in benchmark
    assert benchmark.count("li-rule") - benchmark.count(".li-rule") == 5
    assert 'title="http://swat.cse.lehigh.edu/onto/univ-bench.owl#' in rule
    assert near.count('class="loginfer ') == 4
    assert "follows from K by rule" in positive
    assert "near miss of rule" in negative
    assert "would follow" in negative
    assert '<span class="li-good">ok</span>' in audit
    for result in (embedding, miner):
        assert "chosen on valid for the best accuracy" in result
    figures = re.findall(r"(\w+) +([\d.]+)% right, (\d) of 5 rules learned, (\d) not told apart", read)
    (first, weak, few, _), (second, strong, many, untested) = figures
    assert (first, second) == ("distmult", "exact")
    assert float(strong) > 85 > float(weak)
    assert int(many) >= max(1, int(few))
    assert int(many) + int(untested) >= 3
    page = Path(re.search(r"open (.+index\.html): (\d+) pages", report)[1])
    assert "First steps" in page.read_text(encoding="utf-8")


def test_a_model_of_ones_own_lies_between_the_baseline_and_the_oracle(executed):
    cells = shown(executed("your-own-model.ipynb"))
    assert "'test_neg': one finite number for each of the 100 triples" in cells[1]
    assert "two steps on university" in cells[5]
    rows = dict(re.findall(r"^([\w ]+?) +accuracy +([\d.]+)%", cells[6], re.MULTILINE))
    accuracy = {name: float(value) for name, value in rows.items()}
    assert list(accuracy) == ["popularity", "two steps", "SimpBL", "oracle"]
    assert max(accuracy["SimpBL"], accuracy["popularity"]) < 65 < 95 < accuracy["two steps"]
    assert accuracy["oracle"] == 100
    verdicts = re.findall(r"^(popularity|two steps) +recall +[\d.]+% +(.+)$", cells[7], re.MULTILINE)
    by_model = {
        model: [verdict for name, verdict in verdicts if name == model] for model in ("two steps", "popularity")
    }
    assert sorted(by_model["two steps"]) == ["learned"] * 2 + ["untested"] * 3
    assert not {"learned", "untested"} & set(by_model["popularity"])
    assert cells[8].splitlines() == [f"accuracy {accuracy['two steps']:.1f}%", "", "True"]


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_shows_each_notebook_as_it_is_with_its_outputs(name):
    stored, page = (
        json.loads((folder / name).read_text()) for folder in (NOTEBOOKS, NOTEBOOKS.parents[1] / "docs" / "notebooks")
    )
    assert [cell["source"] for cell in page["cells"]] == [cell["source"] for cell in stored["cells"]]
    assert any(cell.get("outputs") for cell in page["cells"])
    assert not re.search(r"/(tmp|home|root|Users)/", json.dumps(page))
