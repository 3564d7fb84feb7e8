"""The plans of `decode` and `score` list the outputs that reports need, and nothing else changes a training."""

import pytest
from fabricated import touch
from real_project import real_project

from pipeline.core.artifacts import Outputs, Raw, RunArtifact, Score, Scores, Table, Trained, manifest_of
from pipeline.core.layout import path_in_run
from pipeline.workflow.graph import Graph, flatten
from pipeline.workflow.plans import Plans

SCALES = ("smoke", "paper")


@pytest.fixture(scope="module", params=SCALES)
def plans(request) -> Plans:
    return Plans(Graph(real_project({"scale": request.param, "licensed": {}})))


def wanted(plans: Plans) -> list[RunArtifact]:
    reports = [*plans.graph.reports(plans.project.papers), *plans.graph.on_request]
    artifacts = plans.graph.closure(plans.graph.without_faults(reports))
    return [
        artifact for artifact in artifacts if isinstance(artifact, RunArtifact) and not isinstance(artifact, Trained)
    ]


def test_every_output_and_score_is_in_one_plan(plans):
    planned = []
    for artifact in plans.wanted:
        is_outputs = isinstance(artifact, Outputs)
        listed = plans.decoding(artifact).outputs if is_outputs else plans.scoring(artifact).scores
        planned += [(artifact, each.file) for each in listed]
    expected = [(manifest_of(artifact), path_in_run(artifact)) for artifact in wanted(plans)]
    assert len(planned) == len(set(planned)) and set(planned) == set(expected)


def test_a_score_names_the_output_that_the_graph_says(plans):
    for manifest in plans.wanted:
        if isinstance(manifest, Scores):
            for artifact, planned in zip(plans.artifacts_of(manifest), plans.scoring(manifest).scores, strict=True):
                assert planned.output in {
                    path_in_run(source)
                    for source in flatten(plans.graph.inputs(artifact))
                    if isinstance(source, RunArtifact)
                }
                form = plans.project.dataset_records[artifact.run.dataset].form
                kind = {"trees": "trees", "speech": "speech"}.get(form, "text")
                assert planned.kind == ("phenomena" if planned.file.startswith("phenomena/") else kind)


def test_a_manifest_is_made_of_what_its_artifacts_need_elsewhere(plans):
    for manifest, artifacts in plans.wanted.items():
        needed = {manifest_of(source) for artifact in artifacts for source in flatten(plans.graph.inputs(artifact))} - {
            manifest
        }
        assert set(plans.inputs(manifest)) == {plans.layout.path(artifact) for artifact in needed}


def test_the_plans_of_a_training_job_are_those_of_the_rule(plans):
    for manifest in plans.wanted:
        if isinstance(manifest, Outputs):
            assert plans.decoding(manifest) in plans.training(manifest.run).plans


def test_perplexities_need_the_model_and_other_scores_do_not(plans):
    for artifact in wanted(plans):
        if isinstance(artifact, Score):
            assert isinstance(manifest_of(artifact), Outputs if artifact.measure == "perplexities" else Scores)


def test_a_table_on_request_holds_up_no_other_report(tmp_path):
    plans = Plans(Graph(real_project({"scale": "small", "licensed": {}, "work": str(tmp_path)})))
    closures = [
        {
            manifest_of(artifact): artifact
            for artifact in plans.graph.closure(reports)
            if isinstance(artifact, RunArtifact)
        }
        for reports in (plans.graph.reports(plans.project.papers), plans.graph.on_request)
    ]
    shared, alone = closures[1].keys() & closures[0].keys(), closures[1].keys() - closures[0].keys()
    official = "an4-official"
    outputs = [source for source in shared if isinstance(source, Outputs)]
    assert shared and not any(
        official in repr(artifact) for source in outputs for artifact in plans.artifacts_of(source)
    )
    assert any(isinstance(artifact, Outputs) for artifact in alone)
    assert {artifact for artifact in alone if isinstance(artifact, Outputs | Scores)} <= plans.wanted.keys()
    for dataset in (official, "an4-complete"):
        touch(plans.layout.path(Raw(dataset)))
    later = Plans(plans.graph)
    assert any(official in repr(artifact) for manifest in shared for artifact in later.artifacts_of(manifest))


def test_a_table_on_request_holds_up_no_other_one(tmp_path):
    """Recipes for AN4 are compared on its training speakers before the official test set is read, or is here."""
    plans = Plans(Graph(real_project({"scale": "small", "licensed": {}, "work": str(tmp_path)})))
    artifacts = plans.graph.closure([Table("anchors", "an4-folds")])
    manifests = {
        manifest_of(artifact) for artifact in artifacts if isinstance(artifact, RunArtifact)
    } & plans.wanted.keys()
    read = {str(path) for manifest in manifests for path in plans.inputs(manifest)}
    assert manifests and not [path for path in read if "an4-official" in path]
    official = plans.graph.closure([Table("anchors", "an4-official")])
    touch(plans.layout.path(Raw("an4-official")))
    for dataset in {artifact.run.dataset for artifact in official if isinstance(artifact, Trained)}:
        touch(plans.layout.path(Raw(dataset)))
    assert {artifact for artifact in official if isinstance(artifact, Score)} <= {
        artifact for made in Plans(plans.graph).wanted.values() for artifact in made
    }
