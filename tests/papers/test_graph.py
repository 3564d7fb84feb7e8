"""The graph equals Snakemake's own, for every paper at every scale."""

from pathlib import Path

import pytest
from copied_project import ROOT, call, require
from real_project import real_project

from pipeline.core.artifacts import (
    Averaged,
    Claims,
    Encoded,
    ExampleTable,
    LayerTable,
    Prepared,
    Raw,
    RunId,
    Score,
    Spoken,
    Table,
    Trained,
    Transcript,
    TranscriptTable,
    Translation,
    Tuned,
    Vocabulary,
)
from pipeline.papers.reports import example_artifacts
from pipeline.workflow.graph import Graph

SCALES = sorted(path.stem for path in (ROOT / "workflow/scales").glob("*.yaml"))
PAPERS = sorted(path.name for path in (ROOT / "workflow/papers").iterdir() if path.is_dir())


def outputs(work, scale, papers):
    """Files that Snakemake's own graph makes, as its summary lists them."""
    settings = [f"work={work}", f"scale={scale}", "licensed={}", "seeds=2"]
    printed = require(call(ROOT, "snakemake", "--summary", "--nolock", "--config", *settings, "--", *papers))
    return {line.split("\t")[0] for line in printed.splitlines() if line.count("\t") == 5}


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
def test_the_graph_has_the_files_of_snakemakes_own(scale, tmp_path):
    project = real_project({"scale": scale, "work": str(tmp_path), "licensed": {}, "seeds": 2})
    graph = Graph(project)
    papers = [paper for paper in PAPERS if paper != "anchors" or scale == "small"]
    made = {str(project.layout.target(artifact)) for artifact in graph.closure(graph.reports(papers))}
    files = outputs(tmp_path, scale, papers) - {"output_file"}
    assert made <= files, "an artifact that no job makes"
    beside = {file for file in files - made if not beside_one_of(file, made)}
    assert not beside, "a file of a job that the graph knows nothing of"


def beside_one_of(file, made):
    """Twins of artifacts, which the same job writes: Markdown, pictures, text, the record of a vocabulary, trees."""
    path = Path(file)
    if path.parts[-3] == "parses":
        split = path.name.removesuffix(".trees").removesuffix(".aligned")
        return str(path.parents[2] / "scores" / path.parent.name / f"{split}.json") in made
    if path.name == "report.json":  # of speech and characters, which are prepared and encoded in one job
        return str(path.parents[1] / "encoded/corpus.json") in made
    return any(str(path.with_suffix(suffix)) in made for suffix in (".csv", ".svg", ".tok", ".model"))


def test_artifacts_stand_behind_what_they_are_made_from():
    project = real_project({"scale": "smoke", "seeds": 1})
    graph = Graph(project)
    order = {artifact: number for number, artifact in enumerate(graph.closure(graph.reports(["coldfusion"])))}
    for artifact in order:
        for value in graph.inputs(artifact).values():
            for needed in value if isinstance(value, list) else [value]:
                assert order[needed] < order[artifact]


SEED = 7
SOURCE, TARGET, TEXT = (f"grammar-smoke-{name}" for name in ("speech-source", "speech-target", "text-full"))


def coldfusion(system, dataset=SOURCE):
    return RunId("coldfusion", system, dataset, SEED)


@pytest.fixture(scope="module")
def graph():
    return Graph(real_project({"scale": "smoke", "seeds": [3, SEED]}))


def test_fused_run_waits_for_the_runs_it_loads(graph):
    cold, deep = (graph.inputs(Trained(coldfusion(system))) for system in ("CF4", "DF3"))
    lm, start = Trained(coldfusion("lm-full", TEXT)), Trained(coldfusion("attention-source"))
    assert cold == {"corpus": Encoded(SOURCE), "others": [lm]}
    assert deep == {"corpus": Encoded(SOURCE), "others": [lm, start]}
    assert graph.inputs(lm) == {"corpus": Encoded(TEXT), "others": []}


