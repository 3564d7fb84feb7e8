"""Figures show what the runs logged, with their numbers and a caption."""

import re
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from fabricated import append, folder_of, write_branches, write_training
from made_records import data_loss, validation_line
from made_reports import make_report, report_command
from matplotlib import font_manager, get_data_path
from real_project import real_project

from pipeline.__main__ import main
from pipeline.analysis.figures.attention import shown_as
from pipeline.analysis.figures.curves import DevCurves, LossCurves, mean_filter
from pipeline.analysis.figures.figure import COLOURS, curve_style, line_style, new_figure, save
from pipeline.analysis.view import PaperView
from pipeline.core.provenance import ROOT
from pipeline.core.records.outputs import AttentionMap
from pipeline.papers.reports import figure_artifacts
from pipeline.report.figure import caption

TOKENS = ["▁The", "▁dog", "s", "▁see", "▁it", ".", "</s>"]


def put_map(project, figure, query, heads, tokens=TOKENS):
    (artifact,) = figure_artifacts(project, "attention", figure)
    maps = np.random.default_rng(0).dirichlet(np.ones(len(tokens)), (len(heads), len(tokens)))
    record = {"rule": project.figure("attention", figure).rule, "pronoun": query == 4, "weights_digest": "abc"}
    record |= {"split": "test", "layer": 2, "layers": 3, "sentence": 7}
    record |= {"tokens": tokens, "heads": heads, "query": query, "weights": maps.tolist()}
    AttentionMap.model_validate(record).write(project.layout.path(artifact))


def saved(folder, text):
    """Save a figure of one word; return the bytes of its SVG, with the word replaced by `?`, and of its PNG."""
    picture = new_figure(2, 1)
    picture.text(0.5, 0.5, text)
    save(picture, folder / "word.svg")
    svg, png = ((folder / f"word.{suffix}").read_bytes() for suffix in ("svg", "png"))
    return svg.replace(text.encode(), b"?"), png


@pytest.mark.parametrize("is_installed", [False, True])
def test_other_scripts_are_drawn_if_a_font_is_installed(tmp_path, monkeypatch, caplog, is_installed):
    """A PNG without the font shows the same boxes for all three words. The font is not in matplotlib's list yet."""
    serif, known = str(Path(get_data_path(), "fonts/ttf/DejaVuSerif.ttf")), font_manager.fontManager.ttflist
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [font for font in known if font.name != "DejaVu Serif"])
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(ROOT / "README.md"), serif] * is_installed)
    with warnings.catch_warnings(record=True) as caught:
        svgs, pngs = zip(*(saved(tmp_path, word) for word in ("ᴕᴤ", "ᴤᴕ", "ᴤᴤ")), strict=True)
    assert len(set(svgs)) == 1 and len(set(pngs)) == (3 if is_installed else 1) and not caught
    said = [record.getMessage().partition(";")[0] for record in caplog.records]
    boxes = f"{tmp_path}/word.svg: no installed font has {{}}, shown as boxes in the PNG"
    assert said == ([] if is_installed else [boxes.format(signs) for signs in ("ᴕ ᴤ", "ᴕ ᴤ", "ᴤ")])


@pytest.mark.parametrize(
    ("paper", "figure", "seeds"),
    [("weighted", "figure2", "1, 2, 3"), ("weighted", "figure3", "1"), ("attention", "figure3", "1")],
)
def test_caption_names_the_seeds_that_are_drawn(tmp_path, paper, figure, seeds):
    """Branch weights and attention are those of the first of three seeds."""
    project = real_project({"work": str(tmp_path), "scale": "demo", "seeds": 3})
    assert f" Seeds: {seeds}.\n" in caption(project, paper, figure, "")


@pytest.mark.parametrize(
    ("paper", "systems", "dataset"),
    [("weighted", ["C", "attention/C1"], "wmt14-en-de"), ("coldfusion", ["attention-source", "CF4"], "source")],
)
def test_dev_curves_name_unit_and_who_misses_the_line(project, paper, systems, dataset):
    for system, losses in zip(systems, ([2.0, 1.0], [2.0, 1.5]), strict=True):
        write_training(project, project.runs_of(paper, system, dataset)[0], losses, losses)
    figure = DevCurves(kind="dev_curves", caption="Toy.", dataset=dataset, systems=systems)
    drawing = figure.draw(PaperView(project, paper))
    (axes,) = drawing.picture.axes
    assert axes.get_ylabel() == "development cross-entropy (nats per symbol)"  # subwords, words or characters
    assert re.search(r"reached by [^;]+ after \d+ steps; not by [^;]+\.$", drawing.facts)


