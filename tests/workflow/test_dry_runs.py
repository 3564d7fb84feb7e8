"""The workflow resolves: every paper, scale and profile, and no rule without a log or with an unknown key."""

import json
import re

import pytest
import yaml
from copied_project import ROOT, add_toy_paper, call, copy_project, jobs, require
from fabricated import write_training, write_training_beside
from real_project import real_project
from rule_files import local_rules, profile, rules_with

from pipeline.core.artifacts import RunId, Table, Trained
from pipeline.data.dataset import Dataset
from pipeline.papers.project import load_project
from pipeline.planning.schemas import RECORDS, schema_text
from pipeline.workflow.graph import Graph, runs_in

SCALES = sorted(path.stem for path in (ROOT / "workflow/scales").glob("*.yaml"))


def snakemake(*arguments):
    return call(ROOT, "snakemake", *arguments)


@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_a_dry_run_of_all_papers_resolves(scale, tmp_path):
    """Uses the profile for Slurm; tests/papers/test_graph.py has Snakemake resolve every scale without it."""
    config = ("--config", f"scale={scale}", f"work={tmp_path}")
    assert jobs(require(snakemake("-n", "all", "--profile", "slurm", "--nolock", *config)))["train"] > 0


def test_one_table_needs_only_its_own_runs(tmp_path):
    done = snakemake("-n", "results/table3.csv", "--nolock", "--config", "paper=weighted", f"work={tmp_path}")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = dict(line.split()[:2] for line in done.stdout.split("\n") if len(line.split()) == 2)
    assert counts["train"] == "1"


def test_dry_run_reports_a_training_with_other_settings(tmp_path):
    project = real_project({"paper": "weighted", "work": str(tmp_path)})
    (run,) = (run for run in runs_in(Graph(project).closure([Table("weighted", "table3")])))
    beside = write_training_beside(project, run, label_smoothing=0.3)
    dry = ("-n", "results/table3.csv", "--nolock", "--config", "paper=weighted", f"work={tmp_path}")
    said = f"{run.folder} exists with other settings: {beside.name}, which took 2 device hours; there, "
    assert f"{said}training.label_smoothing is 0.3 (here 0.1)\n" in require(snakemake(*dry))
    write_training(project, run, [2.0], [2.0])
    assert "other settings" not in require(snakemake(*dry))


def test_an_unknown_config_key_stops_with_one_message(tmp_path):
    done = snakemake("-n", "all", "--nolock", "--config", "sacle=demo")
    assert done.returncode != 0
    assert (
        "sacle: unknown key; allowed: cuda_graphs, licensed, mirror, paper, scale, seeds, tensorboard, work"
        in done.stdout + done.stderr
    )
    assert "Traceback" not in done.stdout + done.stderr


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


def test_fetch_target_makes_all_downloads_and_only_locally(tmp_path):
    def rules(*targets):
        config = ("--config", "scale=paper", f"work={tmp_path}", "licensed={}")
        done = snakemake("-n", "--nolock", *config, "--", *targets)
        return {rule: number for rule, number in jobs(require(done)).items() if rule in local_rules()}

    fetching = {"download"}
    wanted = {rule: number for rule, number in rules("all").items() if rule in fetching}
    assert rules("fetch") == wanted | {"fetch": 1}
    assert fetching <= local_rules()


def test_every_table_of_the_configured_paper_has_a_short_target():
    paper = real_project({"scale": "smoke"}).papers["multichannel"]
    names = [*paper.tables, *paper.examples, *paper.transcripts, *paper.layer_costs, "claims"]
    assert {"table1", "table3", "readings"} <= set(names)
    targets = [f"results/{name}.csv" for name in names if name not in paper.tables or not paper.tables[name].scales]
    done = snakemake("-n", "--cores", "1", "--config", "scale=smoke", "paper=multichannel", "--", *targets)
    assert done.returncode == 0 and all(f"as {target}" in done.stdout + done.stderr for target in targets)


