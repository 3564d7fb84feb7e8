"""Table 4 resolves at every scale: settings, more data for the second row, stand-ins for licensed data."""

from pathlib import Path

import pytest
from cell_runs import cell_runs
from real_project import real_project

from pipeline.core.artifacts import RunId
from pipeline.core.errors import UserError
from pipeline.data.dataset import TreebankRecord
from pipeline.papers.project import load_project
from pipeline.papers.scale import Scale
from pipeline.report.filled_table import fill

ROOT = Path(__file__).resolve().parents[2]
SCALES = sorted(path.stem for path in (ROOT / "workflow/scales").glob("*.yaml"))
LICENSED = {"LDC99T42": "/ptb", "silver-trees": "/silver"}


def datasets_of_table_4(scale: str, licensed: dict[str, str]) -> list[str]:
    project = real_project({"scale": scale, "licensed": licensed})
    return list(dict.fromkeys(cell.run.dataset for cell in cell_runs(project, "attention", "table4")))


def test_parser_settings_at_paper_scale_follow_released_code():
    project = real_project({"scale": "paper"})
    for system in ("parsing", "parsing-semi"):
        run = project.run_spec(RunId("attention", system, "wsj", 1))
        model, training = run.model, run.training
        assert (model.num_layers, model.d_model, model.d_ff, model.num_heads) == (4, 1024, 2048, 8)
        assert (model.dropout, model.attention_dropout, model.tie_embeddings) == (0.2, 0.2, "none")
        assert (training.warmup_steps, training.lr_factor, training.max_length) == (16000, 0.5, 512)
        decoding = project.decoding("attention", system, "parsing")
        assert (decoding.beam_size, decoding.length_penalty, decoding.max_extra_length) == (21, 0.3, 300)


@pytest.mark.parametrize(
    ("licensed", "expected"),
    [
        (LICENSED, ["wsj", "wsj-semi"]),
        ({"LDC99T42": "/ptb"}, ["wsj", "craft-gum"]),
        ({}, ["craft", "craft-gum"]),
    ],
)
def test_unlicensed_treebank_has_a_declared_stand_in(licensed, expected):
    assert datasets_of_table_4("paper", licensed) == expected
    filled = fill(real_project({"scale": "paper", "licensed": licensed}), "attention", "table4")
    said = {reason.detail for row in filled.reasons["f1"] for reason in row if reason.is_stand_in}
    named = zip(expected, ("wsj", "wsj-semi"), strict=True)
    assert said == {f"`{dataset}` stands in for {name}" for dataset, name in named if dataset != name}


@pytest.mark.parametrize("scale", SCALES)
def test_parsing_rows_share_a_test_set_and_differ_in_training(scale):
    project = real_project({"scale": scale, "licensed": LICENSED})
    first, second = (project.dataset_records[name] for name in datasets_of_table_4(scale, LICENSED))
    assert isinstance(first, TreebankRecord) and isinstance(second, TreebankRecord)
    assert first.test_set == second.test_set
    assert first.expected["test"] == second.expected["test"]
    if "train" in second.expected:
        assert second.expected["train"].lines > first.expected["train"].lines


def test_rules_of_a_system_apply_to_its_variants_only():
    project = real_project({"scale": "demo"})

    def training(system):
        return project.run_spec(RunId("attention", system, "grammar-trees", 1)).training

    assert training("parsing") == training("parsing-semi")
    assert training("parsing").max_length > training("base").max_length == 64
    assert training("base") == training("C5")


def test_the_nearest_rule_counts():
    rules = {"training": {"max_steps": {"divide": 10}}}
    own = {"p/base": {"training": {"max_steps": {"divide": 5}}}, "p/child": {"training": {"max_steps": {"set": 7}}}}
    scale = Scale.model_validate({"description": "", "datasets": {}, "resources": {}, "systems": own, **rules})
    for lineage, expected in ((["p/other"], 10), (["p/base"], 20), (["p/base", "p/child"], 7)):
        assert scale.scaled("training", {"max_steps": 100}, lineage) == {"max_steps": expected}


def test_an_unknown_package_or_a_wrong_type_is_refused():
    with pytest.raises(UserError, match=r"licensed: unknown name 'LDC99T4'; allowed: .*LDC99T42"):
        load_project(ROOT, {"licensed": {"LDC99T4": "/elsewhere"}})
    with pytest.raises(UserError, match="licensed"):
        load_project(ROOT, {"licensed": "/ptb"})
