"""The workflow resolves from each of its entry points, with each profile, and refuses unknown keys and targets."""

import json
import re
from pathlib import Path

import pytest
import yaml
from copied_project import ROOT, add_toy_paper, call, copy_project, jobs, require
from fabricated import write_training, write_training_beside
from real_project import real_project
from rule_files import TEXT, local_rules, profile, rules_with

from pipeline.core.artifacts import RunId, Table, Trained
from pipeline.papers.project import load_project
from pipeline.planning.schemas import RECORDS, schema_text
from pipeline.workflow.graph import Graph, runs_in


def snakemake(*arguments):
    return call(ROOT, "snakemake", *arguments)


@pytest.mark.parametrize(("options", "scale"), [((), "paper"), (("scale=demo",), "demo")])
def test_slurm_profile_selects_the_paper_scale_by_default(tmp_path, options, scale):
    config = ("--config", f"work={tmp_path}", *options)
    printed = require(snakemake("-n", "--profile", "slurm", "--nolock", *config, "--", "results/table2.csv"))
    assert set(re.findall(r"results/(paper|demo)/", printed)) == {scale}


def test_dry_run_reports_a_training_with_other_settings(tmp_path):
    project = real_project({"paper": "weighted", "work": str(tmp_path)})
    (run,) = (run for run in runs_in(Graph(project).closure([Table("weighted", "table3")])))
    beside = write_training_beside(project, run, label_smoothing=0.3)
    dry = ("-n", "results/table3.csv", "--nolock", "--config", "paper=weighted", f"work={tmp_path}")
    printed = require(snakemake(*dry))
    warning = f"{run.folder} exists with other settings: {beside.name}, which took 2 device hours; there, "
    assert f"{warning}training.label_smoothing is 0.3 (here 0.1)\n" in printed
    assert jobs(printed)["train"] == 1, "one table needs only its own runs"
    write_training(project, run, [2.0], [2.0])
    assert "other settings" not in require(snakemake(*dry))


def test_an_unknown_config_key_stops_with_one_message(tmp_path):
    done = snakemake("-n", "all", "--nolock", "--config", "sacle=demo")
    printed = done.stdout + done.stderr
    allowed = "cuda_graphs, licensed, mirror, paper, scale, seeds, tensorboard, work"
    assert done.returncode != 0 and f"sacle: unknown key; allowed: {allowed}" in printed and "Traceback" not in printed


def test_timing_jobs_take_every_place_of_their_gpu(tmp_path):
    config = ("--config", "scale=plateau", f"work={tmp_path}")
    targets = [str(tmp_path / "plateau" / name) for name in ("layer_times.json", "calibration.json")]
    shared = ("--resources", "gpus=2", "trainings_per_gpu=3")
    dry = ("snakemake", "-n", "-p", "--nolock", *shared, *config, "--", *targets)
    printed = require(call(ROOT, *dry, CUDA_VISIBLE_DEVICES=""))
    assert printed.count(" --trainings-per-gpu 3 --gpus 3 --alone --folder ") == 2


def test_slurm_profile_launches_exactly_the_launch_rules():
    submitted = {name for name, asks in profile()["set-resources"].items() if asks.get("launcher") == "slurm"}
    assert submitted == rules_with("LAUNCH") <= local_rules()


def test_slurm_profile_limits_local_rules_to_four_at_a_time():
    limited = {name for name, asks in profile()["set-resources"].items() if asks.get("here")}
    quick = {"all", "fetch", "view", "check_data", "plan", "cost"}
    assert limited == local_rules() - rules_with("LAUNCH") - quick
    assert profile()["resources"] == ["here=4"]


def test_every_table_of_the_configured_paper_has_a_short_target():
    paper = real_project({"scale": "smoke"}).papers["multichannel"]
    names = [*paper.tables, *paper.examples, *paper.transcripts, *paper.layer_costs, "claims"]
    assert {"table1", "table3", "readings"} <= set(names)
    targets = [f"results/{name}.csv" for name in names if name not in paper.tables or not paper.tables[name].scales]
    printed = require(snakemake("-n", "--cores", "1", "--config", "scale=smoke", "paper=multichannel", "--", *targets))
    assert all(f"as {target}" in printed for target in targets)


@pytest.mark.parametrize("name", RECORDS)
def test_schemas_are_those_of_the_records_and_closed(name):
    found = (ROOT / f"workflow/schemas/{name}.json").read_text(encoding="utf-8")
    assert found == schema_text(RECORDS[name]), "`python -m pipeline schemas` writes them anew"
    schema = json.loads(found)
    records = [schema, *schema.get("$defs", {}).values()]
    assert all(record["additionalProperties"] is False for record in records if "properties" in record)


def test_unknown_target_lists_known_ones_but_not_option_values(tmp_path):
    done = snakemake("-n", "--nolock", "--config", f"work={tmp_path}", "--", "results/demo/weighted/tabel2.csv")
    assert done.returncode != 0 and "did you mean 'table2'?" in done.stdout + done.stderr
    done = snakemake("--nolock", "--report", "results/page.html", "--config", f"work={tmp_path}", "--", "weighted")
    assert "unknown name" not in done.stdout + done.stderr


