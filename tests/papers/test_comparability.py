"""Comparability follows from the run: data, metric, scale and deviations."""

import re

import pytest
from fabricated import bleu_statistics, table_rows, write_score
from real_project import real_project

from pipeline.analysis.cells.cell import PrintedTable
from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView, measure_of
from pipeline.core.artifacts import Score
from pipeline.core.records.outputs import ScoreFile
from pipeline.papers.comparability import Comparability, format_reasons
from pipeline.report.filled_table import fill
from pipeline.report.table import render

PAPER, TABLE = "weighted", "table2"


PAPER_FILE, SCALE = f"workflow/papers/{PAPER}/paper.yaml", "workflow/scales/paper.yaml"


def scored(edited, work, scale: str = "paper"):
    """Load the edited project, with a score in the first row of the table."""
    edited.edit(PAPER_FILE, lambda paper: paper["tables"][TABLE]["cells"].pop("gleu"))
    project = edited.load(work=str(work), scale=scale)
    for run in project.runs_of(PAPER, "attention/C1", "wmt14-en-de"):
        for metric in ("bleu_paper", "sacrebleu"):
            write_score(project, run, metric, "final", "dev", bleu_statistics(0.6))
    return project


def first_row(project):
    """(difference, why not) of the first row, and the line about the column below the table."""
    row = table_rows(project, PAPER, TABLE)[0]
    lines = render(project, PAPER, TABLE, fill(project, PAPER, TABLE)).split("\n")
    (note,) = (line for line in lines if line.startswith("- bleu: "))
    return row["bleu_difference"], row["bleu_why_not"], note


def test_own_data_at_the_scale_of_the_paper_is_comparable(edited, tmp_path):
    project = scored(edited, tmp_path)
    found, why_not, note = first_row(project)
    ours = float(table_rows(project, PAPER, TABLE)[0]["bleu_ours"])
    assert (float(found), why_not) == (pytest.approx(ours - 23.7), "")
    assert "not comparable" not in note


def test_score_without_all_lines_of_the_test_set_differs(edited, tmp_path):
    """Utterances of a dataset of one's own can be unusable, and no expected number is there to refuse it."""
    project = scored(edited, tmp_path)
    run = project.runs_of(PAPER, "attention/C1", "wmt14-en-de")[0]
    path = project.layout.path(Score(run, measure_of("bleu_paper"), "final", "dev"))
    score = ScoreFile.read(path)
    score.model_copy(update={"left_out": 3}).write(path)
    found, why_not, _ = first_row(project)
    assert (found, why_not) == ("not comparable", f"toy lacks 3 of {score.lines + 3} lines")


def test_dataset_without_stands_in_for_is_still_a_stand_in(edited, tmp_path):
    edited.edit("workflow/datasets/grammar-smoke-en-de.yaml", lambda value: value.pop("stands_in_for"))
    found, why_not, note = first_row(scored(edited, tmp_path, scale="smoke"))
    assert found == "not comparable"
    assert "`grammar-smoke-en-de` stands in for wmt14-en-de" in why_not
    assert "scale smoke changes model.d_ff, model.d_model" in why_not and "training.max_steps" in why_not
    assert "not comparable with the printed number, as `grammar-smoke-en-de` stands in for wmt14-en-de; scale" in note


TWICE = {"multiply": 2}
OF_THE_MACHINE = {
    "training": {
        "precision": {"set": "fp32"},
        "micro_batch_tokens": TWICE,
        "validate_every": TWICE,
        "branch_lr_factor": TWICE,  # a Transformer has no branches
    },
    "decoding": {"batch_tokens": TWICE},
}
OF_THE_RECIPE = {
    "model": {"d_ff": {"divide": 2}},
    "training": {"max_steps": TWICE, "max_length": TWICE, "tokens_per_update": TWICE},
    "decoding": {"beam_size": TWICE},
}


