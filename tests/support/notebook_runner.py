"""Running notebooks with the interpreter of the tests, whatever kernels are installed on the machine."""

import json
import sys
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"


def install_kernel(folder):
    """Write a kernel that is this very interpreter; return the environment in which it is the only one."""
    place = folder / "data" / "kernels" / "python3"
    place.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    about = {"argv": command, "display_name": "Python 3", "language": "python"}
    (place / "kernel.json").write_text(json.dumps(about))
    folders = {
        "JUPYTER_PATH": "data",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTER_CONFIG_DIR": "config",
        "IPYTHONDIR": "ipython",
        "TMPDIR": "temporary",
    }
    for name in folders.values():
        (folder / name).mkdir(exist_ok=True)
    return {key: str(folder / name) for key, name in folders.items()} | {"JUPYTER_NO_CONFIG": "1"}


def run(name, folder):
    """Execute a notebook in a folder; an error in a cell is one here."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    place = {"metadata": {"path": str(folder)}}
    # Seconds that only a very busy machine needs.
    NotebookClient(notebook, timeout=1200, startup_timeout=300, resources=place).execute()
    return notebook


def shown(notebook):
    """Return what the cells of a notebook show, one text a cell: HTML where there is some."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        pieces = []
        for output in cell.outputs:
            if output.output_type == "stream":
                pieces += [output.text] if output.name == "stdout" else []
            else:
                pieces.append(output.data.get("text/html") or output.data["text/plain"])
        found.append("\n".join(pieces))
    return found