@pytest.mark.parametrize(("kind", "name"), [(LossCurves, "loss_curves"), (DevCurves, "dev_curves")])
@pytest.mark.parametrize("seeds", [1, 2])
def test_caption_explains_the_paler_curves_of_further_seeds(tmp_path, kind, name, seeds):
    project = real_project({"work": str(tmp_path), "scale": "demo", "seeds": seeds})
    for run in project.runs_of("weighted", "C", "wmt14-en-de"):
        write_training(project, run, [2.0, 1.0], [2.0, 1.0])
    figure = kind(kind=name, caption="Toy.", dataset="wmt14-en-de", systems=["C"])
    drawing = figure.draw(PaperView(project, "weighted"))
    alphas = [line.get_alpha() for line in drawing.picture.axes[0].get_lines()]
    assert alphas[:seeds] == [1, 0.5][:seeds]
    assert drawing.facts.endswith(" Paler curves are further seeds.") == (seeds > 1)


def test_loss_curves_have_a_point_a_validation(project, tmp_path):
    losses = {"attention/C1": [5.0, 4.0, 3.5], "C": [4.8, 3.9]}
    for system, dev in losses.items():
        write_training(project, project.runs_of("weighted", system, "wmt14-en-de")[0], dev, dev)
    rows = make_report("figure", "weighted", "figure2", svg := tmp_path / "figure2.svg")
    assert [float(row["dev_loss"]) for row in rows] == [*losses["attention/C1"], *losses["C"]]
    text = svg.read_text(encoding="utf-8")
    assert "loss on training data (nats per symbol" in text
    assert "development loss (nats per symbol)" in text
    assert all(colour.lower() in text.lower() for colour in COLOURS[:2])


def test_branch_weights_are_filtered_with_a_named_window(project, tmp_path):
    (run,) = project.runs_of("weighted", "C", "wmt14-en-de")
    weights = np.random.default_rng(0).dirichlet(np.ones(4), 30)
    write_branches(project, run, weights)
    rows = make_report("figure", "weighted", "figure3", tmp_path / "figure3.svg")
    rows = [row for row in rows if row["weight"] == "alpha" and row["branch"] == "2"]
    assert [float(row["value"]) for row in rows] == pytest.approx(weights[:, 1].tolist())
    assert [float(row["smoothed"]) for row in rows] == pytest.approx(mean_filter(weights, 9)[:, 1].tolist())
    assert "spans 9 entries" in (tmp_path / "figure3.md").read_text(encoding="utf-8")


def test_branch_weights_of_a_single_step_are_refused(project, tmp_path, capsys):
    (run,) = project.runs_of("weighted", "C", "wmt14-en-de")
    write_branches(project, run, np.full((1, 4), 0.25))
    assert main(report_command("figure", "weighted", "figure3", tmp_path / "it.svg")) == 1
    assert "progress.jsonl: branch weights of 1 step, at least 2 are needed" in capsys.readouterr().err


@pytest.mark.parametrize("peak", [0.5, 0.9])
def test_both_panels_of_branch_weights_hold_every_value(project, peak):
    (run,) = PaperView(project, "weighted").runs("C", "wmt14-en-de")
    kappa = np.full((30, 4), 0.25)
    alpha = np.linspace(kappa[0], [peak, *[(1 - peak) / 3] * 3], 30)
    write_branches(project, run, kappa, alpha=alpha)
    drawing = project.figure("weighted", "figure3").draw(PaperView(project, "weighted"))
    for axes in drawing.picture.axes:
        low, high = axes.get_ylim()
        assert low == 0 and all(max(line.get_ydata()) <= high for line in axes.lines)


@pytest.mark.parametrize("steps", [600, 15_000])
def test_step_numbers_of_branch_weights_are_apart(project, steps):
    (run,) = PaperView(project, "weighted").runs("C", "wmt14-en-de")
    write_branches(project, run, np.full((steps, 4), 0.25))
    picture = project.figure("weighted", "figure3").draw(PaperView(project, "weighted")).picture
    picture.draw_without_rendering()
    for axes in picture.axes:
        boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
        gaps = [right.x0 - left.x1 for left, right in pairwise(boxes)]
        assert len(gaps) > 2 and min(gaps) > boxes[0].height / 2


