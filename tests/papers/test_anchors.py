"""Published recipes are unchanged by scales and left out of `all`."""

from fnmatch import fnmatch

import pytest
from real_project import real_project

from pipeline.analysis.cells.cell import PrintedTable
from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Outputs, RunId, Table, Tuned
from pipeline.papers.comparability import Comparability
from pipeline.report.table import scale_rules
from pipeline.training.optimiser import Schedule
from pipeline.workflow.graph import Graph
from pipeline.workflow.plans import Plans
from pipeline.workflow.targets import unknown_target

SPEAKERS = ("lucas", "nicolas", "theo", "yweweler")


@pytest.fixture(scope="module")
def small():
    return real_project({"scale": "small", "seeds": 3})


def test_scale_rules_leave_published_recipes_unchanged(small):
    for system in small.papers["anchors"].systems:
        (run, *_) = small.runs_of("anchors", system, "multi30k-en-de-lowercased")
        for section in ("model", "training"):
            assert small.section(run, section) == small.full_section("anchors", system, section)
        assert scale_rules(small, [run]) == []
    assert small.run_spec(RunId("attention", "base", "multi30k-en-de", 1)).model.d_model == 128  # 512 in the paper


def test_our_numbers_are_comparable_with_the_published_ones(small):
    for name, entry in small.papers["anchors"].tables.items():
        view = PaperView(small, "anchors")
        table = PrintedTable(view, small.printed["anchors"][name], entry.cells, RunFolders(view))
        for cell in entry.cells.values():
            for index in range(len(table.rows)):
                assert Comparability(small, "anchors").reasons(entry, table, index, cell) == []


@pytest.mark.parametrize("recipe", ["joint-an4", "joint-an4-long"])
def test_folds_tune_a_weight_on_speakers_nobody_trained_on(small, recipe):
    main = RunId("anchors", recipe, "an4-complete", 2)
    graph, name = Graph(small), "joint-lm-folds"
    others = [RunId("anchors", f"{recipe}-without-{letter}", f"an4-without-{letter}", 2) for letter in "jms"]
    assert graph.inputs(Tuned(main, name))["tuned_with"] == [Tuned(other, name) for other in others]
    plans, run_of = Plans(graph), small.layout.run
    plan, lm = plans.decoding(Outputs(main, name)), run_of(RunId("anchors", "lm-an4", "an4-complete", 2))
    assert plan.language_model == str(lm)
    assert plan.tuned_with == [str(run_of(other) / f"tuned/{name}.json") for other in others]
    needed = {lm / "done.json", *(run_of(other) / name / "outputs.json" for other in others)}
    assert needed < {*plans.inputs(Outputs(main, name))}
    settings = small.run_spec(main)
    for other in others:
        assert graph.inputs(Tuned(other, name))["tuned_with"] == []
        assert small.decoding_language_model(other, name) == RunId("anchors", "lm-an4", other.dataset, 2)
        spec = small.run_spec(other)
        assert (spec.model, spec.training) == (settings.model, settings.training)


def taken(parts, paths):
    """Return which of some members of archives the parts of a split take, with their source."""
    return {(part.source, path) for part in parts for path in paths if fnmatch(path, part.members)}


def test_folds_of_an4_share_no_development_speaker(small):
    letters = [a + b for a in "fm" for b in "abcdefghijklmnopqrstuvwxyz"]
    paths = [f"an4/{part}/{letter}xx/a.flac" for part in ("train", "dev") for letter in letters]
    held_out = []
    for name in ("an4-complete", "an4-without-j", "an4-without-m", "an4-without-s"):
        splits = small.dataset_records[name].splits
        held_out.append(taken(splits["dev"], paths))
        assert not taken(splits["train"], paths) & held_out[-1]
    assert sum(map(len, held_out)) == len(set().union(*held_out))


def test_tiny_transformer_learning_rate_peaks_at_step_2000(small):
    runs = small.runs_of("anchors", "tiny-transformer", "multi30k-en-de-lowercased")
    assert [run.seed for run in runs] == [1, 2, 3]
    spec = small.run_spec(runs[0])
    schedule = Schedule(spec.model, spec.training)
    rates = [schedule.weights(update) for update in range(4000)]
    assert rates.index(max(rates)) + 1 == 2000 and max(rates) == pytest.approx(0.005, rel=1e-6)


def test_reports_of_user_data_are_made_on_request_only(small):
    made = {artifact.table for artifact in Graph(small).reports(["anchors"]) if isinstance(artifact, Table)}
    assert made == {"multi30k", "an4", "digits", "craft"}
    for name in ("an4-official", "an4-folds", "german", "french", "czech"):
        assert unknown_target(small, f"results/small/anchors/{name}.csv", ()) is None


def test_every_language_and_test_set_has_the_recipe_unchanged(small):
    names = ("de-lowercased", "de-all-tests", "fr-all-tests", "cs-all-tests")
    runs = [small.runs_of("anchors", "tiny-transformer", f"multi30k-en-{name}")[0] for name in names]
    first, *others = map(small.run_spec, runs)
    assert all((other.model, other.training) == (first.model, first.training) for other in others)
    prepared = [small.dataset_records[run.dataset] for run in runs]
    for key in ("cleaning", "tokeniser", "lowercase", "subwords", "src"):
        assert all(getattr(record, key) == getattr(prepared[0], key) for record in prepared)


@pytest.mark.parametrize("speaker", SPEAKERS)
def test_the_speaker_who_is_left_out_is_heard_in_the_test_alone(small, speaker):
    parts = small.dataset_records[f"fsdd-without-{speaker}"].splits
    paths = [f"fsdd/{part}/{digit}_{name}_7.flac" for part in ("train", "test") for digit in "09" for name in SPEAKERS]
    train, dev, test = ({path for _, path in taken(parts[split], paths)} for split in ("train", "dev", "test"))
    assert test == {path for path in paths if f"_{speaker}_" in path}
    assert train | dev == set(paths) - test and not train & dev


def test_all_leaves_out_anchors_and_other_scales_name_theirs(small):
    assert "anchors" not in small.reproduced and set(small.papers) == {*small.reproduced, "anchors"}
    assert unknown_target(small, "anchors", {"anchors"}) is None
    demo = real_project({"scale": "demo"})
    said = "anchors is made at scale small only; add --config scale=small (snakemake) or --set scale=small (reprise)"
    assert unknown_target(demo, "anchors", {"anchors"}) == said
    assert Graph(demo).reports(["anchors"]) == []