def test_a_training_is_given_the_gpus_of_its_scale(tmp_path):
    folder = copy_project(tmp_path)
    path = folder / "workflow/scales/paper.yaml"
    scale = yaml.safe_load(path.read_text())
    scale.setdefault("systems", {}).setdefault("attention/base", {})["gpus"] = 8
    path.write_text(yaml.safe_dump(scale, sort_keys=False))
    project = load_project(folder, {"scale": "paper"})
    systems = (("attention", "base", "wmt14-en-de"), ("coldfusion", "ctc", "source"))
    runs = [RunId(paper, system, project.stand_in(dataset), 1) for paper, system, dataset in systems]
    targets = [str(project.layout.path(Trained(run))) for run in runs]
    printed = require(call(folder, "snakemake", "-n", "-p", "--config", "scale=paper", "--", *targets))
    given = set(re.findall(r"--gpus (\d+) --run '?\S*runs/(\w+/\w+)/", printed))
    assert given == {("8", "attention/base"), ("1", "coldfusion/ctc")}


@pytest.mark.slow
def test_table_and_claims_are_rebuilt_only_when_inputs_change(tmp_path):
    """A paper with cited rows alone and a proved claim, so that nothing has to be trained."""
    folder = add_toy_paper(copy_project(tmp_path))
    (folder / "table1.csv").write_text("model,bleu,system,source\nTheirs,20.0,,cited\n")
    proof = "tests/core/test_files.py::test_atomic_write_reads_back_and_leaves_no_other_file"
    claim = {"kind": "test", "statement": "It is so.", "printed": "Table 1", "tests": [proof]}
    (folder / "claims.yaml").write_text(yaml.safe_dump({"scores": {}, "claims": {"one": claim}}))
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    reports = [f"results/smoke/toy/{name}.csv" for name in ("table1", "claims")]

    def written_anew(*config):
        done = call(tmp_path, "snakemake", "-n", "--config", "scale=smoke", *config, "--", *reports)
        return set(jobs(require(done))) & {"table", "claims"}

    require(call(tmp_path, "snakemake", "-j1", "--config", "scale=smoke", "--", *reports))
    assert written_anew() == set()
    assert written_anew("seeds=[2,5]") == {"table", "claims"}
    paper = folder / "paper.yaml"
    paper.write_text(paper.read_text().replace("BLEU of a toy.", "Another caption."))
    assert written_anew() == {"table"}


def test_every_result_of_a_report_has_one_label():
    """Snakemake makes a switch of two labels that halve a category; its page stays white if one of four is missing."""
    labels = re.findall(r"labels=\{(.*)\},$", TEXT, re.MULTILINE)
    assert len(labels) == TEXT.count("category=") > 4
    assert [label for label in labels if not re.fullmatch(r'"result": "[^"]+"', label)] == []


MODULE = f"""\
module reprise:
    snakefile: "{ROOT}/workflow/Snakefile"
    config: config


use rule * from reprise as papers_*
"""
SETTINGS = ("--cores", "1", "--nolock", "--config", "paper=weighted", "scale=smoke")


def dry_run(folder: Path, work: Path, *options: str) -> dict[str, int]:
    """Jobs by rule, without the one that only names the targets."""
    found = jobs(require(call(folder, "snakemake", "-n", "--quiet", "rules", *SETTINGS, f"work={work}", *options)))
    return {rule: number for rule, number in found.items() if rule not in ("all", "default", "total")}


def test_all_is_the_default_target(tmp_path):
    """Snakemake lists the rule of its target among the jobs, and `default` has the inputs of `all`."""
    config = ("--profile", "slurm", "--nolock", "--config", "scale=smoke", f"work={tmp_path}")
    command = ("snakemake", "-n", "--quiet", "rules", *config, "--snakefile")
    first, module = (jobs(require(call(ROOT, *command, f"{folder}Snakefile"))) for folder in ("", "workflow/"))
    assert first.pop("default") == module.pop("all") == 1 and first == module
    assert {"train", "claims", "site"} <= first.keys()


def test_another_workflow_can_use_it_as_a_module(tmp_path):
    target = "results/smoke/weighted/table2.csv"
    expected = dry_run(ROOT, tmp_path / "work", "--", target)
    (tmp_path / "Snakefile").write_text(MODULE)
    options = ("--configfile", str(ROOT / "config.yaml"), "--directory", str(ROOT), "--", target)
    found = dry_run(tmp_path, tmp_path / "work", *options)
    assert found == {f"papers_{rule}": number for rule, number in expected.items()}


def test_catalogue_finds_what_standard_usage_wants():
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert {"mandatory-flags", "software-stack-deployment"} <= usage.keys()
    assert (ROOT / "workflow/Snakefile").is_file() and (ROOT / "config/README.md").is_file()
