"""Readings are systems side by side; tables name the interpretations that a row follows."""

from itertools import product

import pytest
from copied_project import ROOT
from fabricated import table_rows
from real_project import real_project

from pipeline.core.artifacts import RunId
from pipeline.models.settings import BatchShape, training_flops
from pipeline.papers.paper import load_paper
from pipeline.papers.reading import system_readings
from pipeline.planning.jobs import Jobs
from pipeline.report.filled_table import fill
from pipeline.report.markup import plain
from pipeline.report.table import render

PAPERS = [path.parent.name for path in sorted(ROOT.glob("workflow/papers/*/paper.yaml"))]


@pytest.fixture(scope="module")
def project():
    return real_project({"scale": "demo"})


def test_every_combination_of_readings_is_a_row(project):
    systems = [row["system"] for row in project.printed["weighted"]["readings"]]
    made_by = [reading for system in systems if (reading := system_readings(project, "weighted", system))]
    names = ("feed-forward", "branched-attention", "residuals")
    found = {tuple(reading[name] for name in names) for reading in made_by if reading["scale"] == "one"}
    assert found == set(product(("shared", "split"), ("self", "cross"), ("sub-layers", "block")))
    assert {reading["scale"] for reading in made_by} == {"one", "weights", "start"}


@pytest.mark.parametrize("paper", PAPERS)
def test_printed_systems_follow_the_default_of_every_reading(project, paper):
    """But for parsing, where the released code has attention dropout."""
    defaults = {name: reading.default for name, reading in project.papers[paper].readings.items()}
    tables = [name for name in project.papers[paper].tables if name.startswith("table")]
    for system in {row["system"] for name in tables for row in project.printed[paper][name]} - {""}:
        if not system.startswith("parsing"):
            assert system_readings(project, paper, system).items() <= defaults.items(), system


@pytest.mark.parametrize("paper", PAPERS)
def test_omitted_settings_follow_the_default_readings(project, paper):
    rows = [row["system"] for table in project.printed[paper].values() for row in table if row.get("system")]
    models = {type(project.run_spec(RunId(*project.locate(row, paper), "any", 1)).model) for row in rows}
    for reading in project.papers[paper].readings.values():
        for path, value in reading.choices[reading.default].settings.items():
            for model in models if path.startswith("model.") else ():
                field = model.model_fields.get(path.removeprefix("model."))
                assert field is None or field.is_required() or field.default == value, (model.__name__, path)


def test_other_papers_systems_are_made_by_no_reading_of_this_one(project):
    assert system_readings(project, "weighted", "attention/C1") == {}


@pytest.mark.parametrize(
    ("scale", "system", "wide"),
    [
        *(("demo", "C", "C1-wide"), ("small", "C", "C1-wide"), ("paper", "C", "C1-wide")),
        *(("small", "A", "base-wide"), ("paper", "A", "base-wide")),
    ],
)
def test_wide_control_has_the_flops_of_the_literal_reading(scale, system, wide):
    project, shape = real_project({"scale": scale}), BatchShape(2000, 1000, 1000, 20, 20)
    specs = (project.run_spec(RunId("weighted", name, "wmt14-en-de", 1)) for name in (system, wide))
    literal, control = (training_flops(spec.model, shape) for spec in specs)
    assert control == pytest.approx(literal, rel=0.01)


def test_csv_names_all_choices_markdown_only_non_defaults(project):
    rows = {row["arm"]: row["readings"] for row in table_rows(project, "weighted", "readings")}
    others = "branched-attention self; residuals sub-layers; scale one; branch-weights-of-layers own"
    others += "; start-of-branch-weights simplex"
    assert rows["split"] == f"feed-forward split; {others}"
    assert rows["Transformer (C)"] == ""
    lines = render(project, "weighted", "readings", fill(project, "weighted", "readings")).split("\n")
    (split,) = (line for line in lines if line.startswith("| split  "))
    assert split.rstrip(" |").endswith("| feed-forward split")
    for name, reading in project.papers["weighted"].readings.items():
        (start,) = (number for number, line in enumerate(lines) if line.startswith(f"- {name} ("))
        passage, default, *choices = map(plain, lines[start : start + 2 + len(reading.choices)])
        assert passage == f'- {name} ({reading.where}): "{reading.passage}"'
        assert default == f"  - default, chosen {reading.chosen}: {reading.default}, {reading.why}"
        for line, (key, choice) in zip(choices, reading.choices.items(), strict=True):
            assert line == f"  - {key}: {choice.means} ({choice.support})"


def test_tables_without_any_reading_say_nothing_of_readings(project):
    text = render(project, "coldfusion", "table2", fill(project, "coldfusion", "table2"))
    assert "Readings" not in text


def test_plan_prices_both_readings_of_the_large_model():
    jobs = Jobs(real_project({"scale": "paper"}), ["weighted"], None)
    flops = {run.system: job.flops for job in jobs.all if job.kind == "train" and (run := job.run)}
    assert flops["B"] / flops["B-split"] == pytest.approx(4.53, rel=0.01)  # as counted by hand from eq. 6 and 7


def test_reading_applies_to_systems_that_set_all_its_keys(project):
    reading = project.papers["weighted"].readings["scale"]
    keys = {key for choice in reading.choices.values() for key in choice.settings}
    for name, choice in reading.choices.items():
        given = {key: values[0] if isinstance(values, list) else values for key, values in choice.settings.items()}
        assert given.keys() == keys
        assert reading.choice_of(given, "") == reading.choice_of(given | {"model.d_ff": 8}, "") == name
        assert all(reading.choice_of({key: given[key] for key in keys - {left_out}}, "") is None for left_out in keys)


@pytest.mark.parametrize("paper", PAPERS)
def test_each_reading_quotes_its_paper_in_few_words(paper):
    record, _ = load_paper(ROOT / "workflow/papers" / paper)
    assert all(len(reading.passage.split()) <= 30 for reading in record.readings.values())