@pytest.mark.parametrize("rules", [OF_THE_MACHINE, OF_THE_RECIPE], ids=["machine", "recipe"])
def test_machine_settings_leave_a_run_comparable(edited, tmp_path, rules):
    edited.edit(SCALE, lambda scale: scale.update(rules))
    changed = sorted(f"{section}.{key}" for section in rules for key in rules[section])
    why_not = first_row(scored(edited, tmp_path))[1].removeprefix("scale paper changes ")
    assert sorted(filter(None, why_not.split(", "))) == (changed if rules is OF_THE_RECIPE else [])


def test_another_metric_than_the_printed_one_is_not_comparable(edited, tmp_path):
    edited.put(PAPER_FILE, f"tables|{TABLE}|cells|bleu|metric", "sacrebleu")
    found, why_not, note = first_row(scored(edited, tmp_path))
    assert found == "not comparable"
    assert why_not == "bleu_newstest2013 is printed in bleu_paper, measured in sacrebleu"
    assert why_not in note


def test_a_column_whose_metric_is_not_named_is_not_comparable(edited, tmp_path):
    edited.edit(PAPER_FILE, lambda paper: paper["tables"][TABLE].pop("printed_metrics"))
    assert "printed in no metric named" in first_row(scored(edited, tmp_path))[1]


@pytest.mark.parametrize(("changes", "expected"), [([], ""), (["budget"], "deviation 1 changes the budget")])
def test_deviation_without_changes_keeps_rows_comparable(edited, tmp_path, changes, expected):
    edited.put(PAPER_FILE, "deviations|0|changes", changes)
    project = scored(edited, tmp_path)
    row = first_row(project)
    assert row[1] == expected
    assert table_rows(project, PAPER, TABLE)[0]["deviations"] == "1 4 5 6 7 8 9"
    assert ("in Transformer C" in row[2]) == bool(changes)  # other rows stay comparable


def test_deviation_of_the_owning_paper_counts(edited, tmp_path):
    edited.put("workflow/papers/attention/paper.yaml", "deviations|1|changes", ["model"])
    assert first_row(scored(edited, tmp_path))[1] == "deviation 2 of attention changes the model"


def reasons(project, paper, table, cell, **row):
    """Why a cell is not comparable in the first row with these columns; nothing has to be run."""
    view, entry = PaperView(project, paper), project.table(paper, table)
    printed = PrintedTable(view, project.printed[paper][table], entry.cells, RunFolders(view))
    index = next(number for number, found in enumerate(printed.rows) if row.items() <= found.items())
    return format_reasons(Comparability(project, paper).reasons(entry, printed, index, entry.cells[cell]))


def at_paper_scale(edited, **sections):
    """Load the project after a change of the scale `paper`."""

    def change(scale):
        for section, rules in sections.items():
            scale.setdefault(section, {}).update(rules)

    edited.edit(SCALE, change)
    return edited.load(scale="paper")


def test_perplexity_per_subword_is_never_comparable():
    """One per character has the same symbols; BLEU of the same outputs does not depend on subwords."""
    project = real_project({"scale": "paper"})
    subwords, bleu = (reasons(project, "attention", "table3", cell, system="base") for cell in ("ppl", "bleu"))
    characters = reasons(project, "coldfusion", "table2", "ppl_source", system="lm-source")
    assert (subwords, bleu) == ("perplexity is per subword, and the paper's subwords are others", "")
    assert "subword" not in characters


def test_perplexity_per_word_is_not_called_one_per_subword(edited):
    """No paper here prints one; the table gets a printed column for it."""
    file = "workflow/papers/multichannel/paper.yaml"
    edited.put(file, "tables|table1|cells|ppl|printed", "parameters")
    edited.put(file, "tables|table1|printed_metrics|parameters", "perplexity")
    found = reasons(edited.load(scale="paper"), "multichannel", "table1", "ppl", system="RNN")
    assert found == reasons(real_project({"scale": "paper"}), "multichannel", "table1", "nist03", system="RNN")


