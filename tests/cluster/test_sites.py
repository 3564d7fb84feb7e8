"""Options of a site and resources of a job reach Slurm as written, and impossible ones are refused at once."""

import getpass
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import yte
from copied_project import ROOT, call, copy_project, require
from fabricated import touch
from real_project import real_project
from snakemake.cli import get_profile_dir
from snakemake.resources import Resource
from snakemake_executor_plugin_slurm.job_status_query import query_job_status_squeue
from submitit.slurm.slurm import _make_sbatch_string

from pipeline.cluster.resources import Resources, load_site
from pipeline.core.artifacts import Trained
from pipeline.core.errors import UserError
from pipeline.planning.devices import require_bfloat16
from pipeline.stages import PIPELINE
from pipeline.workflow.graph import Graph, runs_in

SITES = sorted((ROOT / "slurm/sites").glob("*.yaml"))
BUILT = ("Dockerfile", "apptainer.def")


@pytest.fixture
def project(tmp_path) -> Path:
    """A copy whose slurm/ may be changed."""
    root = copy_project(tmp_path)
    (root / "slurm").unlink()
    shutil.copytree(ROOT / "slurm", root / "slurm")
    return root


@pytest.mark.parametrize("order", [sorted, lambda names: sorted(names, reverse=True)], ids=["a to z", "z to a"])
@pytest.mark.parametrize("folder", ["slurm", "profiles/default"])
def test_snakemake_reads_the_profile_in_any_order_of_files(folder, order, monkeypatch):
    """If a folder had a `config.yaml` as well, the first one listed would be read."""
    listed = os.listdir
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(os, "listdir", lambda path: order(listed(path)))
    assert get_profile_dir(folder) == (Path(folder), Path(folder, "profile.yaml"))


def test_slurm_profile_runs_the_code_of_its_own_clone(project):
    """The environment of another clone has that clone's code installed."""
    (project / "pipeline").unlink()
    touch(project / "pipeline/__init__.py", "raise SystemExit('the code of this clone')")
    command = (Path(sys.executable).with_name("snakemake"), "--profile", "slurm", "-n", "attention")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr.rstrip().endswith("the code of this clone")


def test_user_without_a_name_gets_one_from_the_profile(monkeypatch):
    """A container may run as any number; Snakemake asks `getpass` for the name."""
    names = ("LOGNAME", "USER", "LNAME", "USERNAME")
    monkeypatch.setattr(os, "environ", {name: value for name, value in os.environ.items() if name not in names})
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 5)
    monkeypatch.chdir(ROOT)
    yte.process_yaml(Path("profiles/default/profile.yaml").read_text())
    assert getpass.getuser() == str(2**31 - 5)


def test_the_simplest_site_edits_one_line(tmp_path):
    lines = [line for line in (ROOT / "slurm/site.yaml").read_text().split("\n") if line and not line.startswith("#")]
    assert len(lines) == 1 and lines[0].startswith("partition: ")
    (tmp_path / "site.yaml").write_text("partition: gpu\n")
    site = load_site(tmp_path / "site.yaml")
    assert site.options == "--partition=gpu" and site.jobs <= 50


@pytest.mark.slow
@pytest.mark.parametrize("path", SITES, ids=[path.stem for path in SITES])
def test_ready_site_requests_its_own_gpu_type(path, project, monkeypatch):
    """Checks the commands of a dry run, and the requests of the profile for all other jobs."""
    shutil.copy(path, project / "slurm/site.yaml")
    site, target = load_site(path), "results/paper/weighted/table3.csv"
    said = require(call(project, "snakemake", "--profile", "slurm", "-n", "-p", "--nolock", "--", target))
    commands = [line for line in said.split("\n") if " launch " in line and " --run " in line]
    asked = f"--launcher slurm --sbatch={shlex.quote(site.options)} "
    assert commands and all(asked in command and "--gpus 1 " in command for command in commands)
    assert f"--partition={site.partition} " in site.options and site.options.endswith(f"--gres={site.gres}")
    monkeypatch.chdir(project)
    others = default_resources()
    assert others["slurm_partition"] == (site.cpu_partition or site.partition)
    assert others["slurm_account"] == (site.account or "")