@pytest.mark.parametrize("name", RECORDS)
def test_schemas_are_those_of_the_records(name):
    found = (ROOT / f"workflow/schemas/{name}.json").read_text(encoding="utf-8")
    assert found == schema_text(RECORDS[name]), "`python -m pipeline schemas` writes them anew"


@pytest.mark.parametrize("name", RECORDS)
def test_every_record_is_closed(name):
    schema = json.loads(schema_text(RECORDS[name]))
    records = [schema, *schema.get("$defs", {}).values()]
    assert all(record["additionalProperties"] is False for record in records if "properties" in record)


def test_every_dataset_a_scale_names_exists_and_is_valid():
    for scale in SCALES:
        project = real_project({"scale": scale})
        for name in project.scale.datasets:
            assert project.stand_in(name)
    assert Dataset is RECORDS["dataset"]


def test_unknown_target_lists_known_ones_but_not_option_values(tmp_path):
    done = snakemake("-n", "--nolock", "--config", f"work={tmp_path}", "--", "results/demo/weighted/tabel2.csv")
    assert done.returncode != 0 and "did you mean 'table2'?" in done.stdout + done.stderr
    done = snakemake("--nolock", "--report", "results/page.html", "--config", f"work={tmp_path}", "--", "weighted")
    assert "unknown name" not in done.stdout + done.stderr


def edges(dot):
    """Return the dependencies of each job of a DAG in Graphviz's language, with jobs as (rule, system, seed)."""
    labels = dict(re.findall(r'(\d+)\[label = "(.*?)"', dot))
    waits = {
        number: [before for before, after in re.findall(r"(\d+) -> (\d+)", dot) if after == number] for number in labels
    }

    def wildcards(number):
        """Return a job's wildcards; the label leaves out those that it shares with a job before it."""
        found = dict(part.split(": ") for part in labels[number].split("\\n")[1:] if ": " in part)
        for before in waits[number]:
            found = wildcards(before) | found
        return found

    def name(number):
        found = wildcards(number)
        return labels[number].split("\\n")[0], found.get("system"), found.get("seed")

    return {name(number): {name(before) for before in waits[number]} for number in labels}


def test_fused_training_depends_on_the_lm_of_its_seed(tmp_path):
    settings = {"scale": "smoke", "work": str(tmp_path), "seeds": [3, 7], "licensed": {}}
    layout = real_project(settings).layout
    targets = [
        str(layout.path(Trained(RunId("coldfusion", system, "grammar-smoke-speech-source", seed))))
        for system in ("CF4", "DF3")
        for seed in (3, 7)
    ]
    config = [f"{key}={json.dumps(value)}" for key, value in settings.items() if key != "work"]
    done = snakemake("--dag", "--nolock", "--config", *config, f"work={tmp_path}", "--", *targets)
    assert done.returncode == 0, done.stderr
    found = edges(done.stdout)
    for seed in ("3", "7"):
        lm, start = ("train", "lm-full", seed), ("train", "attention-source", seed)
        features = ("features", None, None)
        assert found["train", "CF4", seed] == {features, lm}
        assert found["train", "DF3", seed] == {features, lm, start}
        assert found[start] == found[lm] == {features}


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
    done = call(folder, "snakemake", "-n", "-p", "--config", "scale=paper", "--", *targets)
    assert done.returncode == 0, done.stdout + done.stderr
    given = dict(re.findall(r"--gpus (\d+) --run '?\S*runs/(\w+/\w+)/", done.stdout))
    assert {run: int(gpus) for gpus, run in given.items()} == {"attention/base": 8, "coldfusion/ctc": 1}


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
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    labels = re.findall(r"labels=\{(.*)\},$", rules, re.MULTILINE)
    assert len(labels) == rules.count("category=") > 4
    assert [label for label in labels if not re.fullmatch(r'"result": "[^"]+"', label)] == []
