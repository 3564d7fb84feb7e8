"""Pages show measured and missing results, escape every text, and have the same bytes for the same results."""

import csv
import math
import random
import re
import shlex
from collections import Counter
from functools import partial
from html import unescape
from pathlib import Path
from types import SimpleNamespace as Some
from urllib.parse import unquote, urlsplit

import made_site
import pytest
from copied_project import ROOT, call, copy_project, jobs, require
from fabricated import (
    append,
    bleu_statistics,
    folder_of,
    perplexity_statistics,
    touch,
    write_failure,
    write_score,
    write_training,
)
from lxml import html
from made_records import decoded, progress_line
from made_site import make_results, page_of_paper, page_of_run, pages_of_outputs, sentences
from real_project import real_project

from pipeline.analysis.claims.verdicts import Verdict
from pipeline.analysis.run_folders import NotRun
from pipeline.core.artifacts import ExampleTable, Figure, RunId, Score, Translation
from pipeline.core.errors import UserError
from pipeline.core.records.outputs import ScoreFile
from pipeline.papers.project import load_project
from pipeline.report.filled_table import fill
from pipeline.report.labels import METRICS, column_titles, output_name, report_title
from pipeline.report.site import outputs
from pipeline.report.site.build import build
from pipeline.report.site.charts import Number, by_group, curves, differences, nice_axis
from pipeline.report.site.compare import compare_page
from pipeline.report.site.output_set import OutputSet
from pipeline.report.site.outputs import FREQUENCIES, bucket_name, bucket_of, word_accuracy
from pipeline.report.site.overview import make_card
from pipeline.report.site.pages import Pages, as_json, with_code, without_code
from pipeline.report.site.papers import NOT_TESTED, caption, common_titles, figure, shown_verdict
from pipeline.report.site.runs import training_charts
from pipeline.report.site.site_data import SiteData, paper_page, run_page
from pipeline.report.site.tables import row_state, with_empty_named
from pipeline.stages import PIPELINE
from pipeline.workflow.targets import unknown_target
from reprise.__main__ import main

EVIL = "<script>alert(1)</script>"


class Page:
    """The links, anchors, and texts of scripts of one page."""

    def __init__(self, path: Path):
        tree = html.fromstring(path.read_text(encoding="utf-8"))
        self.links = [link for link in tree.xpath("//@href | //@src") if link]
        self.anchors = tree.xpath("//@id")
        self.scripts = tree.xpath("//script/text()")


def site_of(project, out: Path, private: bool = False) -> Path:
    build(Pages(out, SiteData(project, private)))
    return out


@pytest.mark.parametrize("line", ["", "<unk> <unk>"])
def test_hypotheses_without_a_word_have_pages(project, tmp_path, monkeypatch, line):
    monkeypatch.setattr(made_site, "spoilt", lambda lines, share: [line] * len(lines))
    make_results(project)
    pages = pages_of_outputs(project, tmp_path / "site")
    assert len(pages) >= 3
    assert not any(re.search(r"\b(nan|NaN|inf|Infinity)\b", page) for page in pages)


def test_page_of_outputs_names_the_one_seed_that_it_shows(tmp_path):
    project = real_project({"work": str(tmp_path / "work"), "scale": "demo", "seeds": [7, 2]})
    make_results(project)
    pages = pages_of_outputs(project, tmp_path / "site")
    assert len(pages) >= 3 and all(" with seed 7, " in page for page in pages)


def test_decodings_of_a_system_are_not_counted_as_systems():
    found = OutputSet(Some(), "toy", "dev")
    vars(found)["artifacts"] = [Some(run="C"), Some(run="C"), Some(run="N4")]
    assert found.counted == "3 outputs of 2 systems"


@pytest.mark.parametrize(("score", "value"), [("bleu", "0.0"), ("word_errors", "7")])
def test_empty_text_of_a_table_is_named(score, value):
    rows = [["a", "", value], ["b", "", ""], ["c", "ein Hund", value], ["d", "  ", value]]
    shown = ["(nothing)", "not run", "ein Hund", "(nothing)"]
    assert [text for _, text, _ in with_empty_named(["item", "ours", score], rows)] == shown