def test_tuning_on_own_corpus_precedes_other_transcripts(graph):
    """Tuning never waits for the corpus that is scored, and so never sees it."""
    run = coldfusion("attention-source")
    trained, beside = Trained(run), Trained(coldfusion("lm-full", TEXT))
    tuned = Tuned(run, "shallow")
    used = {"weights": trained, "language_model": beside}
    assert graph.inputs(tuned) == {**used, "corpus": Encoded(SOURCE), "tuned_with": []}
    transcript = Transcript(run, "shallow", "test", TARGET)
    assert graph.inputs(transcript) == {**used, "tuned": tuned, "scored_on": Encoded(TARGET)}
    score = Score(run, "scores", "shallow", "test", TARGET)
    assert graph.inputs(score) == {"transcript": transcript, "scored_on": Encoded(TARGET)}
    assert Encoded(TARGET) not in graph.closure([tuned])


def test_averaging_decoding_reads_averaged_weights(graph):
    run = RunId("attention", "base", "grammar-smoke-en-de", SEED)
    averaging = {name: graph.weights(run, name) for name in ("final", "averaged")}
    assert averaging["final"] == Trained(run)
    last = graph.project.decoding("attention", "base", "averaged").average_last
    assert averaging["averaged"] == (Averaged(run, "averaged") if last > 1 else Trained(run))
    claims = {report.paper for report in graph.reports(graph.project.papers) if isinstance(report, Claims)}
    assert claims == set(graph.project.reproduced)


def test_features_come_from_synthesised_or_recorded_speech(graph):
    pairs, speech = "grammar-smoke-en-de", graph.inputs(Encoded(SOURCE))
    assert speech == {"spoken": Spoken(SOURCE)}
    assert graph.inputs(Spoken(SOURCE)) == {"raw": Raw(SOURCE)} and graph.inputs(Raw(SOURCE)) == {}
    for recorded in ("an4", TEXT):
        assert graph.inputs(Encoded(recorded)) == {"raw": Raw(recorded)}
    assert graph.inputs(Encoded(pairs)) == {"prepared": Prepared(pairs), "vocabulary": Vocabulary(pairs)}
    assert graph.inputs(Vocabulary(pairs)) == {"prepared": Prepared(pairs)}
    assert graph.inputs(Prepared(pairs)) == {"raw": Raw(pairs)}


def test_report_must_be_described_by_name_and_kind(graph):
    kinds = {"tables": Table, "examples": ExampleTable, "transcripts": TranscriptTable, "layer_costs": LayerTable}
    described = [
        (kind(paper, name), section)
        for paper, record in graph.project.papers.items()
        for section, kind in kinds.items()
        for name in getattr(record, section)
    ]
    assert {section for _, section in described} == set(kinds)
    for report, _ in described:
        assert graph.has(report)
        others = {kind(report.paper, report.table) for kind in kinds.values()} - {kind for kind, _ in described}
        assert not any(graph.has(other) for other in others)
        assert not graph.has(type(report)(report.paper, "table99"))
    assert graph.has(Claims("weighted")) and graph.has(Encoded(SOURCE))


def test_examples_need_the_outputs_of_each_of_their_runs(graph):
    project = graph.project
    (paper, table), *_ = ((paper, name) for paper, record in project.papers.items() for name in record.examples)
    entry = project.examples(paper, table)
    systems = {row["system"] for row in project.printed[paper][table] if row["source"] == "ours-to-run"}
    runs = [project.runs_of(paper, system, entry.dataset)[0] for system in systems]
    expected = {Encoded(project.stand_in(entry.dataset))}
    expected |= {Translation(run, entry.decoding, split) for run in runs for split in entry.splits}
    expected |= {Score(run, "scores", entry.decoding, split) for run in runs for split in entry.splits}
    assert runs and set(example_artifacts(project, paper, table)) == expected


def test_recipes_table_needs_no_additional_runs(tmp_path):
    project = real_project({"work": str(tmp_path), "scale": "paper"})
    graph, recipes = Graph(project), Table("attention", "recipes")
    others = graph.closure(report for report in graph.reports(project.reproduced) if report != recipes)
    needed = set(graph.closure([recipes])) - {recipes}
    assert needed <= set(others)
    scores = [artifact for artifact in needed if isinstance(artifact, Score)]
    systems = (("base", "wmt14-en-de"), ("base", "wmt14-en-fr"), ("big", "wmt14-en-de"), ("big-enfr", "wmt14-en-fr"))
    expected = {(*system, decoding) for system in systems for decoding in ("averaged", "final")}
    assert {(score.run.system, score.run.dataset, score.decoding) for score in scores} == expected