def test_checkpoints_and_validations_matter_only_if_used(edited):
    """The first if they are averaged, the second if the schedule reads them."""
    project = at_paper_scale(edited, training={"checkpoint_every": TWICE, "validate_every": TWICE})
    averaged, last = (reasons(project, "attention", "recipes", cell, system="base") for cell in ("ende", "ende_last"))
    assert (averaged, last) == ("scale paper changes training.checkpoint_every", "")
    plateau = reasons(project, "coldfusion", "table3", "source_wer", system="attention-source")
    assert "training.validate_every" in plateau


def test_training_of_a_language_model_matters_if_used(edited):
    project = at_paper_scale(edited, systems={"coldfusion/lm-full": {"training": {"max_steps": TWICE}}})
    expected = {
        ("ctc", "shallow-ctc"): True,  # used by the decoding
        ("CF4", "final"): True,  # fused in training
        ("attention-source", "final"): False,
        ("attention-target", "final"): False,
    }
    for (system, decoding), changed in expected.items():
        why = reasons(project, "coldfusion", "table3", "target_wer", system=system, decoding=decoding)
        assert ("scale paper changes training.max_steps" in why) is changed, system
        assert ("stands in for full-text" in why) is changed, system


def test_stand_ins_for_the_scored_set_and_a_fused_model_matter():
    project = real_project({"scale": "paper"})
    expected = {
        ("attention-source", "source_wer"): ["source"],
        ("attention-source", "target_wer"): ["source", "target"],
        ("CF4", "source_wer"): ["source", "full-text"],
    }
    for (system, cell), names in expected.items():
        why = reasons(project, "coldfusion", "table3", cell, system=system)
        assert re.findall(r"stands in for ([\w-]+)", why) == names


def test_gain_and_gap_are_comparable_only_if_both_ends_are(edited):
    longer = {"training": {"max_steps": TWICE}}
    project = at_paper_scale(edited, systems={"weighted/C1-short": longer, "coldfusion/attention-target": longer})
    cells = ("gain_equal_steps", "gain", "bleu")
    against_short, gain, score = (reasons(project, "weighted", "readings", cell, system="C") for cell in cells)
    assert "scale paper changes training.max_steps" in against_short
    assert "training.max_steps" not in gain + score
    gap, rate = (reasons(project, "coldfusion", "table3", cell, system="DF0") for cell in ("gap", "target_wer"))
    assert "scale paper changes training.max_steps" in gap
    assert "training.max_steps" not in rate


def test_untied_softmax_makes_t2t_another_model():
    """Its embeddings and softmax share a matrix in the toolkit, but not here; RNN is built as the counts require."""
    project = real_project({"scale": "paper"})
    assert project.full_section("multichannel", "T2T", "model").tie_embeddings == "none"
    changed = {row: reasons(project, "multichannel", "table1", "nist03", system=row) for row in ("T2T", "RNN")}
    assert {row: "changes the model" in why for row, why in changed.items()} == {"T2T": True, "RNN": False}


def noted(project, paper: str, text: str) -> set[str]:
    """Return the systems of a paper that have a deviation which begins with a text."""
    (deviation,) = (found for found in project.papers[paper].deviations if found.paper.startswith(text))
    return {system for system in project.papers[paper].systems if deviation.concerns({system})}


def test_deviations_of_speech_concern_recognisers_alone():
    """Language models have no noise, decoders with a beam of 128, or scheduled sampling."""
    project = real_project({"scale": "paper"})
    models = {name: project.full_section("coldfusion", name, "model") for name in project.papers["coldfusion"].systems}
    speech = {name for name, model in models.items() if model.reads == "speech"}
    assert noted(project, "coldfusion", "Random background noise") == speech
    assert noted(project, "coldfusion", "Decoding has a beam of 128") == speech
    sampling = {name for name, model in models.items() if model.samples}
    assert noted(project, "coldfusion", "The paper does not say how the model's own symbols") == sampling


@pytest.mark.parametrize(
    "text", ["The paper does not say how Chinese", "The metric is NIST", "Unknown words", "Each side has"]
)
def test_deviations_of_chinese_do_not_concern_french(text):
    project = real_project({"scale": "paper"})
    chinese = {system for system in project.papers["multichannel"].systems if not system.endswith("-enfr")}
    assert noted(project, "multichannel", text) == chinese
