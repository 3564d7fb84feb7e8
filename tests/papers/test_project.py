"""Papers, scales and datasets resolve to run settings; bad values stop at once."""

from dataclasses import replace

import pytest
from cell_runs import cell_runs
from fabricated import touch
from real_project import real_project

from pipeline.core.artifacts import RunId
from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT
from pipeline.core.schema import validate
from pipeline.papers.paper import Paper
from pipeline.papers.project import ProjectOptions, is_project, load_project
from pipeline.papers.scale import SystemRules
from pipeline.workflow.graph import Graph, runs_in


def test_every_system_of_every_paper_resolves_at_every_scale(scaled):
    """Its learned positions hold the longest sentence and its end."""
    learned = set()
    dataset = next(iter(scaled.scale.datasets.values()))
    for paper, record in scaled.papers.items():
        for system in record.systems:
            spec = scaled.run_spec(RunId(paper, system, dataset, 1))
            assert spec.training.warmup_steps is None or spec.training.warmup_steps <= spec.training.max_steps
            if getattr(spec.model, "positions", spec.model.architecture) in ("learned", "convolutional"):
                learned.add(system)
                assert spec.training.max_length < spec.model.max_positions, f"{paper}/{system}"
    assert learned >= {"E1", "ConvS2S"}


def test_configured_folders_expand_home_and_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SCRATCH", "/scratch")
    config = load_project(ROOT, {"work": "$SCRATCH/x", "mirror": "~", "licensed": {"LDC99T42": "~/wsj"}}).config
    assert (config.work, config.mirror) == ("/scratch/x", str(tmp_path))
    assert config.licensed == {"LDC99T42": f"{tmp_path}/wsj"}


@pytest.mark.parametrize(
    ("section", "name", "owner"),
    [("tables", "claims", "claims.yaml"), ("layer_costs", "table2", "tables"), ("figures", "table2", "tables")],
)
def test_reports_of_one_name_are_refused(section, name, owner):
    record = real_project().papers["attention"].model_dump()
    record[section][name] = next(iter(record[section].values()))
    with pytest.raises(UserError, match=rf"p: {section}\.{name}: {owner} has a report of this name"):
        validate(Paper, record, "p")


def test_papers_list_all_rows_and_share_those_of_plain_systems():
    project = real_project()
    assert (len(project.printed["attention"]["table3"]), len(project.printed["weighted"]["table2"])) == (20, 10)
    shared = {cell.run for cell in cell_runs(project, "weighted", "table2")}
    mine = {cell.run for cell in cell_runs(project, "attention", "table3")}
    assert len(shared & mine) == 5


def test_row_settings_at_paper_scale_equal_printed_ones():
    project = real_project({"scale": "paper"})
    for paper, table in (("attention", "table3"), ("weighted", "table2")):
        for cell in cell_runs(project, paper, table):
            printed = project.printed[paper][table][cell.row]
            spec = project.run_spec(cell.run)
            assert spec.model.num_layers == int(printed["N"])
            assert spec.model.d_model == int(printed["d_model"])
            assert spec.model.d_ff == int(printed["d_ff"])
            assert spec.model.num_heads == int(printed["h"])
            assert spec.model.dropout == float(printed["p_drop"])
            assert spec.training.max_steps == int(printed["train_steps"])
            if printed.get("d_k"):
                assert (spec.model.key_width, spec.model.value_width) == (int(printed["d_k"]), int(printed["d_v"]))
            if printed.get("eps_ls"):
                assert spec.training.label_smoothing == float(printed["eps_ls"])
                assert spec.model.positions == printed["pos_encoding"]
            if printed.get("M"):
                assert spec.model.branches == int(printed["M"])


def test_sweeps_keep_their_order_when_scaled_down(scaled):
    """Widths and head sizes that differ in the paper still differ, in the same order; depths never swap."""
    dataset = next(iter(scaled.scale.datasets.values()))

    def model(system):
        return scaled.run_spec(RunId("attention", system, dataset, 1)).model

    assert model("C4").d_model < model("base").d_model < model("C5").d_model
    assert model("C6").d_ff < model("base").d_ff < model("C7").d_ff
    assert model("B1").key_width < model("B2").key_width < model("base").key_width
    assert model("B1").value_width == model("base").value_width
    depths = [model(system).num_layers for system in ("C1", "C2", "base", "C3")]
    assert depths == sorted(depths)
    heads = [model(system).num_heads for system in ("A1", "A2", "base", "A3", "A4")]
    assert heads == sorted(heads)


def test_a_decoding_change_leaves_the_run_specification_alone(edited):
    run = RunId("attention", "base", "grammar-en-de", 1)
    edited.put("workflow/papers/attention/paper.yaml", "decodings|final|beam_size", 9)
    after = edited.load()
    assert after.run_spec(run) == real_project().run_spec(run)
    assert after.decoding("attention", "base", "final").beam_size == 9


