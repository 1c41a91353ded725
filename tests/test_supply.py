"""What comes along with LogInfer: licences of what a report passes on, notices, lower bounds, the bill of materials."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata, resources

import pytest

from loginfer.report import ReportContext, collect, write_site
from tests.support.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# Those for users, not for who works on LogInfer itself.
FOR_USERS = sorted(set(EXTRAS) - {"all", "bench", "dev", "test"})
# How each kind of licence begins, what it asks for, and how it ends.
BSD = (
    "Redistribution and use in source and binary forms, with or without modification, are permitted",
    "Redistributions in binary form must reproduce the above copyright notice",
    "EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.",
)
ISC = (
    "Permission to use, copy, modify, and/or distribute this software for any purpose",
    "appear in all copies.",
    "IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.",
)
MIT = (
    "Permission is hereby granted, free of charge, to any person obtaining",
    "The above copyright notice and this permission notice shall be included",
    "OTHER DEALINGS IN THE SOFTWARE.",
)
APACHE = (
    "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION",
    "9. Accepting Warranty or Additional Liability.",
    "END OF TERMS AND CONDITIONS",
)
PUBLIC = ("This is free and unencumbered software released into the public domain.", "OTHER DEALINGS IN THE SOFTWARE.")
# Of each author's code in the bundle: the package, its copyright notice, its licence.
PASSED_ON = [
    ("vega", "Copyright (c) 2015-2023, University of Washington Interactive Data Lab", BSD),
    ("vega-lite", "Copyright (c) 2015, University of Washington Interactive Data Lab", BSD),
    ("vega-embed", "Copyright (c) 2015, University of Washington Interactive Data Lab", BSD),
    ("vega-themes", "Copyright (c) 2016, University of Washington Interactive Data Lab", BSD),
    ("vega-tooltip", "Copyright 2016 Interactive Data Lab and contributors", BSD),
    ("vega-schema-url-parser", "Copyright (c) 2017, Vega", BSD),
    ("d3-array", "Copyright 2010-2023 Mike Bostock", ISC),
    ("d3-delaunay", "Copyright 2018-2021 Observable, Inc.", ISC),
    ("d3-geo", "Copyright 2008-2012 Charles Karney", ISC + MIT),
    ("d3-geo-projection", "Copyright 2015 Ricky Reusser", ISC + MIT),
    ("d3-scale-chromatic", "Copyright 2002 Cynthia Brewer", ISC),
    ("delaunator", "Copyright (c) 2017, Mapbox", ISC),
    ("robust-predicates", "", PUBLIC),
    ("semver", "Copyright (c) Isaac Z. Schlueter and Contributors", ISC),
    ("fast-json-patch", "Copyright (c) 2013, 2014, 2020 Joachim Wester", MIT),
    ("json-stringify-pretty-compact", "2021, 2022 Simon Lydell", MIT),
    ("vega-expression: its parser", "Copyright (C) 2013 Ariya Hidayat", BSD),
    ("vega-wordcloud: its layout", "Copyright (c) 2013, Jason Davies", BSD),
    ("Under the Apache License, Version 2.0", "The Apache Software Foundation", APACHE),
]


def sections(text: str) -> list[tuple[str, str]]:
    """Return what each part of the licence file is about, and the part with all white space alike."""
    parts = re.split(r"^={80}\n", text, flags=re.MULTILINE)[1:]
    return [(part.partition("-" * 80)[0], " ".join(part.split())) for part in parts]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("supply") / "site"
    write_site(ReportContext(collect([ROOT / "results" / name for name in ("oracle", "transe")])), folder)
    return folder


def test_a_report_carries_the_whole_licence_of_each_package_whose_code_it_passes_on(site):
    assert "LICENSES.txt" in (site / "assets" / "vega.js").read_text(encoding="utf-8")[:200]
    parts = sections((site / "assets" / "LICENSES.txt").read_text(encoding="utf-8"))
    for package, notice, licence in PASSED_ON:
        named = re.compile(rf"(^|, ){re.escape(package)}(?![\w:-])", re.MULTILINE)
        (text,) = (text for head, text in parts if named.search(head))
        assert [words for words in (notice, *licence) if words not in text] == [], package


def test_every_page_of_a_report_leads_to_the_licences(site):
    for page in site.rglob("*.html"):
        (address,) = re.findall(r'href="([^"]*LICENSES.txt)"', page.read_text(encoding="utf-8"))
        assert (page.parent / address).resolve() == (site / "assets" / "LICENSES.txt").resolve()


def test_the_licences_are_those_of_the_pinned_bundle():
    """Whoever raises the pin has to look at what the new bundle holds."""
    (pin,) = re.findall(r"^vl-convert-python==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    text = (resources.files("loginfer.report") / "assets" / "LICENSES.txt").read_text(encoding="utf-8")
    assert f"vl-convert-python {pin};" in " ".join(text.split())
    if metadata.version("vl-convert-python") == pin:
        import vl_convert

        assert f"vega {vl_convert.get_vega_version()}," in text
        assert f"vega-embed {vl_convert.get_vega_embed_version()}\n" in text
        assert f"vega-themes {vl_convert.get_vega_themes_version()}\n" in text


def packages(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", line)[0] for line in requirements} - {"loginfer"}


def test_the_notices_name_every_package_that_is_installed():
    text = (ROOT / "THIRD-PARTY.md").read_text(encoding="utf-8")
    table = {(name, use) for name, use in re.findall(r"^\| ([\w-]+) \| [^|-]+.* \| (\w+) \|$", text, re.MULTILINE)}
    uses = {"core": PROJECT["dependencies"]} | {name: EXTRAS[name] for name in FOR_USERS}
    assert table - {("package", "for")} == {(name, use) for use, lines in uses.items() for name in packages(lines)}


def test_the_extra_all_has_every_extra_for_users():
    (listed,) = EXTRAS["all"]
    assert sorted(re.findall(r"\w+", listed)) == sorted(["loginfer", *FOR_USERS])


def test_packages_of_loginfer_hold_licence_and_notices():
    assert PROJECT["license-files"] == ["LICENSE", "THIRD-PARTY.md"]
    assert all((ROOT / name).stat().st_size for name in PROJECT["license-files"])


def test_every_dependency_has_a_lower_bound():
    """`make test-lowest` tests the bounds themselves."""
    lines = [line for group in (PROJECT["dependencies"], *EXTRAS.values()) for line in group]
    assert [line for line in lines if not line.startswith("loginfer[") and not re.search(r">=\d", line)] == []


def makefile(*arguments: str) -> str:
    return subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not there")
def test_interpreters_that_are_missing_are_named_and_do_not_fail():
    ran = subprocess.run(
        ["make", "--no-print-directory", "test-pythons", "PYTHONS=python3.999"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout.strip().splitlines()[-1]) == (0, "python3.999: not there, not tested")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not there")
def test_the_bill_of_materials_is_reproducible_and_of_an_environment_without_tools_of_developers():
    commands = makefile("sbom")
    assert "--output-reproducible" in commands
    assert "[all]" in commands
    assert "dev" not in re.findall(r"\[(.*?)\]", commands)


def test_the_bill_of_materials_is_the_same_each_time_and_names_what_is_installed(tmp_path):
    pytest.importorskip("cyclonedx_py", reason="cyclonedx-bom is not installed; `make sbom` brings it")
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for file in files:
        options = ["environment", "--output-reproducible", "--pyproject", str(ROOT / "pyproject.toml"), "-o", str(file)]
        subprocess.run([sys.executable, "-m", "cyclonedx_py", *options, sys.prefix], check=True)
    assert files[0].read_bytes() == files[1].read_bytes()
    names = {part["name"].lower().replace("_", "-") for part in json.loads(files[0].read_bytes())["components"]}
    assert {name.replace("_", "-") for name in packages(PROJECT["dependencies"])} <= names
