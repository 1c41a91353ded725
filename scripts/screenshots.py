"""Write pictures of a report: one of each kind of page, 1200 pixels wide.

    python scripts/screenshots.py SITE OUT [--theme dark] [--width 390]

Uses the browser of the tests, see tests/support/real_browser.py.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.real_browser import browser, missing, open_page, picture, resize, wait

# What to call the picture, the pages that will do, and where in the page.
KINDS = (
    ("overview", "index.html", ""),
    ("benchmarks", "benchmarks.html", ""),
    ("benchmark", "benchmarks/", ""),
    ("systems", "systems.html", ""),
    ("system", "systems/", ""),
    ("learned", "learned.html", ""),
    ("rules", "rules.html", ""),
    ("ranking", "ranking.html", ""),
    ("explorer", "explorer.html", "#triple=0"),
)


def main() -> None:
    """Read the command line and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path, help="folder of a report")
    parser.add_argument("out", type=Path, help="folder for the pictures")
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--width", type=int, default=1200, help="in pixels")
    parser.add_argument("--height", type=int, default=1600, help="at most, in pixels")
    parser.add_argument("--prefer", default="", help="text in the name of the benchmark's or system's page")
    given = parser.parse_args()
    reason = missing()
    if reason is not None:
        parser.exit(2, f"error: {reason}\n")
    pages = json.loads((given.site / "report.json").read_bytes())["pages"]
    given.out.mkdir(parents=True, exist_ok=True)
    with browser() as driver:
        for name, start, fragment in KINDS:
            found = [page for page in pages if page.startswith(start)]
            found.sort(key=lambda page: given.prefer not in page)
            if not found:
                continue
            resize(driver, given.width)
            open_page(driver, given.site / found[0], fragment)
            if name == "explorer":
                wait(driver, "!document.querySelector('#explorer .detail').hidden")
            if driver.execute_script("return LogInfer.dark() ? 'dark' : 'light'") != given.theme:
                driver.execute_script("document.getElementById('theme').click()")
            picture(driver, given.out / f"{name}.png", given.width, given.height)
            print(given.out / f"{name}.png")


if __name__ == "__main__":
    main()
