"""The figures of README: systems and the best shortcut on WN18RR's triangles, with three kinds of negatives.

`python scripts/readme_figures.py FOLDER` builds the benchmark and runs the systems in FOLDER (half an hour; what
is there is kept), and writes results/readme.json, the picture of README and the table to paste. WN18RR must be in
the folder named by LOGINFER_DATA.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RECIPE = (
    "wn18rr --pattern triangle --negatives pa --negatives qg --negatives nm --match all --select twins --ratio 7:1:2"
)
NEGATIVES = {"pa": "position-aware", "qg": "query-guided", "nm": "twins"}
SYSTEMS = {"transe": "TransE", "rotate": "RotatE", "complex": "ComplEx", "anyburl": "AnyBURL", "contrast": "contrast"}
SHORTCUT, ORACLE = "best shortcut", "oracle"
SEEDS = 3


def run(folder: Path) -> None:
    """Build and evaluate what is not there yet."""

    def loginfer(words: str) -> None:
        subprocess.run([sys.executable, "-m", "loginfer", *words.split()], cwd=folder, check=True)  # noqa: S603

    if not (folder / "bench").exists():
        loginfer(f"build {RECIPE} --out bench")
    for method in NEGATIVES:
        for system in (*SYSTEMS, ORACLE):
            target = folder / "runs" / method / system
            if not any((target / name).exists() for name in ("manifest.json", "summary.json")):
                seeds = "" if system == ORACLE else f"--seeds {SEEDS}"
                command = f"evaluate bench --negatives {method} --system {system} {seeds} --ranking none"
                loginfer(f"{command} --out runs/{method}/{system}")


def figures(folder: Path) -> list[dict[str, Any]]:
    """Return a row for each kind of negatives and each system, shortcut and oracle included; shares of one."""
    rows = []
    for method, title in NEGATIVES.items():
        for system, name in {**SYSTEMS, ORACLE: ORACLE}.items():
            target = folder / "runs" / method / system
            several = (target / "summary.json").exists()
            first = target / "seed-0" if several else target
            answer = json.loads((target / ("summary.json" if several else "metrics.json")).read_bytes())
            interval = answer["interval"]["metrics"]["balanced_accuracy"] if several else None
            row = {"negatives": title, "system": name, "accuracy": answer["metrics"]["balanced_accuracy"]}
            rows.append(row | {"interval": interval})
            if system == ORACLE:
                best = json.loads((first / "diagnosis.json").read_bytes())["best_shortcut"]
                row = {"negatives": title, "system": SHORTCUT, "accuracy": best["balanced_accuracy"]}
                rows.append(row | {"interval": best["interval"]})
    return rows


def chart(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the picture: a line for each system, falling from the left to the right, beside the best shortcut's."""
    order = list(NEGATIVES.values())
    values = [
        {
            "negatives": row["negatives"],
            "system": row["system"],
            "accuracy": 100 * row["accuracy"],
            "low": 100 * row["interval"][0] if row["interval"] else None,
            "high": min(100.0, 100 * row["interval"][1]) if row["interval"] else None,
            "dashed": row["system"] in (SHORTCUT, ORACLE),
        }
        for row in rows
    ]
    axis = {"field": "negatives", "type": "ordinal", "sort": order, "title": None}
    colours = ["#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#222222", "#9a9a9a"]
    colour = {
        "field": "system",
        "scale": {"domain": [*SYSTEMS.values(), SHORTCUT, ORACLE], "range": colours},
        "legend": None,
    }
    accuracy = {"field": "accuracy", "type": "quantitative", "title": "balanced accuracy on test, %"}
    accuracy["scale"] = {"domain": [45, 102]}
    lines = {
        "mark": {"type": "line", "strokeWidth": 2.5, "point": {"size": 50, "filled": True}},
        "encoding": {
            "x": {**axis, "axis": {"labelAngle": 0, "labelFontSize": 14, "grid": True}},
            "y": accuracy,
            "color": colour,
            "strokeDash": {"field": "dashed", "scale": {"range": [[1, 0], [6, 4]]}, "legend": None},
        },
    }
    spans = {
        "mark": {"type": "rule", "strokeWidth": 1.5},
        "encoding": {
            "x": axis,
            "y": {"field": "low", "type": "quantitative"},
            "y2": {"field": "high"},
            "color": colour,
        },
    }
    labels = {
        "transform": [{"filter": f"datum.negatives == '{order[-1]}'"}],
        "mark": {"type": "text", "align": "left", "dx": 10, "fontSize": 14},
        "encoding": {
            "x": axis,
            "y": {"field": "label", "type": "quantitative"},
            "text": {"field": "system"},
            "color": colour,
        },
    }
    # Labels of lines that end close to each other move apart.
    last = sorted((value for value in values if value["negatives"] == order[-1]), key=lambda value: value["accuracy"])
    below = 0.0
    for value in last:
        value["label"] = below = max(value["accuracy"], below + 3)
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "data": {"values": values},
        "width": 560,
        "height": 300,
        "padding": {"left": 5, "right": 30, "top": 5, "bottom": 5},
        "background": "white",
        "layer": [lines, spans, labels],
        "config": {"axis": {"labelFontSize": 13, "titleFontSize": 13}, "view": {"stroke": None}},
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table of README."""
    kinds = list(NEGATIVES.values())
    lines = [f"| balanced accuracy, % | {' | '.join(kinds)} |", f"|---|{'--:|' * len(kinds)}"]
    for system in (*SYSTEMS.values(), SHORTCUT, ORACLE):
        cells = []
        for kind in kinds:
            row = next(row for row in rows if (row["system"], row["negatives"]) == (system, kind))
            low_high = row["interval"]
            text = f"{100 * row['accuracy']:.1f}"
            cells.append(f"{text} ({100 * low_high[0]:.1f} to {100 * low_high[1]:.1f})" if low_high else text)
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, and write the figures."""
    import vl_convert

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    run(folder)
    rows = figures(folder)
    (ROOT / "results" / "readme.json").write_text(json.dumps({"recipe": RECIPE, "rows": rows}, indent=1) + "\n")
    (ROOT / "docs" / "images" / "shortcuts.svg").write_text(vl_convert.vegalite_to_svg(chart(rows)))
    print(table(rows))


if __name__ == "__main__":
    main()
