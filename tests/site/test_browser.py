"""Pages in a browser: console, sorting, search, links, charts, player and accessibility."""

import os
import shutil

import pytest

from pipeline.report.site.charts import nice_axis

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: apt-get install chromium"),
]
KINDS = ["index", "paper-weighted", "run-weighted.C.grammar", "outputs-grammar-en-de", "outputs-grammar-speech-target"]
KINDS += ["outputs-grammar-trees", "compare-weighted.table2"]
VIOLATIONS_ALONE = {"preload": False, "resultTypes": ["violations"], "selectors": False}
"""Options of axe, which otherwise describes thousands of elements that are as they should be."""


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        yield found
        found.close()


@pytest.fixture(scope="module")
def said() -> list[str]:
    """Return the list of errors and warnings of the console."""
    return []


@pytest.fixture(scope="module")
def tab(browser, said):
    """Return a page in which tests open theirs one after the other."""
    return watched(browser.new_page(), said)


def watched(page, said: list[str]):
    page.on("console", lambda line: said.append(line.text) if line.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    return page


@pytest.fixture
def opened(site, browser, tab, said):
    """Open a page by the beginning of its name; the console must stay empty."""
    said.clear()
    others = []

    def open_page(name: str, width: int = 1400, scheme: str = "light", has_scripts: bool = True):
        page = tab
        if not has_scripts:
            page = watched(browser.new_page(java_script_enabled=False), said)
            others.append(page)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media="screen", color_scheme=scheme)
        (path,) = site[1].glob(f"{name}*.html")
        page.goto(path.as_uri())
        return page

    yield open_page
    for page in others:
        page.close()
    assert said == []


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1400, "light")])
@pytest.mark.parametrize("name", KINDS)
def test_page_fits_and_has_no_accessibility_violation(opened, name, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = opened(name, width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    sizes = "[...document.querySelectorAll('.chart text')].map((one) => parseFloat(getComputedStyle(one).fontSize))"
    assert all(size >= 12 for size in page.evaluate(sizes))
    page.evaluate("document.querySelectorAll('details').forEach((one) => one.setAttribute('open', ''))")
    found = Axe().run(page, options=VIOLATIONS_ALONE).response["violations"]
    assert [(fault["id"], fault["nodes"][0]["html"][:200]) for fault in found] == []


def test_column_is_sorted_both_ways_by_keyboard(opened):
    page = opened("run-weighted.C.grammar")
    button = page.locator("#scores th", has_text="value").get_by_role("button")
    values = "[...document.querySelectorAll('#scores td.number:nth-child(2)')].map((cell) => +cell.textContent)"
    for reverse in (False, True):
        button.focus()
        page.keyboard.press("Enter")
        numbers = page.evaluate(values)
        assert len(set(numbers)) > 2 and numbers == sorted(numbers, reverse=reverse)


def test_text_that_begins_with_a_dot_is_sorted_as_text(opened):
    page = opened("index")
    sort = """(column) => {
      const [table] = document.querySelectorAll('#all-runs'), body = table.tBodies[0];
      body.innerHTML = column.map((text) => `<tr><td>${text}</td></tr>`).join('');
      table.querySelector('th button').click();
      return [...body.rows].map((row) => row.textContent);
    }"""
    column = ["3", ".", "b", ".5", "−2", "...", "12.5K", "1e-3"]
    assert page.evaluate(sort, column) == ["−2", "1e-3", ".5", "3", "12.5K", ".", "...", "b"]


def test_new_choice_of_rows_is_not_called_sorted(opened):
    page = opened("compare-weighted.table2")
    page.locator("#settings th button").nth(1).click()
    assert page.locator("#settings th[aria-sort]").count() == 1
    page.get_by_label("Second").select_option("0")
    assert page.locator("#settings th[aria-sort]").count() == 0


def test_search_leaves_the_rows_that_hold_the_words(opened):
    page = opened("index")
    page.get_by_label("Search runs").fill("coldfusion/CF4")
    shown = page.locator("#all-runs tbody tr:visible")
    assert 0 < shown.count() < 10 and all("CF4" in text for text in shown.all_text_contents())


def test_columns_are_folded(opened):
    page = opened("paper-weighted")
    assert not page.locator("#table-table2 th.settings").first.is_visible()
    page.locator("input[data-fold=settings][data-of=table-table2]").check()
    assert page.locator("#table-table2 th.settings").first.is_visible()


def test_model_and_score_are_seen_first_on_a_phone(opened):
    page = opened("paper-weighted", 360)
    scroll = "document.querySelector('#table-table2').parentElement.scrollLeft = 200"
    boxes = [page.locator(f"#table-table2 tbody tr:first-child > :nth-child({n})").bounding_box() for n in (1, 2)]
    assert boxes[1]["x"] + boxes[1]["width"] <= 360
    page.evaluate(scroll)
    assert page.locator("#table-table2 tbody th").first.bounding_box()["x"] == boxes[0]["x"]


def test_scores_are_told_apart_by_their_pinned_column_on_a_phone(opened):
    texts = "(all) => all.map((one) => one.innerText)"
    heads = "#scores tbody th"
    wide, narrow = (opened("run-weighted.C.grammar", width).locator(heads).evaluate_all(texts) for width in (1400, 360))
    assert len({*wide}) < len(wide) == len(narrow) == len({*narrow})
    assert {"BLEU\ntoy dev, final", "BLEU\ntoy dev, uniform"} <= {*narrow}


def test_labels_below_a_chart_do_not_touch_on_a_phone(opened):
    page = opened("outputs-grammar-en-de", 390)
    for place in range(page.locator(".plot").count()):
        labels = page.locator(".plot").nth(place).locator("svg text").all()
        boxes = [box for box in (label.bounding_box() for label in labels) if box]
        assert len(boxes) >= 4
        for n, one in enumerate(boxes):
            for other in boxes[n + 1 :]:
                left, right = sorted((one, other), key=lambda box: box["x"])
                top, bottom = sorted((one, other), key=lambda box: box["y"])
                beside = left["x"] + left["width"] < right["x"]
                assert beside or top["y"] + top["height"] <= bottom["y"] + 3


def test_empty_output_is_named(opened):
    page = opened("outputs-grammar-en-de")
    assert page.evaluate("['', '  '].map((text) => marked(text, 'ein Hund').textContent)") == 2 * ["(nothing)"]


@pytest.mark.parametrize(
    ("text", "reference", "extra"),
    [
        ("我在2019年去了东京。", "我在 2019 年去了北京。", ["东"]),
        ("彼はすしを食べた", "彼はそばを食べた", ["す", "し"]),
        ("ein  alter Hund", "ein Hund", ["alter"]),
    ],
)
def test_output_stands_as_it_is_with_its_extra_words_marked(opened, text, reference, extra):
    page = opened("outputs-grammar-en-de")
    read = "([text, reference]) => { const line = marked(text, reference);"
    read += " return [line.textContent, ...[...line.querySelectorAll('mark')].map((one) => one.textContent)]; }"
    assert page.evaluate(read, [text, reference]) == [text, *extra]


def test_text_from_right_to_left_begins_on_the_right(opened):
    page = opened("outputs-grammar-en-de")
    measure = """(text) => {
      const place = document.querySelector('#sentences dd');
      place.textContent = text;
      const range = document.createRange();
      return [0, text.length - 1].map((at) => {
        range.setStart(place.firstChild, at);
        range.setEnd(place.firstChild, at + 1);
        return range.getBoundingClientRect().x;
      });
    }"""
    first, stop = page.evaluate(measure, "שלום עולם.")
    assert stop < first
    first, stop = page.evaluate(measure, "hello world.")
    assert first < stop


def test_charts_are_drawn_without_a_script(opened):
    page = opened("run-weighted.C.grammar", has_scripts=False)
    assert page.locator(".chart path.line").count() >= 4


def test_outputs_are_sorted_searched_and_marked(opened):
    page = opened("outputs-grammar-en-de")
    assert page.locator("#sentences article").count() == 25
    page.get_by_role("button", name="more sentences").click()
    assert page.locator("#sentences article").count() == 40
    page.get_by_label("Order").select_option("line")
    assert page.locator("#sentences h3").first.inner_text() == "line 1"
    page.get_by_label("Search texts").fill("baker")
    articles = page.locator("#sentences article").all_text_contents()
    assert 0 < len(articles) < 40 and all("baker" in text for text in articles)


def test_outputs_of_one_system_have_no_choice_of_two(opened):
    page = opened("outputs-grammar-trees")
    assert page.locator(".tools select").count() == 1
    assert page.get_by_label("Order").locator("option").all_text_contents() == [
        "worst first",
        "best first",
        "as in the test set",
    ]
    assert page.locator("#sentences dt").first.is_visible() and page.locator("#sentences details").count() == 0
    assert page.locator(".chart.chosen g[data-series]:visible").count() == page.locator(".chart.chosen").count() > 0


def test_recordings_can_be_played_and_errors_are_coloured(opened):
    page = opened("outputs-grammar-speech-target")
    audio = page.locator("audio").first
    audio.evaluate("(player) => { player.preload = 'auto'; player.load(); }")
    page.wait_for_function("document.querySelector('audio').readyState > 0")
    assert abs(audio.evaluate("(player) => player.duration") - 2) < 0.1
    assert page.locator("mark.missing").count() > 10


def test_trees_are_drawn(opened):
    page = opened("outputs-grammar-trees")
    words = page.locator(".tree svg").first.locator("text.word").all_text_contents()
    assert words == ["the", "dog", "barked", "."]


def test_rows_are_compared(opened):
    page = opened("compare-weighted.table2")
    test = page.locator("#test").inner_text()
    assert "These two trainings differ significantly; other seeds may not." in test and " −" in test
    assert page.locator("#differences tr").count() > 2
    page.get_by_label("Second").select_option("0")
    assert page.locator("#differences tr").count() == 0 and page.get_by_text("None.").is_visible()
    page.get_by_label("Second").select_option("1")
    page.get_by_role("link", name="Sentences that changed").click()
    page.wait_for_selector("#sentences article")
    chosen = page.locator("#one, #other").evaluate_all("(all) => all.map((one) => one.selectedOptions[0].text)")
    assert chosen == ["attention: N = 2 (final)", "weighted: Weighted Transformer, N = 2 (final)"]


def test_difference_is_significant_by_its_p_value(opened):
    """A sentence of many repeated words can move an interval to one side of zero, while p is 0.13."""
    page = opened("compare-weighted.table2")
    page.evaluate("Object.assign(window.comparison.pairs['0,1'], { low: 0.19, high: 7.98, p_value: 0.1339 })")
    page.get_by_label("Second").select_option("0")
    page.get_by_label("Second").select_option("1")
    test = page.locator("#test").inner_text()
    assert "p = 0.134 " in test and test.endswith("These two trainings do not differ significantly.")


def test_axes_of_a_chart_fit_the_chosen_rows(opened):
    page = opened("compare-weighted.table2")
    read = "(all) => all.map((one) => [one.getAttribute('cx'), one.getAttribute('cy'), one.textContent])"
    for first, second in ((0, 1), (1, 1), (0, 0)):
        page.get_by_label("First").select_option(str(first))
        page.get_by_label("Second").select_option(str(second))
        marks = page.locator(".chart g[data-series]:not([hidden]) circle").evaluate_all(read)
        steps, losses = zip(*(map(float, text.rsplit(": ", 1)[1].split(", ")) for *_, text in marks), strict=True)
        across, up = [float(x[:-1]) for x, *_ in marks], [100 - float(y[:-1]) for _, y, _ in marks]
        for values, found, margin in ((steps, across, 0.0), (losses, up, 0.04)):
            share = [(value - min(values)) / (max(values) - min(values)) for value in values]
            assert found == pytest.approx([100 * (margin + one) / (1 + 2 * margin) for one in share], abs=0.5)
        labels = page.locator(".chart g.up text:not(.axis)").all_text_contents()
        assert 2 <= len(labels) <= 7 and all(min(losses) - 0.2 < float(label) < max(losses) + 0.2 for label in labels)


def test_axis_of_a_line_at_zero_has_round_ticks(opened):
    page = opened("compare-weighted.table2")
    page.evaluate(
        """() => {
          const chart = document.querySelector('.chart.chosen');
          chart.dataset.up = '-0.04 1.04';
          for (const path of chart.querySelectorAll('path')) path.setAttribute('d', 'M0 963.0L1000 963.0');
          fitAxes(chart);
        }"""
    )
    assert page.locator(".chart g.up text:not(.axis)").all_text_contents() == ["0.0", "0.5", "1.0"]


@pytest.mark.parametrize(("low", "high"), [(0.0, 4.5e8), (-6e-8, 0.0), (0.0, 4e5), (123_456.1, 123_458.0)])
def test_axis_of_the_browser_is_that_of_the_page(opened, low, high):
    page = opened("compare-weighted.table2")
    ticks = page.evaluate("([low, high]) => niceAxis([low, high], 0.04).ticks.map(([, label]) => label)", [low, high])
    assert ticks == [label for _, label in nice_axis("", [low, high]).ticks]


def test_parts_that_need_a_script_are_hidden_without_one(opened):
    page = opened("compare-weighted.table2", has_scripts=False)
    assert page.locator(".scripted").count() == 2 and page.locator(".scripted:visible").count() == 0
    assert page.locator("noscript li a").count() >= 2


def test_heading_and_claim_are_printed_in_one_piece(opened):
    page = opened("paper-weighted")
    page.emulate_media(media="print")
    style = "(one) => [getComputedStyle(one).breakAfter, getComputedStyle(one).breakInside]"
    assert page.locator("h2").first.evaluate(style)[0] == "avoid"
    assert page.locator(".claim").first.evaluate(style)[1] == "avoid"
