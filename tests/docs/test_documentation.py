"""The documentation is a program: every block of every page is run or read, as `pages` describes."""

import re
from pathlib import Path

import pytest
from tests.support import stand_ins
from tests.support.pages import LANGUAGES, PAGES, ROOT, Reader, all_commands, blocks, call_ours, difference, parse

pytestmark = pytest.mark.usefixtures("all_rounds")

WITH_CODE = [page for page in PAGES if blocks(page)]

# What is also done with the real graphs, where they are: quick commands, in these pages.
ON_REAL_GRAPHS = [ROOT / "docs" / "benchmarks.md"]
QUICK = ("kg fetch", "kg show", "rules rank", "build wn18rr", "audit wn-trian", "explain wn-trian")


@pytest.fixture(scope="module")
def stock(tmp_path_factory) -> Path:
    """What pages take for granted: two graphs, and a benchmark."""
    folder = tmp_path_factory.mktemp("stock")
    stand_ins.write_graph(folder / "wn18rr", stand_ins.WORDNET, seed=1)
    stand_ins.write_graph(folder / "fb15k-237", stand_ins.FREEBASE, seed=2)
    stand_ins.write_benchmark(folder / "benchmark", folder / "wn18rr")
    (folder / "company").mkdir()
    stand_ins.write_company(folder / "company")
    return folder


@pytest.fixture(autouse=True)
def forget_what_pages_register():
    """Metrics, methods, features and formats that a page registers are no other page's."""
    from loginfer.benchmark import METHODS
    from loginfer.benchmark.export import FORMATS
    from loginfer.benchmark.shortcut_features import FEATURES
    from loginfer.evaluation.metric_table import METRICS

    before = [(table, dict(table)) for table in (METHODS, METRICS, FORMATS, FEATURES)]
    yield
    for table, rows in before:
        table.clear()
        table.update(rows)


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_a_page_does_what_it_says(page, tmp_path, stock, monkeypatch):
    monkeypatch.delenv("LOGINFER_DATA", raising=False)
    stand_ins.prepare(tmp_path, page, stock)
    Reader(tmp_path, stand_ins.not_run, stand_ins.smaller, stand_ins.before).read(page)


@pytest.mark.data
@pytest.mark.parametrize("page", ON_REAL_GRAPHS, ids=lambda page: page.name)
def test_a_page_does_what_it_says_on_the_real_graphs(page, tmp_path, data_folder, monkeypatch):
    def skip(command):
        quick = any(command.text.startswith((f"loginfer {start}", "grep")) for start in QUICK)
        return None if quick else "not one of the quick ones"

    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path, skip)
    for block in blocks(page):
        if block.language == "console":
            reader.do(block)
    assert (tmp_path / "wn-trian" / "manifest.json").exists()


COMMANDS = list(all_commands())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command.where} {command.text[:40]}")
def test_commands_exist_and_take_the_options_shown(command):
    """Whether or not their data is here, and whether or not they take too long to be run."""
    words = command.words
    if words[0] == "loginfer":
        for end in ("|", ">", ";", "&&", "||"):
            words = words[: words.index(end)] if end in words else words
        parse([word for word in words[1:] if word != "2>&1"])
    elif words[0] == "make":
        targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert words[1] in targets
    elif "-m" in words:
        module = words[words.index("-m") + 1].replace(".", "/")
        assert any((ROOT / name).exists() for name in (f"{module}.py", f"{module}/__main__.py"))


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_every_block_says_what_it_is(page):
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{block.where}: what is `{block.language}`?"


def test_what_is_not_run_is_still_in_the_documentation():
    """Exceptions that no page needs any more are taken out."""
    shown = [command.text for command in COMMANDS]
    for start in (*stand_ins.NOT_RUN, *(f"loginfer {start}" for start, _ in stand_ins.SMALLER)):
        assert any(text.startswith(start) for text in shown), start


def test_output_that_a_page_shows_is_compared():
    shown = ("a table", "…", "accuracy 87.5 %", "rules: 8, …")
    assert difference(shown, "a  table\nx\ny\n accuracy 87.4 %\nrules: 8, of 9\n") is None
    assert difference(shown, "a table\naccuracy 47.4 %\nrules: 8, of 9\n") is not None
    assert difference(shown, "a table\naccuracy 87.5 %\nrules: 9, of 9\n") is not None
    assert difference(("one",), "one\ntwo\n") == "the page does not show `two`"


def test_a_command_that_fails_where_the_page_shows_success_is_found(tmp_path):
    from tests.support.pages import Command

    with pytest.raises(AssertionError, match="exit code 2"):
        Reader(tmp_path).run(Command("loginfer audit nowhere"))
    Reader(tmp_path).run(Command("loginfer audit nowhere", ("error: no folder `nowhere`", "hint: check the path")))
    assert call_ours(["--version"])[1] == 0


def test_the_example_of_the_package_docstring_runs():
    import doctest

    import loginfer

    assert doctest.testmod(loginfer).failed == 0
