"""The example of a system of one's own is short, and is the one that the documentation shows."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "examples" / "own_system.py").read_text()


def test_the_example_of_the_documentation_is_the_one_in_the_folder():
    page = (ROOT / "docs" / "evaluation.md").read_text()
    shown = page.split("class CommonNeighbours", 1)[1].split("```", 1)[0]
    kept = EXAMPLE.split("class CommonNeighbours", 1)[1]
    comments = ("Look at P_train.", "Give int32[n, 3], subject, relation, object, one number each.")
    for comment in comments:
        kept = kept.replace(f'        """{comment}"""\n', "")
    assert shown.strip() == kept.strip()


def test_the_example_has_at_most_twenty_lines():
    code = EXAMPLE.split("import numpy", 1)[1].splitlines()
    assert len([line for line in code if line.strip()]) <= 20