def test_table_and_figure_that_were_cut_short_are_shown(project, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # results are below the working folder
    touch(project.layout.path(ExampleTable("multichannel", "table3")), "item,ours,bleu\na,ein Hund,1.0\nb,ein")
    picture = touch(project.layout.path(Figure("multichannel", "figure3")), "<svg/>")
    touch(picture.with_suffix(".csv"), "system,longer_than,bleu\nRNN,10,20.5\nodd")
    page = page_of_paper(project, tmp_path / "site", "multichannel")
    assert row_of(page, "b") == ["b", "ein", ""] and row_of(page, "odd") == ["odd", "", ""]


def test_the_same_results_make_the_same_bytes_over_an_old_site(site, tmp_path):
    project, first = site
    own = (".git/refs/HEAD", "data/.gitattributes")  # kept: they publish the site
    for name in ("assets/site.css", "run-gone.html", *own):
        touch(tmp_path / "site" / name)
    second = site_of(project, tmp_path / "site")
    for name in own:
        (second / name).unlink()
    files = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(second) for path in second.rglob("*") if path.is_file())
    assert [name for name in files if (first / name).read_bytes() != (second / name).read_bytes()] == []


def check_links(site: Path) -> None:
    pages = {path.name: Page(path) for path in site.glob("*.html")}
    for name, page in pages.items():
        for link in page.links:
            if re.match(r"https://arxiv\.org/abs/|data:,$", link):
                continue
            file, _, anchor = link.partition("#")
            assert (site / (file or name)).exists(), f"{name}: {link}"
            assert not anchor or anchor in pages[file or name].anchors, f"{name}: {link}"
        assert len(page.anchors) == len(set(page.anchors)), f"{name}: an id stands twice"


@pytest.mark.parametrize(("scales", "scale"), [(None, "demo"), ([], "demo"), (["small"], "small")])
def test_paper_without_tables_here_names_a_scale_that_makes_it(project, scales, scale):
    record = project.papers["weighted"]
    tables = {name: table.model_copy(update={"scales": scales}) for name, table in record.tables.items()}
    project.papers["weighted"] = record.model_copy(update={"tables": {} if scales is None else tables})
    card = make_card(SiteData(project, False), "weighted", [], {})
    assert card.scale == scale and ("scale=small" in card.command) == (scale == "small")
    assert card.command.startswith("snakemake ") and card.command.endswith(" -- weighted")
    assert (unknown_target(project, "weighted", {"weighted"}) is None) == (scale == "demo")


@pytest.mark.parametrize(("precision", "said"), [(0.5, "The one measured difference is in"), (0.0, "Of 1 claim")])
def test_difference_to_a_system_below_the_floor_is_no_answer(project, precision, said):
    """A Transformer without a right word says nothing about the Weighted Transformer."""
    for system, share in (("attention/C1", precision), ("C", 0.6)):
        (run,) = project.runs_of("weighted", system, "wmt14-en-de")
        write_score(project, run, "bleu_paper", "final", "dev", bleu_statistics(share - 0.15 * (not share)))
    site = SiteData(project, False)
    results = project.claims["weighted"].evaluate(site.folders("weighted"), (NotRun, UserError))
    card = make_card(site, "weighted", [one for one in results if one.name == "better-two-layers"], {})
    assert card.answer.startswith(said) and (card.chart is None) == (not precision)


def test_pages_do_not_need_freed_training_text(project, tmp_path):
    make_results(project)
    texts = [*(tmp_path / "work").rglob("prepared/train.tok.*")]
    for path in texts:
        path.unlink()
    pages = pages_of_outputs(project, tmp_path / "site")
    assert texts and pages and not any("by frequency" in page for page in pages)


@pytest.mark.parametrize("fault", ["another beam", "a faulty record", "an earlier training"])
def test_score_that_does_not_count_is_on_no_page(project, tmp_path, fault):
    make_results(project)
    old, current = (project.runs_of("weighted", name, "wmt14-en-de")[0] for name in ("C", "attention/C1"))
    score = project.layout.path(Score(old, "scores", "final", "dev"))
    output = project.layout.path(Translation(old, "final", "dev"))
    match fault:
        case "another beam":
            decoded(lines=40, decoding={"beam_size": 7}).write(output.with_suffix(".json"))
        case "a faulty record":
            output.with_suffix(".json").write_text("{}")
        case "an earlier training":
            ScoreFile.read(score).model_copy(update={"training": "old"}).write(score)
    pages_of_outputs(project, site := tmp_path / "site")
    assert [run_page(run) in read(site / "data/grammar-en-de-dev.js") for run in (old, current)] == [False, True]
    pages = [page_of_run(project, site, run) for run in (old, current)]
    for page, names in zip(pages, ({"uniform"}, {"final"}), strict=True):
        (table,) = html.fromstring(page).xpath("//table[@id='scores']")
        assert {row[4].text for row in table.xpath("tbody/tr")} == names
    assert "final/scores.json" in pages[0].partition("not scored</summary>")[2]


