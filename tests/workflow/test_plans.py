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
    products = plans.graph.closure(plans.graph.without_faults(reports))
    return [product for product in products if isinstance(product, RunArtifact) and not isinstance(product, Trained)]


def test_every_output_and_score_is_in_one_plan(plans):
    planned = []
    for product in plans.wanted:
        is_outputs = isinstance(product, Outputs)
        listed = plans.decoding(product).outputs if is_outputs else plans.scoring(product).scores
        planned += [(product, each.file) for each in listed]
    expected = [(manifest_of(product), path_in_run(product)) for product in wanted(plans)]
    assert len(planned) == len(set(planned)) and set(planned) == set(expected)


def test_a_score_names_the_output_that_the_graph_says(plans):
    for manifest in plans.wanted:
        if isinstance(manifest, Scores):
            for product, planned in zip(plans.products_of(manifest), plans.scoring(manifest).scores, strict=True):
                assert planned.output in {
                    path_in_run(source)
                    for source in flatten(plans.graph.inputs(product))
                    if isinstance(source, RunArtifact)
                }
                form = plans.project.dataset_records[product.run.dataset].form
                kind = {"trees": "trees", "speech": "speech"}.get(form, "text")
                assert planned.kind == ("phenomena" if planned.file.startswith("phenomena/") else kind)


def test_a_manifest_is_made_of_what_its_products_need_elsewhere(plans):
    for manifest, products in plans.wanted.items():
        needed = {manifest_of(source) for product in products for source in flatten(plans.graph.inputs(product))} - {
            manifest
        }
        assert set(plans.inputs(manifest)) == {plans.layout.path(product) for product in needed}


def test_the_plans_of_a_training_job_are_those_of_the_rule(plans):
    for manifest in plans.wanted:
        if isinstance(manifest, Outputs):
            assert plans.decoding(manifest) in plans.training(manifest.run).plans


def test_perplexities_need_the_model_and_other_scores_do_not(plans):
    for product in wanted(plans):
        if isinstance(product, Score):
            assert isinstance(manifest_of(product), Outputs if product.measure == "perplexities" else Scores)


def test_a_table_on_request_holds_up_no_other_report(tmp_path):
    plans = Plans(Graph(real_project({"scale": "small", "licensed": {}, "work": str(tmp_path)})))
    closures = [
        {manifest_of(product): product for product in plans.graph.closure(reports) if isinstance(product, RunArtifact)}
        for reports in (plans.graph.reports(plans.project.papers), plans.graph.on_request)
    ]
    shared, alone = closures[1].keys() & closures[0].keys(), closures[1].keys() - closures[0].keys()
    official = "an4-official"
    outputs = [source for source in shared if isinstance(source, Outputs)]
    assert shared and not any(official in repr(product) for source in outputs for product in plans.products_of(source))
    assert any(isinstance(product, Outputs) for product in alone)
    assert {product for product in alone if isinstance(product, Outputs | Scores)} <= plans.wanted.keys()
    for dataset in (official, "an4-complete"):
        touch(plans.layout.path(Raw(dataset)))
    later = Plans(plans.graph)
    assert any(official in repr(product) for manifest in shared for product in later.products_of(manifest))


def test_a_table_on_request_holds_up_no_other_one(tmp_path):
    """Recipes for AN4 are compared on its training speakers before the official test set is read, or is here."""
    plans = Plans(Graph(real_project({"scale": "small", "licensed": {}, "work": str(tmp_path)})))
    products = plans.graph.closure([Table("anchors", "an4-folds")])
    manifests = {manifest_of(product) for product in products if isinstance(product, RunArtifact)} & plans.wanted.keys()
    read = {str(path) for manifest in manifests for path in plans.inputs(manifest)}
    assert manifests and not [path for path in read if "an4-official" in path]
    official = plans.graph.closure([Table("anchors", "an4-official")])
    touch(plans.layout.path(Raw("an4-official")))
    for dataset in {product.run.dataset for product in official if isinstance(product, Trained)}:
        touch(plans.layout.path(Raw(dataset)))
    assert {product for product in official if isinstance(product, Score)} <= {
        product for made in Plans(plans.graph).wanted.values() for product in made
    }