def default_resources() -> dict[str, object]:
    """Resources of a job that names none, by the profile and site of the working folder, as Snakemake reads them."""
    given = yte.process_yaml(Path("slurm/profile.yaml").read_text())["default-resources"]
    read = {name: Resource.from_cli_expression(name, str(text), with_threads_arg=False) for name, text in given.items()}
    known = {"input": [], "attempt": 1, "rulename": "prepare", "async_run": None}
    return {name: resource.evaluate(None, **known).value for name, resource in read.items()}


@pytest.mark.parametrize("name", ["all", "open", "input", "1-2", "gpu", "abc@v100"])
def test_partition_and_account_reach_the_executor_as_written(name, tmp_path, monkeypatch):
    """Snakemake evaluates resources as Python, in which the first four are no strings."""
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm/site.yaml").write_text(f"partition: {name}\naccount: {name}\n")
    shutil.copy(ROOT / "slurm/profile.yaml", tmp_path / "slurm")
    monkeypatch.chdir(tmp_path)
    found = default_resources()
    assert (found["slurm_partition"], found["slurm_account"]) == (name, name)


def test_profile_shows_hidden_partitions_to_the_executor(monkeypatch):
    """It waits for ever for a job that its squeue does not list."""
    monkeypatch.setattr(os, "environ", {name: value for name, value in os.environ.items() if name != "SQUEUE_ALL"})
    monkeypatch.chdir(ROOT)
    default_resources()
    assert os.environ["SQUEUE_ALL"] == "1" and not query_job_status_squeue("run").count("--all")


@pytest.mark.slow
def test_unknown_key_of_a_site_is_named(project):
    (project / "slurm/site.yaml").write_text("partiton: gpu\n")
    done = call(project, "snakemake", "--profile", "slurm", "-n", "--nolock", "--", "all")
    said = done.stdout + done.stderr
    assert done.returncode != 0 and "slurm/site.yaml: partiton: unknown key" in said and "partition" in said


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sbatch: -C a100", "sbatch option '-C': write it as --name or --name=value"),
        ("sbatch: --comment='a", "No closing quotation"),
        ("sbatch: --partition=other", "sbatch option '--partition': is repeated"),
        ("sbatch: --clusters=inter", "'--clusters': run `export SLURM_CLUSTERS=…` instead"),
        ("sbatch: --time=1-0", "sbatch option '--time': set `runtime` in workflow/scales instead"),
        ("sbatch: --job-name=mine", "sbatch option '--job-name': launchers need it to find, follow and stop jobs"),
        ("sbatch: --job_name=mine", "sbatch option '--job_name': launchers need it"),
        ("sbatch: --job-nam=mine", "sbatch option '--job-nam': is short for --job-name; write the whole name"),
        ("sbatch: --part=other", "sbatch option '--part': is short for --partition; write the whole name"),
        ("sbatch: --=x", "sbatch option '--=x': write it as --name or --name=value"),
        ("sbatch: --cluster=b", "sbatch option '--cluster': run `export SLURM_CLUSTERS=…` instead"),
        ("sbatch: --requeue --no-requeue", "sbatch options --requeue and --no-requeue: contradict each other"),
        ("sbatch: --mem=1G --mem-per-cpu=1G", "sbatch options --mem and --mem-per-cpu: Slurm accepts one of them"),
        ("sbatch: --gres=", "--gres=: name one kind of GPU"),
        ("gres: tmpdisk:100", "--gres=tmpdisk:100: name one kind of GPU"),
        ("gres: gpu:a100:four:4", "--gres=gpu:a100:four:4: name one kind of GPU"),
        ("gres: gpu:a100:4,gpu:v100:4", "name one kind of GPU, as gpu:TYPE:NUMBER or gpu:NUMBER"),
    ],
)
def test_load_site_refuses_what_launchers_would_refuse(tmp_path, line, told):
    (tmp_path / "site.yaml").write_text(f"partition: gpu\n{line}\n")
    with pytest.raises(UserError, match=rf"site\.yaml: .*{re.escape(told)}"):
        load_site(tmp_path / "site.yaml")


@pytest.mark.parametrize("card", ["v100:4", "tesla_p100-pcie-16gb", "k80,tmpdisk:100"])
def test_bf16_training_refuses_gpus_without_bfloat16(card):
    asked = f"--partition=p --gres=gpu:{card}"
    fault = r"weighted/B: .*precision is bf16, which a \w+ .* does not have; request other GPUs"
    with pytest.raises(UserError, match=fault):
        require_bfloat16("weighted/B", "bf16", asked)
    require_bfloat16("weighted/B", "fp32", asked)
    require_bfloat16("weighted/B", "bf16", "--gres=gpu:a100:8")
    require_bfloat16("weighted/B", "bf16", "--partition=p")


