"""Paths that rules write out are those of the layout, and a dry run ends in a short summary."""

import random
import re
from collections import Counter

import pytest
from copied_project import ROOT
from fabricated import touch
from real_project import real_project
from rule_files import BLOCKS, Placeholders

from pipeline.core import artifacts
from pipeline.core.layout import Layout
from pipeline.workflow.rules import artifact_of
from pipeline.workflow.start import PlannedJob, dry_run_lines

MADE_BY = {
    "grammar": "Raw",
    "download": "Raw",
    "prepare": "Prepared",
    "subwords": "Vocabulary",
    "encode": "Encoded",
    "speak": "Spoken",
    "features": "Encoded",
    "train": "Trained",
    "decode": "Outputs",
    "score": "Scores",
    "layer_times": "LayerTimes",
    "model_sizes": "ModelSizes",
    "table": "Table",
    "layer_table": "LayerTable",
    "figure": "Figure",
    "claims": "Claims",
    "calibrate": "Calibration",
}
WITHOUT_ARTIFACT = {"fetch", "site", "view", "check_data", "plan", "cost"}


def outputs_of_rules() -> dict[str, str]:
    """Return the text of the output section of every rule by its name."""
    sections = {name: re.search(r"^    output:\n((?:        .*\n)+)", block, re.M) for _, name, block in BLOCKS}
    return {name: section[1] if section else "" for name, section in sections.items()}


def paths_in(section: str, work: str, scale: str) -> set[str]:
    """Return the patterns of the files in an output section, the constants of common.smk put in."""
    scale_folder = f"{work}/{scale}"
    constants = {
        "WORK": scale_folder,
        "CORPUS": f"{work}/corpora/{{dataset}}-{{content}}",
        "RUN": f"{scale_folder}/runs/{{paper}}/{{system}}/{{dataset}}/seed{{seed}}-{{content}}",
        "RESULTS": f"results/{scale}/{{paper}}",
    }
    found = set()
    for pattern in re.findall(r'f"(\{[A-Z]+\}/[^"]+)"', section):
        folder, _, rest = pattern.partition("/")
        found.add(f"{constants[folder[1:-1]]}/{rest}".replace("{{", "{").replace("}}", "}"))
    return found


def test_every_rule_that_makes_a_file_is_compared():
    assert set(MADE_BY) | WITHOUT_ARTIFACT == set(outputs_of_rules())


@pytest.mark.parametrize("rule", MADE_BY)
def test_the_output_of_a_rule_is_where_the_layout_says(rule):
    layout = real_project({"scale": "smoke"}).layout
    patterns = Layout(layout.work, layout.scale, lambda run: "{content}", lambda dataset: "{content}")
    path = patterns.path(artifact_of(getattr(artifacts, MADE_BY[rule]), Placeholders()))
    assert str(path) in paths_in(outputs_of_rules()[rule], str(layout.work), layout.scale)


def test_common_functions_and_rules_stay_few():
    assert len((ROOT / "workflow/rules/common.smk").read_text().splitlines()) <= 130
    assert len(outputs_of_rules()) + 2 <= 25  # `all`, and one a paper


RULES = ["train", "decode", "score", "table", "figure", "claims", "site", "download", "encode", "prepare"]


def test_dry_run_sums_up_jobs_in_ten_lines_at_most():
    draw = random.Random(7)
    for _ in range(50):
        rules = draw.choices(RULES, k=draw.randrange(1, 200))
        papers = [draw.choice(["attention", "weighted"]) for _ in rules]
        jobs = [
            PlannedJob(rule, "", [f"work/demo/runs/{paper}/base/data/seed1-0/done.json"])
            for rule, paper in zip(rules, papers, strict=True)
        ]
        lines = dry_run_lines("demo", [*jobs, PlannedJob("all", "", [])])
        text = "\n".join(lines)
        assert len(lines) <= 10 and lines[0] == f"In short, at scale demo: {len(jobs)} job{'s' * (len(jobs) > 1)}"
        for rule, count in Counter(rules).items():
            assert f"{count} {rule}" in text or f"  {rule:8} {count}" in text
        trained = Counter(paper for rule, paper in zip(rules, papers, strict=True) if rule == "train")
        assert all(f"{paper} {count}" in text for paper, count in trained.items())


@pytest.mark.parametrize(
    ("column", "device"), [("hours_here", "on this machine"), ("gpu_hours_A100", "of one A100"), ("other", None)]
)
def test_dry_run_sums_the_forecast_hours_of_its_trainings(column, device):
    draw = random.Random(column)
    hours = {f"weighted/{draw.choice('ABC')}/data/seed{seed}": draw.randint(1, 9) / 4 for seed in range(1, 9)}
    plan = [{"job": "train", "name": name, column: str(cost)} for name, cost in hours.items()]
    some = draw.sample(sorted(hours), 5)
    jobs = [PlannedJob("train", "", [f"work/demo/runs/{name}-0a1b/done.json"]) for name in some]
    text = "\n".join(dry_run_lines("demo", jobs, plan))
    assert ("cost  " in text) == (device is not None)
    if device:
        total = sum(hours[name] for name in some)
        amount = f"{total:.1f}" if total < 10 else str(round(total))
        assert f"  cost     {amount} h {device} for the trainings" in text
        many = [row | {column: str(250 * float(row[column]))} for row in plan]
        assert f"  cost     {round(250 * total):,} h {device}" in "\n".join(dry_run_lines("demo", jobs, many))
    assert "cost  " not in "\n".join(dry_run_lines("demo", jobs, [{"other": "column"}]))
    rewritten = [row | {column: "1.234,5"} for row in plan]
    assert "cost  " not in "\n".join(dry_run_lines("demo", jobs, rewritten))
    unknown = PlannedJob("train", "", ["work/demo/runs/own/D/data/seed1-0/done.json"])
    assert "cost  " not in "\n".join(dry_run_lines("demo", [*jobs, unknown], plan))


def test_dry_run_tells_finished_trainings_from_new_ones(tmp_path):
    """Only the two that lack done.json cost 4 hours each."""
    folders = [tmp_path / f"demo/runs/weighted/C/data/seed{seed}-0a1b" for seed in range(1, 6)]
    for folder in folders[:3]:
        touch(folder / "done.json")
    jobs = [PlannedJob("train", "", [str(folder / "done.json")]) for folder in folders]
    plan = [{"job": "train", "name": f"weighted/C/data/seed{seed}", "hours_here": "4"} for seed in range(1, 6)]
    lines = dry_run_lines("demo", jobs, plan)
    assert "  train    5 (weighted 5), 3 of them finished: retrained only if their inputs changed" in lines
    assert "  cost     8.0 h on this machine for the trainings, by plan.csv" in lines


def test_dry_run_with_nothing_to_make_has_no_summary():
    assert dry_run_lines("demo", [PlannedJob("all", "", [])]) == []
