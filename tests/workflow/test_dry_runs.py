"""The workflow resolves: every paper, scale and profile, and no rule without a log or with an unknown key."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from lint import remaining

from pipeline.data.dataset import Dataset
from pipeline.experiment.project import load_project
from pipeline.planning.schemas import RECORDS, schema_text

ROOT = Path(__file__).resolve().parents[2]
SCALES = sorted(path.stem for path in (ROOT / "workflow/scales").glob("*.yaml"))


def snakemake(*arguments, cwd=ROOT):
    environment = {key: value for key, value in os.environ.items() if key != "SNAKEMAKE_PROFILE"}
    command = [str(Path(sys.executable).parent / "snakemake"), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("profile", [(), ("--profile", "slurm")], ids=["local", "slurm"])
def test_a_dry_run_of_all_papers_resolves(scale, profile, tmp_path):
    done = snakemake("-n", "all", *profile, "--nolock", "--config", f"scale={scale}", f"work={tmp_path}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "train" in done.stdout


def test_one_table_needs_only_its_own_runs(tmp_path):
    done = snakemake("-n", "results/table3.csv", "--nolock", "--config", "paper=weighted", f"work={tmp_path}")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = dict(line.split()[:2] for line in done.stdout.split("\n") if len(line.split()) == 2)
    assert counts["train"] == "1"


def test_an_unknown_config_key_stops_with_one_message(tmp_path):
    done = snakemake("-n", "all", "--nolock", "--config", "sacle=demo")
    assert done.returncode != 0
    assert "sacle: unknown key; allowed: licensed, mirror, paper, scale, seeds, work" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_what_is_launched_waits_at_home_and_is_submitted_where_the_profile_says():
    rules = "".join(path.read_text() for path in sorted((ROOT / "workflow/rules").glob("*.smk")))
    blocks = re.findall(r"^(?:rule|use rule (\w+) as) (\w+)[^:]*:\n((?:(?: .*)?\n)*)", rules, re.MULTILINE)
    launched = {name for _, name, text in blocks if "LAUNCH" in text}
    launched |= {name for parent, name, _ in blocks if parent in launched}
    profile = yaml.safe_load((ROOT / "slurm/profile.yaml").read_text())
    local = re.search(r"localrules:\n(.*?)\n\n", (ROOT / "Snakefile").read_text(), re.DOTALL)[1]
    assert launched == set(profile["set-resources"])
    assert launched <= {name.strip(" ,") for name in local.split("\n")}


def test_lint_finds_nothing_but_the_advice_that_is_not_followed():
    done = snakemake("--lint")
    assert remaining(done.stdout + done.stderr) == []


@pytest.mark.parametrize("name", RECORDS)
def test_schemas_are_those_of_the_records(name):
    assert (ROOT / f"workflow/schemas/{name}.json").read_text(encoding="utf-8") == schema_text(RECORDS[name])


@pytest.mark.parametrize("name", RECORDS)
def test_every_record_is_closed(name):
    schema = json.loads(schema_text(RECORDS[name]))
    records = [schema, *schema.get("$defs", {}).values()]
    assert all(record["additionalProperties"] is False for record in records if "properties" in record)


def test_every_dataset_a_scale_names_exists_and_is_valid():
    for scale in SCALES:
        project = load_project(ROOT, {"scale": scale})
        for name in project.scale.datasets:
            assert project.stand_in(name)
    assert Dataset is RECORDS["dataset"]


def test_a_target_that_nothing_makes_names_those_that_exist_and_a_value_of_an_option_is_none(tmp_path):
    done = snakemake("-n", "--nolock", "--config", f"work={tmp_path}", "--", "results/demo/weighted/tabel2.csv")
    assert done.returncode != 0 and "did you mean 'table2'?" in done.stdout + done.stderr
    done = snakemake("--nolock", "--report", "results/page.html", "--config", f"work={tmp_path}", "--", "weighted")
    assert "unknown name" not in done.stdout + done.stderr


def test_every_result_of_a_report_has_one_label():
    """Of two that halve a category Snakemake makes a switch; its page stays white where one of four is missing."""
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    labels = re.findall(r"labels=\{(.*)\},$", rules, re.MULTILINE)
    assert len(labels) == rules.count("category=") > 4
    assert [one for one in labels if not re.fullmatch(r'"result": "[^"]+"', one)] == []
