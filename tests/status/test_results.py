"""`reprise results` writes every report from existing results, and explains each gap."""

import csv
import os
import random
import sys
from pathlib import Path

import pytest
from copied_project import ROOT, call, require
from fabricated import (
    AT_PLATEAU,
    bleu_statistics,
    folder_of,
    held,
    perplexity_statistics,
    touch,
    write_failure,
    write_score,
    write_training,
)
from made_records import decoded
from real_project import real_project
from warm import warm_programs

from pipeline.analysis.run_folders import NotRun, RunFolders, changed_decoding
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import (
    Claims,
    Figure,
    Outputs,
    Score,
    Scores,
    Table,
    Trained,
    Transcript,
    Translation,
    manifest_of,
)
from pipeline.core.files import note_path
from pipeline.core.layout import path_in_run
from pipeline.core.records.outputs import Manifest, Output, ScoreFile
from pipeline.outputs.manifest import part_of
from pipeline.papers.project import ProjectOptions
from pipeline.report import results
from pipeline.report.claims import write_claims
from pipeline.report.results import PartialReports, mark_incomplete
from pipeline.workflow.campaign import WRITTEN_IN_PART, Watch
from pipeline.workflow.causes import Causes
from pipeline.workflow.drivers import register_driver
from pipeline.workflow.graph import Graph, flatten
from reprise.__main__ import main
from reprise.interface import claim_rows

SCALE = "smoke"
TABLE = Table("weighted", "table2")
TABLE_FILE = "results/smoke/weighted/table2.csv"


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name in ("config.yaml", "workflow", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return real_project({"work": str(tmp_path / "work"), "scale": SCALE})


@pytest.fixture
def scores(project):
    """Return the scores of the table's rows, in their order."""
    return [artifact for artifact in flatten(Graph(project).inputs(TABLE)) if isinstance(artifact, Score)]


def make(project, *reports: str) -> None:
    assert main(["results", *reports, "--set", f"work={project.layout.work}", "--set", f"scale={SCALE}"]) == 0


def write_scores(project, scores: list[Score]) -> None:
    """Write both metrics of the table for some of its rows."""
    for artifact in scores:
        for metric in ("bleu_paper", "gleu"):
            write_score(project, artifact.run, metric, artifact.decoding, artifact.split, bleu_statistics(0.5))


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.with_suffix(".csv").read_text().splitlines()))


def test_only_outputs_made_in_part_are_scored_here(tmp_path, monkeypatch):
    """The first decoding is complete, the second one is made in part, and the third is too, but is scored."""
    project, asked = real_project({"scale": SCALE, "work": str(tmp_path)}), []
    graph = Graph(project)
    reports = list(graph.reports(["attention"]))
    found = [each for each in dict.fromkeys(map(manifest_of, graph.closure(reports))) if isinstance(each, Scores)]
    outputs = [project.layout.path(Outputs(each.run, each.decoding)) for each in found]
    for path in (outputs[0], part_of(outputs[1]), part_of(outputs[2]), project.layout.path(found[2])):
        touch(path)
    monkeypatch.setattr(results, "score_available", lambda run, plan: asked.append((run, plan.name)))
    results.score_decoded(graph, reports)
    assert asked == [(project.layout.run(found[1].run), found[1].decoding)]


def test_all_writers_of_claims_name_systems_alike(project, tmp_path, capsys):
    for system, share in (("attention/C3", random.uniform(0.2, 0.4)), ("N8", random.uniform(0.5, 0.7))):
        for run in project.runs_of("weighted", system, "wmt14-en-de"):
            write_training(project, run, AT_PLATEAU, AT_PLATEAU)
            for metric in ("bleu_paper", "gleu"):
                write_score(project, run, metric, "final", "dev", bleu_statistics(share))
    settings = (f"work={project.layout.work}", f"scale={SCALE}")
    make(project, "results/smoke/weighted/claims.csv")
    write_claims(paper="weighted", out=tmp_path / "claims.csv", project=ProjectOptions(tmp_path, settings))
    written = judged(rows(tmp_path / "claims.csv"))
    assert written["ours"].startswith("Transformer N = 8 ") and ", Weighted Transformer, N = 8, " in written["ours"]
    assert written["evidence"].startswith("Weighted Transformer, N = 8, P_drop = 0.3 as printed − Transformer N = 8 ")
    assert judged(rows(project.layout.path(Claims("weighted")))) == judged(claim_rows(project, "weighted")) == written
    capsys.readouterr()
    assert main(["show", "weighted", "claims", "--set", settings[0], "--set", settings[1]]) == 0
    shown = next(line for line in capsys.readouterr().out.splitlines() if "better-eight-layers" in line)
    assert "| Transformer N = 8 " in shown