@pytest.mark.parametrize(("beam", "said"), [(4, NOT_TESTED), (7, str(Verdict.NOT_RUN))])
def test_claim_on_a_score_of_other_settings_is_called_not_run(project, beam, said):
    make_results(project)
    run = project.runs_of("weighted", "C", "wmt14-en-de")[0]
    record = project.layout.path(Translation(run, "final", "dev")).with_suffix(".json")
    decoded(decoding={"beam_size": beam}).write(record)
    claim = Some(needs=lambda view, scores: [Score(run, "scores", "final", "dev")], is_tested=lambda scale: True)
    result = Some(claim=claim, verdict=Verdict.NOT_RUN)
    assert shown_verdict(SiteData(project, False), Some(view=None), result, {}) == said


def test_every_link_leads_to_a_file_and_nothing_is_fetched(site):
    check_links(site[1])
    assert not re.search(r"\bfetch\(|XMLHttpRequest|\bimport\b", "".join(map(read, (site[1] / "assets").glob("*.js"))))


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_a_site_of_nothing_says_so_and_its_links_hold(project, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    touch(project.layout.path(ExampleTable("multichannel", "table3")), "item,ours,bleu\n")
    site = site_of(project, tmp_path / "site")
    check_links(site)
    home = read(site / "index.html")
    assert "4 papers did not run" in home and re.search(r"snakemake --config \S+ -- weighted<", unescape(home))
    assert "not run" in read(site / "paper-weighted.html") and not [*site.glob("run-*")]
    for paper, table in (("attention", "table1"), ("multichannel", "table3"), ("coldfusion", "table1")):
        missing = read(site / f"paper-{paper}.html").split(f'<h2 id="{table}">')[1].split("<h2")[0]
        if paper == "multichannel":
            assert "The table has no rows." in missing
        else:
            assert "not made" in missing and f"/{paper}/{table}.csv</code> makes it" in missing


@pytest.fixture
def weighted(site) -> str:
    return read(site[1] / "paper-weighted.html")


def test_cell_links_to_its_run_and_a_failed_one_is_marked(site, weighted):
    ours = re.search(r'<a href="(run-weighted\.C\.[^"]*)">(\d+\.\d+)</a>', weighted)
    assert ours and f">{ours[2]}</td>" in read(site[1] / ours[1])
    assert re.search(r'<span class="badge failed"[^>]*><a href="run-weighted\.A\.', weighted)
    failed = next(site[1].glob("run-weighted.A.*en-de*"))
    assert "does not fit &lt;b&gt;" in read(failed)


def test_csv_beside_a_table_has_the_numbers_of_the_page(site, weighted):
    """A file in results/ may be older, or of other seeds."""
    table = weighted.split('<h2 id="table2">')[1].split("</tbody>")[0]
    (file,) = re.findall(r'<a href="([^"]*)">CSV</a>', table)
    with open(site[1] / file, encoding="utf-8", newline="") as lines:
        found = [row["bleu_ours"] for row in csv.DictReader(lines) if row["bleu_ours"]]
    assert len(found) == 2 and all(f">{number}</a>" in table for number in found)


def test_mark_of_all_cells_stands_once_above_the_table(weighted):
    table = weighted.split('<h2 id="table2">')[1].split("</tbody>")[0]
    above, _, rows = table.partition("<thead>")
    for mark in ("not-comparable", "provisional"):
        assert above.count(f"badge {mark}") == 1 and mark not in rows


def test_remark_that_columns_share_is_listed_once(weighted):
    for notes in re.findall(r"<summary>Data, metrics.*?</details>", weighted, re.DOTALL):
        texts = [line.partition("</strong>: ")[2] for line in notes.split("<li>") if " stands in for " in line]
        assert len(texts) == len(set(texts)) and not any("Ours:" in text for text in texts)


@pytest.mark.parametrize("missing", [0, 1])
def test_command_for_claims_stands_only_where_runs_are_missing(project, tmp_path, missing):
    """No claim ran, as nothing is scored."""
    runs = make_card(SiteData(project, False), "multichannel", [], {}).totals.runs
    for run in runs[missing:]:
        write_training(project, run, [2.0], [2.0])
    page = page_of_paper(project, tmp_path / "site", "multichannel")
    assert " not run</span>" in page and (" not run</span> <code>snakemake " in page) == bool(missing)


def test_runs_that_never_ran_have_no_page(site):
    project, folder = site
    begun = {run_page(run) for run in SiteData(project, False).runs if project.layout.run(run).exists()}
    assert begun and {path.name for path in folder.glob("run-*.html")} == begun


def test_cell_of_some_seeds_links_to_the_run_that_explains_it(tmp_path):
    """One seed of three is done; the second failed, or no other was started, so that the score is incomplete."""
    project = real_project({"work": str(tmp_path / "work"), "scale": "demo", "seeds": 3})
    for system in ("C", "N4"):
        first, second, _ = project.runs_of("weighted", system, "wmt14-en-de")
        write_training(project, first, [2.0], [2.0])
        if system == "C":
            write_failure(folder_of(project, second), "no memory")
    site = site_of(project, tmp_path / "site")
    check_links(site)
    table = read(site / "paper-weighted.html").split('id="table-table2"')[1].split("</tbody>")[0]
    links = {
        system: [re.findall(rf"run-weighted\.{system}\.[^.]*\.seed(\d)", cell) for cell in table.split("<td")]
        for system in ("C", "N4")
    }
    assert [found for found in links["C"] if found] == [["2"], ["2"], ["1"]]
    assert [found for found in links["N4"] if found] == [["1"]]
    marks = [re.findall('class="badge ([^"]*)"', row) for row in table.split("<tr") if "run-weighted.N4." in row]
    assert marks == [["incomplete", "incomplete", "1-of-3-runs-done"]]


def test_trained_system_without_scores_is_not_called_not_run(project, tmp_path):
    runs = [project.runs_of("weighted", system, "wmt14-en-de")[0] for system in ("attention/C1", "C")]
    for run in runs:
        write_training(project, run, [2.0], [2.0])
    page = page_of_paper(project, tmp_path / "site", "weighted")
    rows = page.split('id="table-table2"')[1].split("</tbody>")[0].split("<tr")
    for run in runs:
        (row,) = [row for row in rows if run_page(run) in row]
        assert "not scored" in row and "not run" not in row
    assert re.search(r"snakemake --config \S+ -- results/demo/weighted/table2.csv<", unescape(page))


def test_row_with_some_of_its_scores_is_incomplete_as_in_the_csv(project, tmp_path):
    (run,) = project.runs_of("attention", "base", "wmt14-en-de")
    write_training(project, run, [2.0], [2.0])
    write_score(project, run, "perplexity", "final", "dev", perplexity_statistics(1.0))
    page = page_of_paper(project, tmp_path / "site", "attention").split('id="table-table3"')[1].split("</tbody>")[0]
    (row,) = [row for row in page.split("<tr") if run_page(run) in row]
    with open(tmp_path / "site/tables/attention.table3.csv", encoding="utf-8", newline="") as lines:
        found = {line["status"] for line in csv.DictReader(lines) if line["ppl_ours"]}
    assert found == {"incomplete"} and re.findall('class="badge ([^"]*)"', row)[-1] == "incomplete"


def test_printed_and_ours_never_share_an_axis(weighted):
    chart = weighted[weighted.index('class="dots panels-2"') :].split("</figure>")[0]
    assert len(re.findall('class="head">', chart)) == 2 and len(re.findall('class="mark scale panel-', chart)) == 2


def test_setting_that_ran_stands_beside_the_printed_one(site, weighted):
    spec = site[0].run_spec(site[0].runs_of("weighted", "C", "wmt14-en-de")[0])
    assert f'<td class="settings">{spec.model.d_model} (512 printed)</td>' in unescape(weighted)


@pytest.mark.slow
def test_claim_says_why_it_is_not_judged_or_its_caveat(project, tmp_path):
    for system, nats, last in (("base", 1.0, 2.0), ("A1", 1.5, 2.4)):
        (run,) = project.runs_of("attention", system, "wmt14-en-de")
        write_training(project, run, [2.5, *[2.0] * 7, last, last], [1.0] * 10)
        write_score(project, run, "perplexity", "final", "dev", perplexity_statistics(nats))
    page = page_of_paper(project, tmp_path / "site", "attention")
    claims = dict(re.findall(r'id="claim-([\w-]+)">(.*?)</article>', page, re.DOTALL))
    assert "<dt>caveat</dt><dd>h = 1: its dev loss ended 20% above its lowest</dd>" in claims["one-head"]
    assert "<dt>why not</dt>" in claims["many-heads"] and "<dt>caveat</dt>" not in claims["many-heads"]


@pytest.mark.slow
def test_a_page_that_is_published_has_no_password(site, tmp_path):
    project = real_project(site[0].config.model_dump() | {"mirror": "https://me:s3cr@t@host/data"})
    scored = next(SiteData(project, False).existing(Score)).run
    page = page_of_run(project, tmp_path / "site", scored)
    assert "mirror=https://…@host/data" in page and "cr@t" not in page


def test_commands_of_a_run_page_make_what_is_missing_there(tmp_path):
    """They are quoted for a shell."""
    project = real_project({"work": str(tmp_path / "it's my work"), "scale": "demo"})
    failed, trained, scored = (project.runs_of("weighted", system, "wmt14-en-de")[0] for system in ("A", "N4", "C"))
    write_failure(folder_of(project, failed), "no memory")
    write_training(project, trained, [2.0], [2.0])
    write_score(project, scored, "bleu_paper", "final", "dev", bleu_statistics(0.5))
    places = {}
    for run in (failed, trained, scored):
        text = unescape(page_of_run(project, tmp_path / "site", run))
        commands = re.findall(r"(?:<pre>|\n)((?:snakemake|python) [^<\n]*)", text)
        words = [word for command in commands for word in shlex.split(command) if "/runs/" in word]
        assert all(word.startswith(f"{project.layout.run(run)}") for word in words)
        places[run] = [word.removeprefix(f"{project.layout.run(run)}") for word in words]
    assert "/done.json" in places[failed] and len(places[scored]) >= 2
    assert "/final/scores.json" in places[trained] and "/done.json" not in places[trained]


def test_the_commands_that_verify_a_number_do_that(site):
    run = site[0].runs_of("weighted", "C", "wmt14-en-de")[0]
    page = unescape(read(site[1] / run_page(run)))
    commands = [shlex.split(line) for line in re.findall(r"(?:<pre>|\n)((?:snakemake|python) [^<\n]*)", page)]
    again, retrained = commands[0], next(command for command in commands if command[0] == "python")
    assert jobs(require(call(ROOT, again[0], "-n", "--nolock", *again[1:])))["score"] == 1
    assert retrained[:4] == ["python", "-m", "pipeline", "train"] and PIPELINE.parse(retrained[3:]).restart
    assert Path(retrained[retrained.index("--run") + 1]) == site[0].layout.run(run)


def test_paper_page_marks_the_default_of_each_reading(site, weighted):
    text = unescape(weighted)
    for name, reading in site[0].papers["weighted"].readings.items():
        assert f"{report_title(name)}, {reading.where}: “{reading.passage}”</h3>" in text
        for key, choice in reading.choices.items():
            marked = " (default)" if key == reading.default else ""
            assert f'<th scope="row">{key}{marked}</th>' in text and choice.means in text and choice.support in text


def test_markup_in_sentences_names_and_folders_is_text(tmp_path):
    (tmp_path / "project").mkdir()
    root = copy_project(tmp_path / "project")
    printed, paper = (root / "workflow/papers/weighted" / name for name in ("table2.csv", "paper.yaml"))
    printed.write_text(printed.read_text().replace("Weighted Transformer,C,", f"{EVIL},C,"))
    paper.write_text(paper.read_text().replace("Weighted Transformer, N = 2", EVIL))
    project = load_project(root, {"work": str(tmp_path / "<script>x<")})
    make_results(project, EVIL)
    site = site_of(project, tmp_path / "site")
    for path in site.glob("*.html"):
        assert not [text for text in Page(path).scripts if "alert" in text and "<" in text], path
        assert EVIL not in read(path) and "<script>x" not in read(path)
    for path in (site / "data").glob("*.js"):
        assert "<" not in read(path), path
    assert "&lt;script&gt;alert(1)" in read(site / "paper-weighted.html")


def test_json_in_a_page_ends_no_script():
    assert as_json({"a": "</script><!--\u2028"}) == '{"a":"\\u003c/script>\\u003c!--\\u2028"}'


def test_line_is_interrupted_at_numbers_that_are_not_finite():
    rows = [{"x": step, "y": loss, "series": "a"} for step, loss in enumerate((1.0, math.inf, 2.0, math.nan, 3.0, 3.0))]
    (line,) = curves(rows, "y", "Loss").series
    assert line.path.count("M") == 3 and line.path.count("L") == 1 and len(line.points) == 4


def test_curves_are_interrupted_where_all_steps_were_skipped(project):
    run = project.runs_of("weighted", "A", "wmt14-en-de")[0]
    (folder := folder_of(project, run)).mkdir(parents=True)
    skipped = progress_line(3, loss_per_token=None, nll_per_token=None, perplexity=None, gradient_norm=None, skipped=9)
    append(folder, [progress_line(1), progress_line(2), skipped, progress_line(4), progress_line(5)])
    drawn = {chart.title: chart.series[0].path for chart in training_charts(Some(project=project), run)}
    parts = {title: re.sub("[^ML]", "", path) for title, path in drawn.items()}
    assert parts["Loss"] == parts["Gradient norm"] == "MLML" and parts["Learning rate"] == "MLLLL"


def test_chart_of_groups_names_each_line_once_in_words():
    rows = [{"group": group, "y": 2.0, "series": "paper: a", "of": 3} for group in ("1–2", "3–4")]
    assert by_group(rows, "BLEU", "By length", "words").summary == "paper: a: 1–2 (of 3), 2, 3–4 (of 3), 2"


def test_pages_of_different_things_have_different_names():
    parts = [("a", "b-c", "d"), ("a-b", "c", "d"), ("a", "b", "c.d"), ("a.b", "c", "d")]
    pages = [run_page(RunId(*names, 1)) for names in parts]
    pages += [name(*names) for name in (compare_page,) for names in (("a", "b-c"), ("a-b", "c"), ("a.b", "c"))]
    pages += map(paper_page, ("a", "a#b", "a?b", "a%23b", "a b", "é"))
    assert len({*pages}) == len(pages)
    assert all(unquote(urlsplit(page).path) == page for page in pages)


def test_zero_has_no_minus_sign():
    chart = differences("change", ["a"], {"BLEU": [Number(-1e-9, -1.0, 1.0)]})
    ((_, (mark,)),) = chart.panels
    assert mark.text == "+0.00 [−1.00, +1.00]"


def test_ticks_of_random_axes_are_round_few_and_inside():
    generator = random.Random(random.random())
    for _ in range(200):
        low = generator.uniform(-1, 1) * 10 ** generator.randint(-4, 5)
        width = generator.random() * 10 ** generator.randint(-4, 5)
        high = low + max(width, abs(low) / 1e6)  # labels have ten digits at most
        axis = nice_axis("", [low, high])
        assert 2 <= len(axis.ticks) <= 7 and all(0 <= place <= 100 for place, _ in axis.ticks)
        assert axis.at(low) <= axis.at(high)
        for place, label in axis.ticks:
            assert axis.at(float(label.replace("−", "-"))) == pytest.approx(place, abs=1.0)


@pytest.mark.parametrize(
    ("high", "labels"),
    [
        (4.5e8, ["0", "1e8", "2e8", "3e8", "4e8"]),
        (-6e-8, ["−6e−8", "−4e−8", "−2e−8", "0"]),
        (-1.0, ["−1.0", "−0.5", "0.0"]),
        (0.0, ["0.0", "0.5", "1.0"]),
        (4e5, ["0", "100000", "200000", "300000", "400000"]),
    ],
)
def test_ticks_of_very_large_small_and_no_numbers_are_short(high, labels):
    assert [label for _, label in nice_axis("", [0.0, high]).ticks] == labels


def test_few_ticks_are_still_two():
    generator = random.Random(random.random())
    for _ in range(200):
        low, high = -generator.random() * 10 ** generator.randint(-3, 4), generator.random()
        assert 2 <= len(nice_axis("", [low, 0.0, high], ticks=3).ticks) <= 5


def test_names_between_backticks_become_those_of_readers():
    text, names = "`a<b` and `bleu_tok`, not `bleu_tok<`", {"a<b": "mean & gain"}
    assert with_code(text, names) == "mean &amp; gain and BLEU (tokenised), not <code>bleu_tok&lt;</code>"
    assert without_code(text, names) == "mean & gain and BLEU (tokenised), not bleu_tok<"


def test_no_page_names_a_metric_as_settings_files_do(site):
    names = [name for name in METRICS if "_" in name]
    for path in site[1].glob("*.html"):
        text = re.sub(r"<script.*?</script>|(href|id|src)=\"[^\"]*\"", "", read(path), flags=re.DOTALL)
        assert not re.search(rf"(?<![\w/-])({'|'.join(names)})(?![\w/-])", text), path.name


def test_systems_described_alike_are_told_apart_by_name():
    paper = real_project().papers["weighted"]
    systems = paper.systems | {"twin": paper.systems["A"]}
    project = Some(papers={"weighted": paper.model_copy(update={"systems": systems})})
    titles = [output_name(project, RunId("weighted", name, "toy", 1), "final") for name in ("A", "C", "twin")]
    alike, other = (paper.systems[name].description for name in ("A", "C"))
    shown = (f"{alike} [A]", other, f"{alike} [twin]")
    assert titles == [f"weighted: {title} (final)" for title in shown]


def test_columns_that_differ_in_decoding_are_told_apart_by_it():
    project = real_project()
    titles = column_titles(project, project.table("attention", "recipes").cells)
    assert titles["ende"] == "BLEU en–de averaged" and titles["ende_last"] == "BLEU en–de final"
    assert titles["ende_sacrebleu"] == "sacreBLEU en–de" and len({*titles.values()}) == len(titles)


def test_parameters_are_titled_by_the_model_they_belong_to():
    titles = {"table2": {"parameters": "parameters at paper size", "parameters_here": "parameters"}}
    titles |= {"ablations": {"parameters": "parameters"}, "readings": {"operations": "FLOPs a step"}}
    project = real_project()
    for table, expected in titles.items():
        assert expected.items() <= column_titles(project, project.table("weighted", table).cells).items()


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (["done", "not run", "done"], "2 of 3 runs done"),
        (["not run", "not run"], "not run"),
        (["done", "failed", "not run"], "failed"),
        (["done", "done"], "not scored"),
    ],
)
def test_row_says_how_many_of_its_runs_are_done(states, said):
    site = Some(status=states.__getitem__)
    site.why_missing = partial(SiteData.why_missing, site)
    assert row_state(site, [*range(len(states)), 0]) == said


