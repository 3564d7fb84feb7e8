"""Tables in a terminal: width, verdicts and meaning."""

import fcntl
import re
from contextlib import ExitStack

import pytest
from fabricated import bleu_statistics, write_score, write_training
from real_project import ROOT, real_project

from pipeline.analysis.cells.scores import ScoreCell
from pipeline.report.filled_table import fill
from pipeline.report.table import deviation_lines
from reprise.__main__ import main
from reprise.cli.show import WIDTH, narrow, show_table


def tables():
    project = real_project()
    for paper in project.papers:
        for table in project.tables_here(paper):
            if any(isinstance(cell, ScoreCell) for cell in project.table(paper, table).cells.values()):
                yield paper, table


def put_bleu(project, **shares):
    """Train systems, and score each of their runs by a share of matching n-grams."""
    for system, values in shares.items():
        runs = project.runs_of("weighted", system.replace("attention_", "attention/"), "wmt14-en-de")
        for run, share in zip(runs, values, strict=True):
            write_training(project, run, [2.0], [2.0])
            for metric in ("bleu_paper", "gleu"):
                write_score(project, run, metric, "final", "dev", bleu_statistics(share))


def show(work, *words, paper="weighted", table="table2"):
    return main(["show", "--set", f"work={work}", paper, table, *words])


@pytest.mark.parametrize(("paper", "table"), list(tables()))
def test_a_table_is_as_wide_as_a_terminal_at_most(paper, table, tmp_path):
    lines = narrow(fill(real_project({"work": str(tmp_path)}), paper, table)).split("\n")
    assert len(lines) > 2 and max(map(len, lines)) <= WIDTH


def test_measured_score_is_shown_with_interval_and_model_size(project, tmp_path, capsys):
    put_bleu(project, C=[0.5])
    assert show(tmp_path) == 0
    shown = capsys.readouterr().out
    ours = fill(project, "weighted", "table2").cells["bleu"][1]["ours"]
    row = next(line for line in shown.split("\n") if "| Weighted Transformer C " in line)
    assert "(further scores: gleu; --wide shows all)" in shown
    assert ours in row and "24.8" in row and "not comparable" in row
    assert "9 not run, 1 not comparable" in shown and "have 1 parameters" in " ".join(shown.split())
    *text, command = shown.rstrip("\n").split("\n")
    assert max(map(len, text)) <= WIDTH and command.startswith("`snakemake ")  # a command is on one line, however long
    assert show(tmp_path, "--wide") == 0
    assert "Deviations:" in capsys.readouterr().out