def judged(found: list[dict[str, str]]) -> dict[str, str]:
    return {row["claim"]: row for row in found}["better-eight-layers"]


def test_table_row_status_is_failed_running_or_not_run(project, scores, capsys):
    broken, works, undecoded = (artifact.run for artifact in scores[:3])
    write_failure(folder_of(project, broken), "the loss is NaN after update 7\nmore of it")
    write_training(project, undecoded, [2.0], [2.0])
    log = folder_of(project, undecoded) / "logs" / f"decode-{scores[2].decoding}.log"
    touch(log, "error: no space left\n")
    with held(folder_of(project, works)):
        make(project, TABLE_FILE)
    found = [row["status"] for row in rows(project.layout.path(TABLE))]
    assert found[:3] == ["failed: the loss is NaN after update 7", "running", f"failed: {log.stem}: no space left"]
    assert set(found[3:]) == {"not run"}
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("table2.csv: without 10 of 10 rows (2 failed, 1 running, 7 not run)")
    assert f"failed: train {broken.folder}: the loss is NaN after update 7" in said
    assert said[-1].startswith("reports: 1 incomplete; trainings: ")


def test_score_of_other_decoding_settings_is_not_shown(project, scores):
    """The first row was decoded with another beam, the second in other batches, which change no output."""
    write_scores(project, scores[:2])
    for artifact, changed in zip(scores, ({"beam_size": 7}, {"batch_tokens": 5}), strict=False):
        run = artifact.run
        recorded = project.decoding(run.paper, run.system, artifact.decoding).model_dump(mode="json") | changed
        output = project.layout.path(Translation(run, artifact.decoding, artifact.split))
        decoded(decoding=recorded).write(output.with_suffix(".json"))
    make(project, TABLE_FILE)
    found = [(row["status"], bool(row["bleu_ours"])) for row in rows(project.layout.path(TABLE))]
    assert found[:2] == [("not decoded with this beam_size", False), ("run", True)]
    cell = project.table("weighted", "table2").cells["bleu"]
    with pytest.raises(NotRun, match=r"dev\.json was not decoded with this beam_size"):
        RunFolders(PaperView(project, "weighted")).score_paths(scores[0].run, cell, ["final"])


def test_score_of_an_output_decoded_again_is_not_shown(project, scores):
    """A job was interrupted between decoding and scoring: the note of the output has another digest than the score."""
    write_scores(project, scores[:2])
    for artifact, noted in zip(scores, ("1" * 64, "0" * 64), strict=False):
        output, path = Translation(artifact.run, artifact.decoding, artifact.split), project.layout.path(artifact)
        inputs = {f"elsewhere/{path_in_run(output)}": "0" * 64}
        ScoreFile.read(path).model_copy(update={"inputs": inputs}).write(path)
        touch(note_path(project.layout.path(output)), noted)
    make(project, TABLE_FILE)
    found = [(row["status"], bool(row["bleu_ours"])) for row in rows(project.layout.path(TABLE))]
    assert found[:2] == [("not scored", False), ("run", True)]
    cell = project.table("weighted", "table2").cells["bleu"]
    with pytest.raises(NotRun, match=r"dev\.json is of an earlier output"):
        RunFolders(PaperView(project, "weighted")).score_paths(scores[0].run, cell, ["final"])


def test_damaged_record_of_an_output_costs_one_report_only(project, scores, capsys):
    write_scores(project, scores)
    record = project.layout.path(Translation(scores[0].run, scores[0].decoding, scores[0].split)).with_suffix(".json")
    touch(record, "{")
    make(project, TABLE_FILE, "results/smoke/multichannel/table1.csv")
    said = capsys.readouterr().out
    assert f"{TABLE_FILE}: not made: {record}: not valid JSON" in said
    assert "reports: 1 not made, 1 incomplete" in said