@pytest.mark.slow
def test_gpus_without_bfloat16_stop_the_workflow_before_any_job(project):
    """A dry run, too; not where processors train."""
    (project / "slurm/site.yaml").write_text("partition: gpu\ngres: gpu:v100:4\n")
    command = ("snakemake", "--profile", "slurm", "--nolock")
    for options in (("-n",), ()):
        done = call(project, *command, *options, "--", "results/paper/weighted/table3.csv")
        assert done.returncode and "its precision is bf16, which a V100 (--gres=gpu:v100)" in done.stdout + done.stderr
    assert not (project / "work").exists()
    graph = Graph(real_project({"scale": "paper"}))
    for run in runs_in(graph.closure(graph.reports(["weighted"]))):  # what is there needs no GPU any more
        touch(project / graph.project.layout.path(Trained(run)))
    require(call(project, *command, "-n", "--", "results/paper/weighted/table3.csv"))
    require(call(project, *command, "-n", "--config", "scale=demo", "--", "results/demo/weighted/table3.csv"))


def test_images_are_made_by_the_steps_of_continuous_integration():
    ci = (ROOT / ".ci/run").read_text()
    packages = re.search(r"install -y -qq --no-install-recommends (make [\w -]+?) >", ci)[1]
    assert "\nmake env\n" in ci
    for name in BUILT:
        text = (ROOT / name).read_text().replace("\\\n", " ")
        commands = [part.strip() for line in text.split("\n") for part in line.removeprefix("RUN ").split("&&")]
        install = f"apt-get install -y -qq --no-install-recommends {packages} >/dev/null"
        order = [commands.index(step) for step in ("apt-get update -qq", install, "make env")]
        assert order == sorted(order), name
        assert {"FROM debian:12-slim", "From: debian:12-slim"} & set(commands)
        assert "/reprise/.venv/bin:$PATH" in text