@pytest.mark.parametrize(("entries", "window"), [(12, 5), (4, 9), (4, 8), (1, 3), (5, 4)])
def test_mean_filter_averages_existing_entries(entries, window):
    values = np.random.default_rng(0).normal(size=(entries, 2))
    before = window - 1 - (window - 1) // 2
    expected = [values[max(0, n - before) : n + (window - 1) // 2 + 1].mean(axis=0) for n in range(entries)]
    assert mean_filter(values, window) == pytest.approx(np.array(expected))


def test_more_curves_than_colours_are_distinguishable(project):
    """Ten systems use each colour at most twice."""
    systems = ["A", "B", "C", "N4", "N8", *(f"attention/{name}" for name in ("base", "big", "A1", "A2", "A3"))]
    for system in systems:
        for run in project.runs_of("weighted", system, "wmt14-en-de"):
            write_training(project, run, [3.0, 2.0], [2.5, 1.5])
    figure = LossCurves(caption="Toy.", dataset="wmt14-en-de", kind="loss_curves", systems=systems)
    lines = figure.draw(PaperView(project, "weighted")).picture.axes[0].get_lines()
    styles = [(line.get_color(), line.get_marker()) for line in lines]
    assert (len(lines), len({*styles}), len({colour for colour, _ in styles})) == (10, 10, 8)


@pytest.mark.parametrize(("figure", "query", "heads"), [("figure4", 4, [3, 1]), ("figure5", None, [0, 2])])
def test_attention_is_drawn_with_every_weight_beside_it(project, tmp_path, figure, query, heads):
    put_map(project, figure, query, heads)
    rows = make_report("figure", "attention", figure, tmp_path / "it.svg")
    assert len(rows) == len(heads) * len(TOKENS) ** 2
    assert {row["head"] for row in rows} == {str(head + 1) for head in heads}
    caption = (tmp_path / "it.md").read_text(encoding="utf-8")
    assert "Encoder layer 2 of 3; sentence 8 of the test set" in caption
    assert ('The word is "it".' in caption) == (query is not None)
    assert "which stands in for wmt14-en-de" in caption


@pytest.mark.parametrize(
    ("figure", "query", "heads"), [("figure3", 0, range(8)), ("figure4", 0, [3, 1]), ("figure5", None, [0, 2])]
)
def test_long_subwords_lie_on_nothing_else(project, figure, query, heads):
    put_map(project, figure, query, [*heads], ["▁acknowledgements", "▁internationally", "communications", "</s>"])
    picture = project.figure("attention", figure).draw(PaperView(project, "attention")).picture
    picture.draw_without_rendering()
    texts = [text for axes in picture.axes for text in axes.texts]
    boxes = [one.get_window_extent() for one in (*texts, *(patch for axes in picture.axes for patch in axes.patches))]
    for place, box in enumerate(boxes[: len(texts)]):
        assert picture.bbox.x0 <= box.x0 and box.x1 <= picture.bbox.x1
        assert box.count_overlaps(boxes[:place] + boxes[place + 1 :]) == 0, texts[place]


def test_a_picture_is_the_same_bytes_for_the_same_runs(project, tmp_path):
    put_map(project, "figure5", None, [0, 1])
    made = []
    for _ in range(2):
        make_report("figure", "attention", "figure5", tmp_path / "it.svg")
        made.append([(tmp_path / name).read_bytes() for name in ("it.svg", "it.png")])
    assert made[0] == made[1]


def test_a_run_that_is_missing_is_named(tmp_path, capsys):
    assert main(report_command("figure", "weighted", "figure2", tmp_path / "it.svg")) == 1
    assert "done.json: no such file; figure figure2 of weighted needs it" in capsys.readouterr().err
    assert not (tmp_path / "it.svg").exists()


def test_training_without_the_curve_of_a_figure_is_named(project, tmp_path, capsys):
    """An older version did not measure the loss on training data."""
    for system in ("attention/C1", "C"):
        (run,) = project.runs_of("weighted", system, "wmt14-en-de")
        write_training(project, run, [2.0], [2.0])
        append(folder_of(project, run), [validation_line(step=200, dev=data_loss(1.5))])
    assert main(report_command("figure", "weighted", "figure2", tmp_path / "it.svg")) == 1
    assert "did not measure the loss on training data" in capsys.readouterr().err


def test_no_subword_is_shown_as_nothing():
    assert [shown_as(token) for token in ("▁dog", "s", "▁", "</s>")] == ["dog", "·s", "▁", "</s>"]


@pytest.mark.parametrize(("style", "count"), [(curve_style, 64), (line_style, 32)])
def test_styles_are_distinct_and_the_first_eight_by_colour(style, count):
    assert len({tuple(style(number).values()) for number in range(count)}) == count
    assert len({style(number)["color"] for number in range(8)}) == 8