@pytest.mark.parametrize(("weights", "changed"), [("those", ["average_last"]), ("others", [])])
def test_perplexity_of_other_averaged_weights_is_changed(weights, changed, project, scores):
    """A translation by the same weights records how they were averaged; a wider beam changes no perplexity."""
    run, names = scores[0].run, (scores[0].decoding, scores[0].split)
    write_score(project, run, "perplexity", *names, perplexity_statistics(1.0))
    artifact = Score(run, "perplexities", *names)
    path = project.layout.path(artifact)
    ScoreFile.read(path).model_copy(update={"weights": "those"}).write(path)
    recorded = project.decoding(run.paper, run.system, names[0]).model_dump(mode="json")
    recorded |= {"average_last": 7, "beam_size": 7}
    output = project.layout.path(Translation(run, *names))
    decoded(decoding=recorded, weights=weights).write(output.with_suffix(".json"))
    assert changed_decoding(project, artifact) == changed


@pytest.mark.parametrize(
    ("field", "other", "changed"),
    [
        *(("corpus", None, []), ("corpus", "an-earlier-corpus", ["dataset"])),
        *(("language_model", None, []), ("language_model", "seed1-00000000", ["language_model"])),
    ],
)
def test_transcript_of_other_data_or_with_another_lm_is_changed(field, other, changed, project):
    """Its settings name dataset and language model, but not their content; the work folder may have moved."""
    graph = Graph(project)
    found = (artifact for artifact in graph.closure(graph.reports(["coldfusion"])) if isinstance(artifact, Transcript))
    artifact = next(one for one in found if project.decoding_language_model(one.run, one.decoding))
    run, decoding = artifact.run, artifact.decoding
    corpus, model = project.layout.corpus(artifact.scored_on), project.decoding_language_model(run, decoding)
    folder = Path("moved") / (other or (corpus if field == "corpus" else project.layout.run(model)).name)
    settings = project.decoding(run.paper, run.system, decoding).model_dump(mode="json")
    record = decoded(decoding=settings, **{field: str(folder / "encoded" if field == "corpus" else folder)})
    record.write(project.layout.path(artifact).with_suffix(".json"))
    assert changed_decoding(project, Score(run, "scores", decoding, artifact.split, artifact.scored_on)) == changed


def test_an_output_that_failed_says_the_cause_in_its_manifest(project, scores):
    score = next(artifact for artifact in scores if artifact.measure == "scores")
    graph = Graph(project)
    (output,) = (artifact for artifact in flatten(graph.inputs(score)) if isinstance(artifact, Translation))
    write_training(project, score.run, [2.0], [2.0])
    manifest = Manifest(entries={path_in_run(output): Output(key="toy", error="out of memory")})
    manifest.write(part_of(project.layout.target(output)))
    found = Causes(graph, Watch(project, [TABLE]).snapshot())
    assert found.reason_for(output) == found.reason_for(score) == f"failed: decode-{score.decoding}: out of memory"


def test_missing_runs_are_waiting_while_a_driver_is_registered(project, scores, monkeypatch):
    monkeypatch.setattr("pipeline.workflow.campaign.describe_driver", lambda driver, jobs: "snakemake")
    register_driver([str(project.layout.path(TABLE))])
    make(project, TABLE_FILE)
    assert {row["status"] for row in rows(project.layout.path(TABLE))} == {"waiting"}


def test_report_names_the_failed_training_it_needs(project):
    graph = Graph(project)
    artifacts = graph.closure(graph.reports(["coldfusion"]))
    fused = next(
        artifact
        for artifact in artifacts
        if isinstance(artifact, Score) and project.weight_sources(artifact.run).values()
    )
    taken = next(iter(project.weight_sources(fused.run).values()))
    write_failure(folder_of(project, taken), "a fault")
    found = Causes(graph, Watch(project, graph.reports(["coldfusion"])).snapshot())
    assert found.reason_for(Trained(taken)) == "failed: a fault"
    assert found.reason_for(fused) == f"not run: needs {taken.folder}, which failed"