def test_images_leave_out_what_git_leaves_out_but_its_history():
    left_out = (ROOT / ".dockerignore").read_text().split()
    ignored = {line.strip("/*") for line in (ROOT / ".gitignore").read_text().split()}
    assert {name.strip("/*") for name in left_out} <= ignored and ".git" not in left_out
    listed = subprocess.run(["git", "ls-files", *left_out], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(listed.stdout.split()) <= {"results/README.md"}


def test_apptainer_copies_what_docker_copies(tmp_path, monkeypatch):
    """Run the section that copies, on names that are left out at the top alone."""
    kept = (".git/HEAD", "Makefile", "my notes.txt", "pipeline/data/languages.py", "docs/work/page.md")
    for name in (*kept, ".venv/ready", ".venv-oldest/ready", "work/demo/run", "data/own", ".snakemake/log"):
        touch(tmp_path / "clone" / name)
    shutil.copy(ROOT / ".dockerignore", tmp_path / "clone")
    (tmp_path / "image").mkdir()
    section = re.search(r"^%setup\n(.*?)\n\n%", (ROOT / "apptainer.def").read_text(), re.MULTILINE | re.DOTALL)[1]
    monkeypatch.setenv("APPTAINER_ROOTFS", str(tmp_path / "image"))
    subprocess.run(["sh", "-e", "-c", section], cwd=tmp_path / "clone", check=True)
    copied = {
        str(path.relative_to(tmp_path / "image/reprise")) for path in tmp_path.glob("image/**/*") if path.is_file()
    }
    assert copied == {*kept, ".dockerignore"}


def resources(*options: str) -> Resources:
    args = PIPELINE.parse(["launch", "--run", "x", *options])
    return Resources(**{field.name: getattr(args, field.name) for field in fields(Resources)})


def test_gpus_are_spread_over_nodes_with_one_task_each():
    asked = resources("--gpus", "8", "--nodes", "2").as_submitit()
    assert (asked["nodes"], asked["ntasks_per_node"], asked["gpus_per_node"]) == (2, 4, 4)
    assert resources().as_submitit()["gpus_per_node"] is None


@pytest.mark.parametrize(
    ("gres", "gpus", "nodes", "asked", "tasks"),
    [
        ("gpu:a100:8", "8", "1", "gpu:a100:8", 8),
        ("gpu:a100:8", "1", "1", "gpu:a100:1", 1),
        ("gpu:a100:8", "0", "1", None, 1),
        ("gpu:h100:4", "8", "2", "gpu:h100:4", 4),
        ("gpu:h100", "8", "1", "gpu:h100:8", 8),
        ("gpu:4", "8", "1", "gpu:4", 4),
        ("gpu:1g.10gb:7", "1", "1", "gpu:1g.10gb:1", 1),
        ("nvme:100,gpu:v100:1,craynetwork:0", "8", "1", "gpu:v100:1,nvme:100,craynetwork:0", 1),
        ("gpu:a100:4(S:0,2),tmpdisk:100G", "2", "1", "gpu:a100:2,tmpdisk:100G", 2),
        ("gpu,gpu_mem:40G", "2", "1", "gpu:2,gpu_mem:40G", 2),
        ("gpu:a100:4,tmpdisk:100", "0", "1", "tmpdisk:100", 1),
    ],
)
def test_gpus_have_the_site_type_and_other_gres_stay(gres, gpus, nodes, asked, tasks):
    """A node has at most its number of GPUs."""
    given = resources("--gpus", gpus, "--nodes", nodes, f"--sbatch=--partition=p --gres={gres}").as_submitit()
    assert (given["additional_parameters"].get("gres"), given["gpus_per_node"]) == (asked, None)
    assert (given["ntasks_per_node"], given["nodes"]) == (tasks, int(nodes))


@pytest.mark.parametrize("options", [("--gpus", "3", "--nodes", "2"), ("--tasks", "3", "--nodes", "2")])
def test_uneven_spread_is_refused(options):
    with pytest.raises(UserError, match="can't be spread evenly"):
        resources(*options)


@pytest.mark.parametrize(("minutes", "warning_s"), [(1, 10), (6, 60), (18, 180), (1440, 180)])
def test_warning_leaves_most_of_a_short_limit(minutes, warning_s):
    assert resources("--runtime-min", str(minutes)).warning_s == warning_s


def test_further_options_reach_sbatch():
    asked = resources("--sbatch=--qos=long --exclusive --comment='two words'").as_submitit()
    wanted = {"requeue": True, "qos": "long", "exclusive": True, "comment": "two words"}
    assert asked["additional_parameters"] == wanted


def submission(*options: str) -> list[str]:
    """Return the options in the script that submitit gives to sbatch."""
    script = _make_sbatch_string("true", "logs", **resources(*options).as_submitit())
    return re.findall(r"^#SBATCH --(\S+)$", script, re.MULTILINE)


@pytest.mark.parametrize("option", ["mem=0", "mem-per-cpu=2G", "mem-per-gpu=20G"])
def test_memory_that_a_site_names_replaces_ours(option):
    """sbatch refuses two of these options."""
    for given, expected in (("--qos=long", "mem=8000M"), (f"--{option}", option)):
        assert [each for each in submission(f"--sbatch={given}") if each.startswith("mem")] == [expected]


def test_a_site_may_forbid_to_requeue():
    assert "requeue" in submission() and "no-requeue" not in submission()
    asked = submission("--sbatch=--no-requeue")
    assert "no-requeue" in asked and "requeue" not in asked


def test_no_option_of_ours_reaches_sbatch_twice():
    """If a user writes it, too, it is refused or counts once."""
    ours = [option.partition("=")[0] for option in submission("--gpus", "1")]
    assert {"time", "mem", "job-name", "gpus-per-node", "output", "signal"} <= {*ours}
    for name in ours:
        try:
            asked = submission("--gpus", "1", f"--sbatch=--{name}=1")
        except UserError as refusal:
            assert f"sbatch option '--{name}': " in str(refusal)
        else:
            assert [option.partition("=")[0] for option in asked].count(name) == 1


@pytest.mark.parametrize("name", ["array", "chdir", "dependency", "gpus", "ntasks", "parsable", "quiet", "wait"])
def test_options_that_contradict_a_launcher_are_refused(name):
    with pytest.raises(UserError, match=f"^sbatch option '--{name}': .+"):
        resources(f"--sbatch=--qos=long --{name}=1")


def test_site_excludes_are_kept_beside_unfit_nodes():
    asked = resources("--sbatch=--partition=p --exclude=bad1,bad2").as_submitit(["n7", "n8"])
    assert asked["exclude"] == "bad1,bad2,n7,n8" and "exclude" not in asked["additional_parameters"]
    assert resources().as_submitit()["exclude"] is None
