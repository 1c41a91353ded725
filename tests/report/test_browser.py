"""The report in a real browser, opened from its files: nothing complains, menus and tables do their work."""

import csv
import json
import time

import pytest
from tests.support import real_browser
from tests.support.hostile_runs import hostile_runs
from tests.support.real_browser import browser, open_page, requests, resize, wait

from loginfer.report.collection import collect
from loginfer.report.facts import ReportContext
from loginfer.report.pages.compare import compare_pages
from loginfer.report.pages.explorer import slug_of
from loginfer.report.site import write_site

REASON = real_browser.missing()
pytestmark = [
    pytest.mark.skipif(REASON is not None, reason=f"no browser: {REASON}"),
    # Selenium leaves sockets of its driver to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Site:
    """A report that was written, and what it was made from."""

    def __init__(self, context, folder, **more):
        self.context = context
        self.folder = folder
        write_site(context, folder, **more)
        self.pages = json.loads((folder / "report.json").read_bytes())["pages"]

    def open(self, driver, page, fragment=""):
        open_page(driver, self.folder / page, fragment)


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def driver(downloads):
    with browser(downloads) as driver:
        yield driver


@pytest.fixture(autouse=True)
def _wide(driver):
    resize(driver, 1200)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.fixture(scope="module")
def family(small_runs, tmp_path_factory):
    return Site(ReportContext(collect([small_runs])), tmp_path_factory.mktemp("family") / "site")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    return Site(ReportContext(collect([hostile_runs(folder)])), folder / "site")


@pytest.fixture(scope="module")
def comparison(hostile, tmp_path_factory):
    """Two systems beside each other, which is a report of its own."""
    context = hostile.context
    cells = context.collection.of_benchmark(context.collection.benchmark_names[0])
    folder = tmp_path_factory.mktemp("comparison") / "site"
    return Site(context, folder, makers=[lambda made: compare_pages(made, *cells[:2])])


def complaints(driver):
    """What pages told the console since the last time."""
    return [entry for entry in driver.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]


def script(driver, text, *arguments):
    """Return what an expression of the page is; `all` finds elements."""
    return driver.execute_script(f"const all = (s) => [...document.querySelectorAll(s)]; return {text}", *arguments)


@pytest.mark.parametrize("which", ["family", "hostile", "comparison"])
def test_every_page_loads_quietly_from_its_file_and_asks_nobody(driver, request, which):
    site = request.getfixturevalue(which)
    assert "index.html" in site.pages
    for page in site.pages:
        complaints(driver)
        requests(driver)
        resize(driver, 390, 800)
        site.open(driver, page)
        # A phone: what is wide scrolls in its own place.
        assert script(driver, "document.documentElement.scrollWidth") <= 390, page
        resize(driver, 1200)
        assert complaints(driver) == [], page
        outside = [u for u in requests(driver) if not u.startswith(("file:", "data:", "blob:", "about:"))]
        assert outside == [], page
        plots = script(driver, "all('figure.chart').map(f => [f.id, f.querySelector('.plot').innerHTML])")
        assert [name for name, plot in plots if "<svg" not in plot and plot != "nothing to show"] == [], page
        # No name became an element, and all scripts are files of the report.
        assert script(driver, "all('img, iframe, object, i').length") == 0, page
        assert script(driver, "all('b').filter(b => b.textContent === 'likes').length") == 0, page
        sources = script(driver, "all('script').map(s => s.src || s.type)")
        assert all(s == "application/json" or s.startswith("file:") for s in sources), page
        links = script(driver, "[...document.links].map(a => decodeURI(a.href.split('#')[0]))")
        assert all(link.startswith("file:") for link in links), page
        if which != "comparison":
            inside = {link.removeprefix(f"file://{site.folder}/") for link in links}
            assert inside <= {*site.pages, "assets/LICENSES.txt"}, page


# Chooses the last entry of a plot's menu; tells the table's text before and after, and whether all rows fit.
_LAST_CHOICE = """
const [number, done] = arguments;
const select = document.querySelectorAll("figure.chart .choices select")[number];
const figure = select.closest("figure"), chart = LogInfer.charts.get(figure.dataset.chart);
const table = async () => { await chart.draw(); return figure.querySelector("details .scroll").textContent; };
(async () => {
  figure.querySelector("details").open = true;
  const before = await table();
  select.selectedIndex = select.options.length - 1;
  select.dispatchEvent(new Event("change", { bubbles: true }));
  const after = await table();
  const fits = (row) => String(row[select.dataset.field]) === select.value;
  done([before, after, chart.shown().every(fits) || select.value === ""]);
})();
"""


def test_menus_change_plots_and_tables_and_words_filter_rows(driver, family):
    changed, loaded, searched = [], [], []
    for page in family.pages:
        family.open(driver, page)
        complaints(driver)
        for number in range(script(driver, "all('figure.chart .choices select').length")):
            before, after, fits = driver.execute_async_script(_LAST_CHOICE, number)
            assert fits, page
            changed += [page] if before != after else []
        options = script(driver, "all('select[data-picker] option').map(o => o.value)")
        if len(options) > 1:
            loaded.append(page)
            driver.execute_script(
                "const s = document.querySelector('select[data-picker]'); s.value = arguments[0];"
                "s.dispatchEvent(new Event('change', { bubbles: true }))",
                options[-1],
            )
            wait(driver, f"[...document.scripts].some(s => s.src.endsWith({json.dumps(options[-1])}))")
            driver.execute_async_script("LogInfer.load(arguments[0]).then(() => arguments[1]())", options[-1])
        for field in driver.find_elements("css selector", ".grid input[type=search]"):
            searched += [page] if words_filter(driver, field) else []
        assert complaints(driver) == [], page
    assert changed
    assert loaded
    assert searched or not any('type="search"' in (family.folder / p).read_text() for p in family.pages)


def words_filter(driver, field):
    """Type words into a table's field and compare the rows; say whether there were any."""
    rows = "[...arguments[0].closest('.grid').querySelectorAll('tbody tr')].filter(r => !r.hidden)"
    rows += ".map(r => r.textContent)"
    everything = script(driver, rows, field)
    if not everything:
        return False
    word = everything[-1].split()[0].lower()
    field.send_keys(word.upper())
    assert script(driver, rows, field) == [row for row in everything if word in row.lower()]
    field.send_keys(" no such words anywhere")
    assert script(driver, rows, field) == []
    return True


def test_a_click_on_a_heading_sorts_a_table(driver, hostile):
    hostile.open(driver, hostile.context.benchmark_page(hostile.context.collection.benchmark_names[0]))
    headings = script(driver, "all('.grid').map(g => [...g.querySelectorAll('th')].map(h => h.textContent))")
    (number,) = [n for n, titles in enumerate(headings) if "balanced accuracy" in titles]
    place = headings[number].index("balanced accuracy")
    table = f"all('.grid')[{number}]"
    values = f"[...{table}.querySelectorAll('tbody tr')].map(r => Number(r.cells[{place}].dataset.sort))"
    wanted = sorted(script(driver, values))
    assert len(wanted) == 3
    for order in (wanted, wanted[::-1]):
        script(driver, f"{table}.querySelectorAll('th')[{place}].click()")
        assert script(driver, values) == order


def test_the_theme_button_switches_and_is_remembered_on_the_page(driver, family):
    family.open(driver, "index.html")
    ground = "return getComputedStyle(document.body).backgroundColor"
    before, dark = driver.execute_script(ground), driver.execute_script("return LogInfer.dark()")
    driver.find_element("id", "theme").click()
    assert driver.execute_script("return LogInfer.dark()") is not dark
    assert driver.execute_script(ground) != before
    driver.find_element("id", "theme").click()
    assert driver.execute_script(ground) == before


def test_plots_are_saved_as_pictures_and_tables(driver, family, downloads):
    page = family.context.benchmark_page(family.context.collection.benchmark_names[0])
    family.open(driver, page)
    chart = driver.find_element("css selector", "figure.chart")
    name = chart.get_attribute("data-chart")
    begins = {"png": b"\x89PNG\r\n", "svg": b"<svg", "csv": b"name,kind"}
    for kind, begin in begins.items():
        driver.execute_script("arguments[0].click()", chart.find_element("css selector", f"[data-download={kind}]"))
        path = downloads / f"{name}.{kind}"
        content = b""
        for _ in range(400):
            content = path.read_bytes() if path.exists() else b""
            if content:
                break
            time.sleep(0.05)
        assert content.startswith(begin), kind
    rows = list(csv.reader((downloads / f"{name}.csv").read_text(encoding="utf-8").splitlines()))
    shown = driver.execute_script("return LogInfer.charts.get(arguments[0]).shown().length", name)
    assert len(rows) == shown + 1


def test_paper_has_no_menu(driver, family):
    family.open(driver, "index.html")
    seen = "all('header nav, #theme, .tools, footer').filter(e => e.offsetParent).length"
    assert script(driver, seen) > 0
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert script(driver, seen) == 0


# -- the explorer -------------------------------------------------------------------------------


def ready(driver):
    wait(driver, "document.getElementById('explorer').dataset.ready === 'yes'")


def choose(driver, field, value):
    driver.execute_script(
        "const f = document.querySelector('#explorer form').elements[arguments[0]];"
        "if (f.type === 'checkbox') f.checked = arguments[1]; else f.value = arguments[1];"
        "f.dispatchEvent(new Event('input', { bubbles: true }))",
        field,
        value,
    )
    ready(driver)


def listed(driver):
    """Return the triples of all pages of the list, and go back to the first."""
    rows, found, pages = "all('#explorer .list tbody tr')", [], 0
    before, after = driver.find_elements("css selector", "#explorer .pager button")
    while True:
        pages += 1
        found += script(driver, f"{rows}.map(r => [...r.cells].map(c => c.title || c.textContent))")
        if not after.is_enabled():
            break
        turn(driver, after, pages + 1)
    for page in range(pages - 1, 0, -1):
        turn(driver, before, page)
    assert not before.is_enabled()
    return found


def turn(driver, button, page):
    driver.execute_script("arguments[0].click()", button)
    begin = json.dumps(f"page {page} of")
    wait(driver, f"document.querySelector('#explorer .pager span').textContent.startsWith({begin})")


def test_the_explorer_finds_triples_and_tells_their_story(driver, hostile):
    name = hostile.context.collection.benchmark_names[0]
    benchmark = hostile.context.benchmark(name)
    positives = benchmark.graph.names(benchmark.positives.test)
    negatives = benchmark.graph.names(benchmark.negatives["qg"].splits.test)
    hostile.open(driver, "explorer.html")
    complaints(driver)
    everything = listed(driver)
    assert [tuple(row[:3]) for row in everything] == [*positives, *negatives]
    # Words may stand anywhere.
    choose(driver, "words", f"HOSTILE-NOT-THERE {positives[0][0]}")
    assert listed(driver) == []
    choose(driver, "words", positives[0][0].upper())
    wanted = [
        t for t in [*positives, *negatives] if all(w in " ".join(t).lower() for w in positives[0][0].lower().split())
    ]
    assert [tuple(row[:3]) for row in listed(driver)] == wanted
    choose(driver, "label", "1")
    assert [tuple(row[:3]) for row in listed(driver)] == [t for t in wanted if t in positives]
    # A click shows the rule, the premises and all systems.
    driver.execute_script("document.querySelector('#explorer .list tbody tr').click()")
    wait(driver, "!document.querySelector('#explorer .detail').hidden")
    detail = driver.find_element("css selector", "#explorer .detail").text
    assert "Follows by rule" in detail
    assert "because (" in detail
    assert {"simpbl", "transe", "oracle"} <= set(
        script(driver, "all('#explorer .bars td:first-child').map(e => e.textContent)")
    )
    assert driver.execute_script("return location.hash").startswith("#benchmark=")
    assert complaints(driver) == []


def test_filters_of_the_explorer_agree_with_the_decisions(driver, hostile):
    hostile.open(driver, "explorer.html")
    everything = listed(driver)
    choose(driver, "disagree", True)
    assert listed(driver) == [row for row in everything if row[4] not in ("0/3", "3/3")]
    choose(driver, "disagree", False)
    names = script(driver, "all('#explorer select[name=system] option').map(e => e.textContent)")
    choose(driver, "system", str(names.index("oracle") - 1))
    choose(driver, "decided", "1")
    right = listed(driver)
    choose(driver, "decided", "0")
    wrong = listed(driver)
    assert sorted(right + wrong) == sorted(everything)
    choose(driver, "system", "")
    assert listed(driver) == everything
    choose(driver, "rule", "0")
    by_rule = listed(driver)
    assert by_rule
    assert len(by_rule) < len(everything)


def test_an_address_opens_a_triple(driver, family):
    name = family.context.collection.benchmark_names[-1]
    fragment = f"#benchmark={slug_of(family.context, name)}&triple=1"
    family.open(driver, "explorer.html", fragment)
    wait(driver, "!document.querySelector('#explorer .detail').hidden")
    benchmark = family.context.benchmark(name)
    (triple,) = benchmark.graph.names(benchmark.positives.test[1])
    titles = script(driver, "all('#explorer .detail h2 span[title]').map(e => e.title)")
    assert tuple(titles) == triple
    # Somebody else's address is answered, too.
    family.open(driver, "explorer.html", "#benchmark=nobody&triple=99999")
    wait(driver, "!document.querySelector('#explorer .detail').hidden")
    assert "not among those" in driver.find_element("css selector", "#explorer .detail").text
    # The other benchmark of the menu.
    choose_other = slug_of(family.context, family.context.collection.benchmark_names[-1])
    driver.execute_script(
        "const f = document.querySelector('#explorer form').elements.benchmark; f.value = arguments[0];"
        "f.dispatchEvent(new Event('input', { bubbles: true }))",
        choose_other,
    )
    wait(driver, f"location.hash === '#benchmark={choose_other}'")
    ready(driver)
    assert len(listed(driver)) == len(benchmark.positives.test) + len(benchmark.negatives["qg"].splits.test)


def test_long_lists_have_pages(driver, hostile):
    hostile.open(driver, "explorer.html")
    total = len(listed(driver))
    assert total > 50
    assert script(driver, "all('#explorer .list tbody tr').length") == 50
    assert f"All {total} test triples" in script(driver, "all('#explorer .status')[0].textContent")
    assert f"of {-(-total // 50)}" in script(driver, "all('#explorer .pager span')[0].textContent")


# -- the first screen, phones, names ----------------------------------------------------------------


@pytest.mark.parametrize("which", ["family", "hostile"])
def test_the_verdict_is_seen_without_scrolling(driver, request, which):
    resize(driver, 1280, 800)
    request.getfixturevalue(which).open(driver, "index.html")
    verdict = script(driver, "all('.verdict')[0].getBoundingClientRect().toJSON()")
    assert 0 < verdict["top"] < verdict["bottom"] <= 800
    assert len(script(driver, "all('.verdict li').map(e => e.textContent)")) >= 3
    assert script(driver, "all('#chart-accuracy')[0].getBoundingClientRect().top") < 800


def test_the_verdict_of_many_systems_is_seen_without_scrolling(driver, small_runs, tmp_path):
    import dataclasses

    from loginfer.report.collection import Collection

    found = collect([small_runs])
    more = [dataclasses.replace(cell, system=f"system {n}") for n in range(20) for cell in found.of_system("simpbl")]
    site = Site(ReportContext(Collection((*found.cells, *more))), tmp_path / "site")
    resize(driver, 1280, 800)
    site.open(driver, "index.html")
    assert script(driver, "all('.verdict')[0].getBoundingClientRect().bottom") <= 800
    assert script(driver, "all('.verdict details summary').map(e => e.textContent)") == ["15 more systems"]


@pytest.mark.parametrize("width", [390, 1280])
def test_no_text_of_a_plot_is_smaller_than_twelve_pixels(driver, family, width):
    sizes = {}
    for page in family.pages:
        resize(driver, width, 800)
        family.open(driver, page)
        size = "((m) => parseFloat(getComputedStyle(e).fontSize) * Math.hypot(m.a, m.b))(e.getScreenCTM())"
        texts = f"all('.plot svg text, svg.premises text').map(e => [e.textContent, {size}])"
        sizes |= {(page, text): size for text, size in script(driver, texts) if text}
    assert len(sizes) > 100
    assert {key: size for key, size in sizes.items() if size < 11.9} == {}


def test_the_first_column_of_a_table_stays_while_a_phone_scrolls(driver, family):
    resize(driver, 390, 800)
    family.open(driver, "systems.html")
    moved = "(() => { const box = all('.grid .scroll')[0]; box.scrollLeft = 200; return [box.scrollLeft,"
    moved += "box.querySelector('td').getBoundingClientRect().left - box.getBoundingClientRect().left]; })()"
    scrolled, left = script(driver, moved)
    assert scrolled > 50
    assert abs(left) <= 1


@pytest.mark.parametrize(("page", "chart"), [("index", "verdicts-by-system"), ("rules", "rule-or-shortcut")])
def test_a_legend_fits_on_a_phone(driver, family, page, chart):
    resize(driver, 390, 800)
    family.open(driver, f"{page}.html")
    right = "map(e => e.getBoundingClientRect().right)"
    labels = script(driver, f"all('#chart-{chart} .role-legend-label text').{right}")
    (limit,) = script(driver, f"all('#chart-{chart} .plot').{right}")
    assert labels
    assert max(labels) <= limit


def test_short_terms_explain_themselves(driver, family):
    family.open(driver, family.context.benchmark_page(family.context.collection.benchmark_names[0]))
    terms = dict(script(driver, "all('abbr').map(e => [e.textContent, e.title])"))
    assert terms["k1"] == "rules for each pattern"
    assert terms["pa"] == "position-aware negatives"


def test_pages_without_content_are_neither_written_nor_in_the_menu(driver, tmp_path):
    from tests.support.made_up_benchmarks import family as made_up

    from loginfer.evaluation import evaluate

    evaluate(made_up(methods=("pa",)), "simpbl", ranking=(), diagnosis=False, out=tmp_path / "run")
    site = Site(ReportContext(collect([tmp_path])), tmp_path / "site")
    site.open(driver, "index.html")
    menu = script(driver, "all('nav a').map(e => e.textContent)")
    assert menu == ["Overview", "Benchmarks", "Systems", "Explorer"]
    for name in ("ranking.html", "rules.html", "learned.html"):
        assert not (tmp_path / "site" / name).exists()


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """A company whose people share their labels, and its skills their last parts with them."""
    import loginfer
    from loginfer.benchmark import load_benchmark, write_benchmark
    from loginfer.evaluation import evaluate

    folder = tmp_path_factory.mktemp("labelled")
    people, skills = ([f"http://company.example/{kind}/{n}" for n in range(60)] for kind in ("employee", "skill"))
    ns = "http://company.example/ns#"
    triples = [(people[n], f"{ns}reportsTo", people[n // 2]) for n in range(60)]
    triples += [(people[n], f"{ns}hasSkill", skills[n * m % 60]) for n in range(60) for m in (3, 7)]
    labels = {name: f"Ann {n % 20}" for n, name in enumerate(people)} | {f"{ns}reportsTo": "reports to"}
    recipe = loginfer.Recipe(kg="company", patterns=("composition",), k1=2, k2=60, allow_fewer=True)
    benchmark = loginfer.build(recipe, loginfer.KnowledgeGraph.from_names(triples))
    write_benchmark(benchmark, folder / "bench")
    for system in ("simpbl", "oracle"):
        evaluate(load_benchmark(folder / "bench"), system, ranking=(), out=folder / system)
    found = collect([folder])
    found.library.load(folder / "bench").graph.labels = labels
    return Site(ReportContext(found), folder / "site")


def test_no_two_constants_of_a_page_have_the_same_label(driver, labelled):
    labelled.open(driver, "explorer.html", "#triple=0")
    wait(driver, "!document.querySelector('#explorer .detail').hidden")
    names = script(driver, "all('#explorer [data-name]').map(e => [e.dataset.name, e.textContent, e.title])")
    assert len({name for name, _, _ in names}) > 15
    assert len({shown for _, shown, _ in names}) == len({name for name, _, _ in names})
    assert all(name == title for name, _, title in names)
    shown = {name: text for name, text, _ in names}
    assert any(text.startswith("Ann ") for text in shown.values())
    # Whoever shares a label is told by the last part, too.
    assert any("(" in text for text in shown.values())
    page = labelled.context.benchmark_page(labelled.context.collection.benchmark_names[0])
    labelled.open(driver, page)
    text_of = "(g, part) => g.querySelector(part).textContent"
    boxes = f"all('svg.premises g.constant').map(g => ['title', 'text'].map(part => ({text_of})(g, part)))"
    boxes = script(driver, boxes)
    assert any(text.startswith("Ann ") for _, text in boxes)
    assert len({text for _, text in boxes}) == len({name for name, _ in boxes}) > 4
