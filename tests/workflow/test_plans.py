"""The plans of `decode` and `score` list what reports want of a run, and nothing else changes a training."""

import pytest
from copied_project import ROOT

from pipeline.core.artifacts import Outputs, Raw, RunArtifact, Score, Scores, Trained, manifest_of
from pipeline.core.layout import path_in_run
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph, flatten
from pipeline.workflow.plans import Plans

SCALES = ("smoke", "paper")


@pytest.fixture(scope="module", params=SCALES)
def plans(request) -> Plans:
    return Plans(Graph(load_project(ROOT, {"scale": request.param, "licensed": {}})))


def wanted(plans: Plans) -> list[RunArtifact]:
    reports = [*plans.graph.reports(plans.project.papers), *plans.on_request]
    products = plans.graph.closure(plans.graph.without_faults(reports))
    return [one for one in products if isinstance(one, RunArtifact) and not isinstance(one, Trained)]


def test_every_output_and_score_is_in_one_plan(plans):
    planned = [
        (one, output.file) for one in plans.wanted if isinstance(one, Outputs) for output in plans.decoding(one).outputs
    ]
    planned += [
        (one, score.file) for one in plans.wanted if isinstance(one, Scores) for score in plans.scoring(one).scores
    ]
    expected = [(manifest_of(one), path_in_run(one)) for one in wanted(plans)]
    assert len(planned) == len(set(planned)) and set(planned) == set(expected)


def test_a_score_names_the_output_that_the_graph_says(plans):
    for manifest in plans.wanted:
        if isinstance(manifest, Scores):
            for product, planned in zip(plans.of(manifest), plans.scoring(manifest).scores, strict=True):
                assert planned.output in {
                    path_in_run(one) for one in flatten(plans.graph.inputs(product)) if isinstance(one, RunArtifact)
                }


def test_a_manifest_is_made_of_what_its_products_need_elsewhere(plans):
    for manifest, products in plans.wanted.items():
        needed = {manifest_of(one) for product in products for one in flatten(plans.graph.inputs(product))} - {manifest}
        assert set(plans.inputs(manifest)) == {plans.layout.path(one) for one in needed}


def test_the_plans_of_a_training_job_are_those_of_the_rule(plans):
    trainings = plans.trainings()
    for manifest in plans.wanted:
        if isinstance(manifest, Outputs):
            folder = str(plans.layout.run(manifest.run).relative_to(plans.layout.runs))
            assert plans.decoding(manifest) in trainings[folder].plans


def test_perplexities_need_the_model_and_other_scores_do_not(plans):
    for one in wanted(plans):
        if isinstance(one, Score):
            assert isinstance(manifest_of(one), Outputs if one.measure == "perplexities" else Scores)


def test_a_table_on_request_holds_up_no_other_report(tmp_path):
    plans = Plans(Graph(load_project(ROOT, {"scale": "small", "licensed": {}, "work": str(tmp_path)})))
    closures = [
        {manifest_of(one): one for one in plans.graph.closure(reports) if isinstance(one, RunArtifact)}
        for reports in (plans.graph.reports(plans.project.papers), plans.on_request)
    ]
    shared, alone = closures[1].keys() & closures[0].keys(), closures[1].keys() - closures[0].keys()
    official = "an4-official"
    asked = {
        one for one in shared if isinstance(one, Outputs) for product in plans.of(one) if official in repr(product)
    }
    assert shared and not asked
    assert any(isinstance(one, Outputs) for one in alone)
    assert {one for one in alone if isinstance(one, Outputs | Scores)} <= plans.wanted.keys()
    plans.layout.path(Raw(official)).parent.mkdir(parents=True)
    plans.layout.path(Raw(official)).touch()
    plans.layout.path(Raw("an4-complete")).parent.mkdir(parents=True)
    plans.layout.path(Raw("an4-complete")).touch()
    later = Plans(plans.graph)
    assert any(official in repr(product) for one in shared for product in later.of(one))