def test_titles_on_which_tables_disagree_name_no_column():
    tables = [Some(titles={"a": "BLEU", "b": "BLEU en–de"}), Some(titles={"b": "BLEU", "c": "CER"})]
    assert common_titles(tables) == {"a": "BLEU", "c": "CER"}


def test_captions_name_columns_by_their_whole_keys():
    project = real_project()
    for paper in project.papers:
        for name in project.tables_here(paper):
            entry = project.table(paper, name)
            pieces = {word for key in entry.cells for word in key.split("_")}
            named = {*re.findall(r"`([^`]*)`", entry.caption)}
            assert not (named & pieces) - {*entry.cells, *METRICS}, (paper, name)


@pytest.mark.parametrize("private", [False, True])
def test_restricted_text_is_shown_privately_only(private, tmp_path):
    project = real_project({"work": str(tmp_path / "work"), "scale": "small"})
    make_results(project, "heimlich")
    site = site_of(project, tmp_path / "site", private)
    shown = [path.name for path in site.rglob("*") if path.suffix in (".html", ".js") and "heimlich" in read(path)]
    assert any(name.startswith("multi30k-en-de") for name in shown) == private
    assert bool(shown) == private
    assert "Multi30K: Multilingual" in read(site / "outputs-multi30k-en-de-dev.html").replace("Multi30k:", "Multi30K:")