def test_every_report_is_written_or_explained_without_any_run(project, capsys):
    make(project)
    said = capsys.readouterr().out
    for report in Graph(project).reports(project.reproduced):
        path = project.layout.path(report)
        assert path.exists() or f"{path}: not made: not run" in said
    verdicts = {row["verdict"] for row in rows(project.layout.path(Claims("weighted")))}
    assert verdicts <= {"not run", "tested"}


def test_a_figure_is_drawn_without_the_systems_that_are_missing(project):
    figures = project.papers["coldfusion"].figures.items()
    figure = next(Figure("coldfusion", name) for name, figure in figures if figure.kind == "dev_curves")
    runs = list(dict.fromkeys(artifact.run for artifact in Graph(project).inputs(figure)["measured"]))
    for run in runs[:-1]:
        write_training(project, run, [3.0, 2.0], [3.0, 2.0])
    write_failure(folder_of(project, runs[-1]), "the loss is NaN")
    make(project, f"results/smoke/coldfusion/{figure.figure}.svg")
    path = project.layout.path(figure)
    assert {row["system"] for row in rows(path)} == {run.system for run in runs[:-1]}
    assert f"Left out: {runs[-1].system} (failed: the loss is NaN)." in path.with_suffix(".md").read_text()
    assert path.stat().st_mtime == WRITTEN_IN_PART


def test_complete_report_is_kept_until_its_content_changes(project, scores, capsys):
    """A report that shows other runs is replaced, even if it is newer than its inputs."""
    write_scores(project, scores)
    path = project.layout.path(TABLE)
    make(project, TABLE_FILE)
    files = [path, path.with_suffix(".md")]
    for file in files:
        os.utime(file)
    written = [(file.read_text(), file.stat().st_mtime_ns) for file in files]
    make(project, TABLE_FILE)
    assert [(file.read_text(), file.stat().st_mtime_ns) for file in files] == written
    assert capsys.readouterr().out.count("reports: 1 complete") == 2
    path.write_text("the table of other seeds")
    make(project, TABLE_FILE)
    assert path.read_text() == written[0][0] and path.stat().st_mtime == WRITTEN_IN_PART
    assert "reports: 1 complete" in capsys.readouterr().out
    assert Watch(project, [TABLE]).snapshot().made["reports"][0] == 0


def test_watching_compares_a_complete_report_once_per_input(project, scores, monkeypatch):
    """The last of three rounds finds a score that is newer."""
    write_scores(project, scores)
    graph, known, written, write = Graph(project), {}, [], PartialReports.write
    monkeypatch.setattr(PartialReports, "write", lambda self, *what: written.append(what) or write(self, *what))
    for compared in (1, 1, 2):
        if compared == 2:
            os.utime(project.layout.path(scores[0]), (WRITTEN_IN_PART, WRITTEN_IN_PART))
        causes = Causes(graph, Watch(project, [TABLE]).snapshot())
        assert not PartialReports(graph, causes, known).make(TABLE).lacks and len(written) == compared


@pytest.mark.slow
def test_snakemake_rebuilds_partial_reports_with_equal_inputs(tmp_path, monkeypatch):
    """Snakemake's records call the files up to date: the checksums of their inputs did not change."""
    monkeypatch.chdir(tmp_path)
    names = ["table2.csv", f"{'long ' * 40}.csv"]
    rules = f"rule all:\n    input: {names}\n"
    for name in names:
        rules += f"rule:\n    input: 'score.json'\n    output: {name!r}\n    shell: 'cp {{input}} {{output:q}}'\n"
    (tmp_path / "Snakefile").write_text(rules)
    (tmp_path / "score.json").write_text("{}")
    snakemake = str(warm_programs() / "snakemake")
    monkeypatch.setattr(sys, "executable", str(warm_programs() / "python"))
    require(call(tmp_path, snakemake, "--cores", "1", "--quiet", "all"))
    for name in names:
        os.utime(name, (WRITTEN_IN_PART, WRITTEN_IN_PART))
    assert "Nothing to be done" in require(call(tmp_path, snakemake, "-n"))
    mark_incomplete(map(Path, names))
    assert require(call(tmp_path, snakemake, "-n")).count("Updated input files") == len(names)