@pytest.mark.parametrize("made", [(), ("config.yaml",), ("workflow/papers/x",), ("config.yaml", "workflow/papers/x")])
def test_a_project_has_settings_and_papers(tmp_path, made):
    for name in made:
        touch(tmp_path / name)
    assert is_project(tmp_path) is (len(made) == 2)


@pytest.mark.parametrize(
    ("dataset", "measure", "apart"),
    [("an4", "scores", "an4"), ("an4", "perplexities", None), ("craft", "scores", None), ("none", "scores", None)],
)
def test_scores_of_recognisers_alone_are_kept_by_dataset(dataset, measure, apart):
    assert real_project().scored_apart(dataset, measure) == apart


def test_a_system_overrides_a_named_decoding():
    project = real_project()
    assert project.decoding("attention", "base", "averaged").average_last == 5
    assert project.decoding("attention", "big", "averaged").average_last == 20


def test_runs_keep_as_many_checkpoints_as_decodings_average(scaled):
    for paper in scaled.papers:
        cells = [cell for table in scaled.tables_here(paper) for cell in cell_runs(scaled, paper, table)]
        for run, name in {(cell.run, decoding) for cell in cells for decoding in cell.decodings}:
            training = scaled.run_spec(run).training
            averaged = scaled.decoding(run.paper, run.system, name).average_last
            assert averaged <= min(training.max_steps // training.checkpoint_every, training.keep_checkpoints), run


@pytest.fixture(scope="module")
def seeded():
    """The real papers with three seeds, of which none is the number of its place."""
    return real_project({"scale": "smoke", "seeds": [7, 2, 11]})


@pytest.mark.parametrize("paper", ["attention", "weighted", "multichannel", "coldfusion"])
def test_weight_sources_have_the_seed_of_their_run(seeded, paper):
    graph = Graph(seeded)
    runs = runs_in(graph.closure(graph.reports([paper])))
    assert {run.seed for run in runs} == {7, 2, 11}
    for run in runs:
        assert replace(run, seed=2) in runs
        assert seeded.run_spec(run).seed == seeded.run_yaml(run)["seed"] == run.seed
        assert {taken.seed for taken in seeded.weight_sources(run).values()} <= {run.seed}
    if paper == "coldfusion":
        assert sum(bool(seeded.weight_sources(run).get("language_model")) for run in runs) >= 3 * 8


def test_a_decoding_uses_the_language_model_of_the_same_seed(seeded):
    for seed in (7, 2, 11):
        run = RunId("coldfusion", "CF4", "grammar-smoke-speech-source", seed)
        beside = seeded.decoding_language_model(run, "swapped")
        assert (beside.system, beside.seed) == ("lm-target", seed)
        assert seeded.decoding_language_model(run, "final") is None


def test_training_takes_one_gpu_by_default():
    project, big = real_project({"scale": "paper"}), RunId("attention", "big", "wmt14-en-de", 1)
    others = (RunId("coldfusion", "CF4", "source", 3), RunId("coldfusion", "lm-full", "full-text", 3))
    assert [project.training_gpus(run) for run in (big, *others)] == [1, 1, 1]
    project.scale = project.scale.model_copy(update={"systems": {"attention/big": SystemRules(gpus=8)}})
    assert [project.training_gpus(run) for run in (big, *others)] == [8, 1, 1]


def test_scale_adds_seeds_for_some_systems_and_no_variants():
    project = real_project({"scale": "smoke"})
    project.scale = scale = project.scale.model_copy(update={"seeds": {"attention/base": 3}})
    given = ([1], [2, 7], [1, 2, 3, 4])
    assert [scale.seeds_of("attention/base", seeds) for seeds in given] == [[1, 2, 3], [2, 7, 1], [1, 2, 3, 4]]
    found = {name: project.runs_of("weighted", name, "wmt14-en-de") for name in ("attention/base", "attention/C1", "A")}
    assert [[run.seed for run in runs] for runs in found.values()] == [[1, 2, 3], [1], [1]]


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False)])
def test_switches_of_a_command_line_may_be_text_and_reach_runs(text, value):
    project = real_project({"tensorboard": text, "cuda_graphs": text})
    training = project.run_spec(RunId("attention", "base", "grammar-en-de", 1)).training
    for settings in (project.config, training):
        assert (settings.tensorboard, settings.cuda_graphs) == (value, value)


def test_unknown_paper_of_a_command_is_refused():
    assert ProjectOptions(ROOT).load(["weighted"]).papers
    with pytest.raises(UserError, match=r"--paper: unknown name 'weigthed'.*did you mean 'weighted'"):
        ProjectOptions(ROOT).load(["weighted", "weigthed"])


@pytest.mark.parametrize(("system", "origin"), [("DF2", "attention-source"), ("tuned-9-5", "CF4"), ("CF4", "CF4")])
def test_origin_is_the_training_that_a_run_continues(seeded, system, origin):
    source, target = (seeded.stand_in(dataset) for dataset in ("source", "target"))
    run = RunId("coldfusion", system, target if system == "tuned-9-5" else source, 11)
    assert seeded.origin(run) == RunId("coldfusion", origin, source, 11)