@pytest.mark.parametrize("private", [False, True])
def test_figure_that_quotes_restricted_text_is_private(private, tmp_path):
    """Corpora of this scale may not be redistributed; heads and alignments show their words, curves do not."""
    project = real_project({"work": str(tmp_path / "work"), "scale": "small"})
    pages = Pages(tmp_path / "site", SiteData(project, private))
    figures = [(paper, name) for paper in project.papers for name in project.papers[paper].figures]
    hidden = {one for one in figures if figure(pages, *one)["hidden"]}
    quoting = {("attention", f"figure{number}") for number in (3, 4, 5)} | {("coldfusion", "figure3")}
    assert quoting < set(figures) and hidden == (set() if private else quoting)


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UserError, match="is not empty and not a site"):
        Pages(tmp_path, SiteData(real_project(), False))
    assert main(["site", "--out", str(tmp_path)]) == 1


def test_unwritable_folder_names_the_option_out(capsys):
    assert main(["site", "--root", str(ROOT), "--out", "/proc/site"]) == 1
    assert "/proc/site: No such file or directory; make it writable, or choose another --out" in capsys.readouterr().err


@pytest.mark.parametrize(("lines", "named"), [(2, "training text"), (3, "first 2 lines of the training text")])
def test_counted_part_of_a_long_training_text_is_named(tmp_path, monkeypatch, lines, named):
    monkeypatch.setattr(outputs, "COUNTED", 2)
    text = touch(tmp_path / "train.tok.de", "a a\n\n" + "b\n" * (lines - 2))
    assert outputs.training_counts(text) == ({"a": 2}, named)


