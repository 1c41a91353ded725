"""The notebooks of the examples with their outputs, for the documentation: `python scripts/notebook_pages.py`.

Executes each notebook in an empty folder and writes it to docs/notebooks. Run it again when a notebook changes; a test
compares the cells.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "notebooks"


def main() -> None:
    """Execute all notebooks."""
    TARGET.mkdir(exist_ok=True)
    for source in sorted((ROOT / "examples" / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(source, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            NotebookClient(notebook, timeout=1200, resources={"metadata": {"path": folder}}).execute()
        for cell in notebook.cells:
            # Neither times nor what the program says while it works belong on a page.
            cell.metadata.pop("execution", None)
            if cell.cell_type == "code":
                cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        notebook.metadata.pop("language_info", None)
        text = nbformat.writes(notebook).replace(f"{folder}/", "")  # where it ran is nobody's business
        (TARGET / source.name).write_text(f"{text}\n", encoding="utf-8")
        print(f"{source.name}: {len(notebook.cells)} cells")


if __name__ == "__main__":
    main()
