"""The reference is read off the program: nothing is missing, and nothing needs to be kept up to date."""

import re

import pytest
from scripts import reference_pages
from tests.support.pages import ROOT


def test_the_command_line_reference_has_every_command_and_every_option():
    import typer

    from loginfer.cli.app import app

    text = "\n".join(reference_pages.command_line())
    sections = {part.partition("\n")[0].strip("# "): part for part in re.split(r"\n(?=##+ )", text)}
    for path, command in reference_pages.commands(typer.main.get_command(app), ("loginfer",)):
        if len(path) == 1:
            continue
        section = sections[" ".join(path)]
        for parameter in command.params:
            if parameter.param_type_name == "option" and not getattr(command, "commands", None):
                assert f"`{max(parameter.opts, key=len)}" in section, path


def test_every_public_name_has_a_link_to_a_page_of_its_room():
    import loginfer

    table = "\n".join(reference_pages.public_names())
    for name in loginfer.__all__:
        if name.startswith("__"):
            continue
        assert f"[`{name}`]" in table
        room = reference_pages.home_of(name).split(".")[1]
        page = ROOT / "docs" / "reference" / f"{'loginfer' if room == 'errors' else room}.md"
        assert f"::: loginfer.{room}" in page.read_text()


def test_a_page_is_filled_in_where_it_asks_for_it():
    filled = reference_pages.on_page_markdown(f"a\n{reference_pages.NAMES}\nb", page=None)
    assert filled.startswith("a\n| name |")
    assert filled.endswith("\nb")
    assert reference_pages.on_page_markdown("nothing asked") == "nothing asked"


@pytest.mark.parametrize(
    "room", ["kg", "logic", "engine", "benchmark", "systems", "evaluation", "report", "reproduction"]
)
def test_each_room_has_a_page_of_reference(room):
    assert f"::: loginfer.{room}\n" in (ROOT / "docs" / "reference" / f"{room}.md").read_text()


def test_the_page_on_audits_explains_every_check():
    from loginfer.benchmark.auditing.audit import CHECKS
    from loginfer.benchmark.learned_shortcut import LEARNED, SIMPBL, SKELETON

    page = (ROOT / "docs" / "howto" / "reading-an-audit.md").read_text()
    for name in (*CHECKS, LEARNED, SKELETON, SIMPBL, "oracle"):
        assert f"`{name}`" in page, name


def test_the_page_on_shortcuts_has_every_feature_with_its_meaning():
    from loginfer.benchmark.shortcut_features import FEATURES

    page = (ROOT / "docs" / "howto" / "no-shortcuts.md").read_text()
    table = re.findall(r"^\| `(.+)` \| (.+) \| `(.+)` \|$", page, re.MULTILINE)
    assert table == [(feature.name, feature.meaning, feature.group) for feature in FEATURES.values()]


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert str(page.relative_to(ROOT / "docs")) in menu