def test_word_accuracy_counts_repeated_words():
    references = sentences("x")
    generator = random.Random(random.random())
    outputs = [" ".join(generator.sample(line.split(), k=max(1, len(line.split()) // 2))) for line in references]
    counts = Counter({word: generator.choice((0, 1, 7, 2000)) for line in references for word in line.split()})
    for bucket, (value, words) in word_accuracy(counts, references, outputs).items():
        inside = [[w for w in line.split() if bucket_of(counts[w]) == bucket] for line in (*references, *outputs)]
        theirs, ours = inside[: len(references)], inside[len(references) :]
        right = sum(min(a.count(w), b.count(w)) for a, b in zip(theirs, ours, strict=True) for w in set(a))
        total = sum(map(len, theirs)) + sum(map(len, ours))
        assert (value, words) == (pytest.approx(200 * right / total), sum(map(len, theirs)))
    names = [bucket_name(place) for place in range(len(FREQUENCIES))]
    assert ", ".join(names) == "0, 1, 2–4, 5–9, 10–99, 100–999, 1000+"


@pytest.mark.parametrize(("decoding", "named"), [("final", False), ("uniform", True)])
def test_scores_of_one_test_set_and_decoding_do_not_name_them(project, tmp_path, decoding, named):
    run = project.runs_of("weighted", "C", "wmt14-en-de")[0]
    write_training(project, run, [2.0], [2.0])
    write_score(project, run, "bleu_paper", decoding, "dev", bleu_statistics(0.5))
    write_score(project, run, "perplexity", "final", "dev", perplexity_statistics(2.0))
    assert ('class="which' in page_of_run(project, tmp_path / "site", run)) == named


def test_data_that_was_only_scored_is_named_with_its_terms(site):
    """The made recognisers were trained on the source domain and transcribe the target domain."""
    project, folder = site
    used = project.stand_in("target")
    assert f"{used} instead of target" in read(folder / "paper-coldfusion.html")
    assert project.dataset_records[used].title in read(folder / "index.html").split("<h2>Data</h2>")[1]


def test_published_results_stand_beside_ours_on_the_home_page(site, project, tmp_path):
    assert "fairseq tiny Transformer" in read(site[1] / "index.html").split("recipes did not run")[1]
    assert "arXiv None" not in "".join(map(read, site[1].glob("*.html")))
    small = real_project({"work": str(tmp_path / "work"), "scale": "small"})
    run = small.runs_of("anchors", "tiny-transformer", "multi30k-en-de-lowercased")[0]
    write_training(small, run, [2.0], [2.0])
    write_score(small, run, "bleu_tok_lc", "averaged", "test", bleu_statistics(0.5))
    home = read(site_of(project, tmp_path / "site") / "index.html")
    ours, row = fill(small, "anchors", "multi30k").cells["bleu"][0], row_of(home, "fairseq tiny Transformer")
    assert row[1:3] == [ours["ours"], "41.02"] and row[4].replace("−", "-") == ours["difference"] != ""
    check_links(tmp_path / "site")  # its run has no page here


def test_readings_of_a_passage_stand_beside_their_scores(site, weighted):
    reading = weighted[weighted.index('id="choices-feed-forward"') :].split("</table>")[0]
    shared, split = row_of(reading, "shared (default)"), row_of(reading, "split")
    table = fill(site[0], "weighted", "readings")
    index = next(i for i, row in enumerate(table.names) if "literal" in row)
    assert shared[2].startswith(table.cells["bleu"][index]["ours"])
    assert split[1:4] == ["not run", "not run", "split"]


def row_of(page: str, begins: str) -> list[str]:
    rows = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL))
    texts = ([unescape(re.sub("<[^>]*>", "", cell)).strip() for cell in row] for row in rows)
    return next(row for row in texts if row[0].startswith(begins))


def test_caption_of_a_figure_is_its_text_above_the_picture(tmp_path):
    path = tmp_path / "figure1.md"
    assert caption(path, "smoke") == ""
    path.write_text("Lengths, at scale smoke. Longer is worse.\n\n![](figure1.svg)\n\n![](other.svg)\n\nData: toy\n")
    assert caption(path, "smoke") == "Longer is worse."
    path.write_text("Lengths alone.\n\n![](figure1.svg)\n")
    assert caption(path, "smoke") == "Lengths alone."