def test_a_table_without_deviations_has_no_heading_for_them(tmp_path):
    project = real_project({"work": str(tmp_path)})
    filled = fill(project, "weighted", "table2")
    assert deviation_lines(project.papers["weighted"].deviations, filled)
    assert deviation_lines([], filled) == []


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([], "Weighted Transformer Network for Machine Translation: table2, scale demo"),
        (["attention"], "Attention Is All You Need: table2, scale demo"),
        (["attention", "claims"], "Attention Is All You Need: claims, scale demo"),
        (["table3"], "Weighted Transformer Network for Machine Translation: table3, scale demo"),
        (["results/table3.csv"], "Weighted Transformer Network for Machine Translation: table3, scale demo"),
        (["results/demo/attention/claims.md"], "Attention Is All You Need: claims, scale demo"),
    ],
)
def test_paper_table_or_file_names_what_is_shown(words, shown, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    settings = [f"work={tmp_path}", "paper=weighted", "scale=demo"]
    assert main(["show", *(word for setting in settings for word in ("--set", setting)), *words]) == 0
    assert capsys.readouterr().out.splitlines()[0] == shown


@pytest.mark.parametrize("paper", ["anchors", "coldfusion", "weighted"])
def test_claims_are_shown_with_their_verdicts(paper, tmp_path, capsys):
    assert show(tmp_path, paper=paper, table="claims") == 0
    shown, claims = capsys.readouterr().out, real_project().claims[paper]
    assert max(map(len, shown.split("\n"))) <= WIDTH
    assert "not run" in shown if list(claims.claims) else "The paper has no claims." in shown
    if paper == "weighted":
        assert show(tmp_path, "--wide", table="claims") == 0
        assert "claims at scale demo" in capsys.readouterr().out


def test_header_names_unprinted_scores_and_scores_of_verdicts(project):
    def header(table):
        return narrow(fill(project, "weighted", table)).split("\n")[0]

    put_bleu(project, C=[0.5])
    assert "bleu ours" in header("ablations")
    assert "bleu verdict" in header("table3") and "gleu verdict" in header("table3")


def test_label_is_shown_in_full_if_the_line_has_room(project):
    """Two rows may differ only in the end of their labels."""
    put_bleu(project, C=[0.5])
    lines = narrow(fill(project, "weighted", "table2")).split("\n")
    assert "| Weighted Transformer N = 8 p_drop = 0.3 |" in lines[9]
    assert max(map(len, lines)) <= WIDTH


def test_show_without_trainings_calls_nothing_measured(tmp_path, capsys):
    assert show(tmp_path) == 0
    shown = capsys.readouterr().out
    assert "gleu verdict" in shown and "gleu ours" not in shown  # empty columns take no room
    assert "At scale demo none of their models is trained yet." in " ".join(shown.split())
    command = (
        rf"`snakemake --config work={tmp_path} -- .*results/demo/weighted/table2\.csv` makes the missing numbers\."
    )
    assert re.fullmatch(command, shown.rstrip("\n").split("\n")[-1])


def test_last_line_makes_numbers_that_only_later_columns_lack(project, tmp_path, capsys):
    for system in ("base", "big"):
        (run,) = project.runs_of("attention", system, "wmt14-en-de")
        write_score(project, run, "bleu_paper", "averaged", "test", bleu_statistics(0.5))
    assert show(tmp_path, paper="attention") == 0
    *_, last = capsys.readouterr().out.rstrip("\n").split("\n")
    assert last.endswith("results/demo/attention/table2.csv` makes the missing numbers.")


def test_a_trained_row_without_a_score_is_not_called_not_run(project, tmp_path, capsys):
    put_bleu(project, C=[0.5])
    (scored,) = tmp_path.rglob("scores/final/dev.json")
    scored.unlink()
    assert fill(project, "weighted", "table2").runs["status"][1] == "not scored"
    assert show(tmp_path) == 0
    assert "9 not run, 1 not scored" in capsys.readouterr().out


def test_trainings_under_way_or_failed_are_counted(project, tmp_path, capsys):
    """One that is trained does not count, even if a process still decodes it."""
    put_bleu(project, C=[0.5])
    folders = [project.layout.run(project.runs_of("weighted", name, "wmt14-en-de")[0]) for name in ("C", "A")]
    with ExitStack() as held:
        for folder in folders:
            (folder / "logs").mkdir(parents=True, exist_ok=True)
            (folder / "logs/train.log").write_text("error: out of luck\n")  # A's before it was started again
            fcntl.flock(held.enter_context(open(folder / "run.lock", "w")), fcntl.LOCK_EX)
        assert show(tmp_path) == 0
    assert "\nTrainings: 1 under way; `reprise status` shows more.\n" in capsys.readouterr().out
    assert show(tmp_path) == 0
    assert "\nTrainings: 1 failed; `reprise status` shows more.\n" in capsys.readouterr().out
    (folders[1] / "logs/train.log").unlink()
    assert show(tmp_path) == 0
    assert "Trainings:" not in capsys.readouterr().out


def test_failed_training_of_a_language_model_is_counted(project, tmp_path, capsys):
    (run,) = project.runs_of("coldfusion", "CF4", "source")
    log = project.layout.run(project.weight_sources(run)["language_model"]) / "logs/train.log"
    log.parent.mkdir(parents=True)
    log.write_text("error: out of luck\n")
    assert show(tmp_path, paper="coldfusion", table="table5") == 0
    assert "\nTrainings: 1 failed; `reprise status` shows more.\n" in capsys.readouterr().out


def test_table_without_scores_shows_its_columns_and_states(project, capsys):
    paper, run = project.papers["weighted"], project.runs_of("weighted", "C", "wmt14-en-de")[0]
    entry, name = paper.tables["table2"], "parameters_here"
    entry = entry.model_copy(update={"cells": {name: entry.cells[name]}})
    project.papers["weighted"] = paper.model_copy(update={"tables": {"table2": entry}})
    write_training(project, run, [2.0], [2.0])
    show_table(project, "weighted", "table2", wide=False)
    lines = capsys.readouterr().out.split("\n")
    header, _, *rows = ([cell.strip() for cell in line.split("|")] for line in lines if line.startswith("|"))
    found = [(row[header.index(f"{name} ours")], row[header.index("status")]) for row in rows]
    assert found == [("", "not run"), ("1", "run"), *8 * [("", "not run")]]


def test_a_table_of_another_scale_is_answered_with_that_scale(tmp_path, capsys):
    assert show(tmp_path, "--set", "scale=demo", paper="anchors", table="an4") == 1
    said = "error: an4: is made at scale small only; add --config scale=small (snakemake) or --set scale=small"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("share", "alike"), [(0.3, 1), (0.7, 0)])
def test_pairs_of_rows_in_the_printed_order_are_counted(share, alike, tmp_path, capsys):
    """The two rows are printed as 23.7 and 24.8."""
    put_bleu(real_project({"work": str(tmp_path)}), attention_C1=[share], C=[0.5])
    assert show(tmp_path) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"{alike} of 1 pairs of rows are in the printed order" in said


def test_shown_score_has_its_spread_over_seeds(tmp_path, capsys):
    project = real_project({"work": str(tmp_path), "seeds": 3})
    put_bleu(project, C=[0.3, 0.5, 0.6])
    values = fill(project, "weighted", "table2").cells["bleu"][1]
    assert float(values["spread"]) > 0
    assert show(tmp_path, "--set", "seeds=3") == 0
    assert f"| {values['ours']} ± {values['spread']} " in capsys.readouterr().out
