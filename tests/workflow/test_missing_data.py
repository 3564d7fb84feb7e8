"""Missing data or GPUs, faulty dataset files, odd folder names and no network stop the workflow with the cause."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from copied_project import ROOT, add_toy_paper, call, copy_project, require, shrink
from real_project import real_project

from pipeline.core.artifacts import Encoded, RunId
from pipeline.core.errors import UserError
from pipeline.papers.project import load_project
from pipeline.workflow.targets import refuse_odd_folders

NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")


def snakemake(work: Path, scale: str, *targets: str, options=("-j1",), mirror: str = "null", **variables: str):
    """Run Snakemake for targets, without a network."""
    config = ("--config", f"scale={scale}", f"work={work}", f"mirror={mirror}", "licensed={}")
    words = ("snakemake", "--nolock", *options, *config, "--", *targets)
    return call(ROOT, *words, **NO_NETWORK, no_proxy="", **variables)


@pytest.fixture
def corpus(tmp_path) -> str:
    project = real_project({"scale": "small", "work": str(tmp_path), "licensed": {}, "mirror": None})
    return str(project.layout.path(Encoded("multi30k-en-de")))


def test_missing_files_are_listed_and_no_job_is_started(corpus, tmp_path):
    done = snakemake(tmp_path, "small", corpus)
    printed = done.stdout + done.stderr
    assert done.returncode != 0 and "multi30k-en-de: 6 files are missing: multi30k/train.en.gz" in printed
    assert "Traceback" not in printed and not list(tmp_path.rglob("*.log"))


def test_the_rule_says_what_is_missing_and_fails(tmp_path):
    done = snakemake(tmp_path, "small", "check_data")
    assert done.returncode != 0
    assert "licence: " in done.stdout and "missing   train.en.gz" in done.stdout


def test_present_data_is_found_without_network_and_cache_folder(tmp_path):
    done = snakemake(tmp_path, "smoke", "check_data", HOME="/dev/null", XDG_CACHE_HOME="")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "written by the grammar" in done.stdout and "0 B to fetch" in done.stdout


@pytest.mark.parametrize("limit", [None, 0, 1], ids=["no limit", "none is allowed", "one is allowed"])
def test_a_training_without_its_gpu_starts_no_job(tmp_path, limit):
    """If the user allows none, the training runs on the processor, so that only its data is missing."""
    project = real_project({"scale": "plateau", "work": str(tmp_path), "licensed": {}, "mirror": None})
    training = project.layout.run(RunId("weighted", "C", "multi30k-en-de", 1))
    options = ("-j1", *([] if limit is None else ["--resources", f"gpus={limit}"]))
    done = snakemake(tmp_path, "plateau", str(training / "done.json"), options=options, CUDA_VISIBLE_DEVICES="")
    printed = done.stdout + done.stderr
    assert done.returncode != 0 and not list(tmp_path.rglob("*.log"))
    refusal = "scale plateau: a job wants 1 GPU, but this machine has none; add `--resources gpus=0`"
    assert (refusal in printed) == (limit != 0)
    assert ("multi30k-en-de: 6 files are missing" in printed) == (limit == 0)


def test_no_command_shows_the_password_of_a_mirror(tmp_path, corpus):
    """Neither that of a download nor of a stage that takes all settings."""
    options = {"options": ("--dry-run", "--printshellcmds"), "mirror": "https://me:$SECRET@127.0.0.1:9/files"}
    printed = require(snakemake(tmp_path, "small", corpus, "check_data", **options, SECRET="s3cret"))
    assert printed.count("$REPRISE_MIRROR") >= 2 and "s3cret" not in printed


FAULT = "workflow/datasets/grammar-smoke-zh-en.yaml: grammar.oops: unknown key"


def test_faulty_dataset_stops_only_the_targets_that_need_it(tmp_path):
    root = copy_project(tmp_path)
    with (root / "workflow/datasets/grammar-smoke-zh-en.yaml").open("a") as file:
        file.write("oops: 1\n")
    dry_run = ("snakemake", "-n", "--quiet", "rules", "--config", "scale=smoke", "--")
    assert FAULT in require(call(root, *dry_run, "weighted"))
    done = call(root, *dry_run, "multichannel")
    assert done.returncode == 1 and FAULT in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["{scale}", "a{", "a\nb"])
def test_work_folder_with_snakemake_wildcards_is_refused(tmp_path, name):
    with pytest.raises(UserError, match=r"work: '.*: no rule can have a brace or a line break in a path"):
        refuse_odd_folders(real_project({"work": str(tmp_path / name)}))


@pytest.mark.parametrize("name", ["a b", "'\"`id`;&|#!%s", "[a]*?~é😀", "a,b=c:d\\e"])
def test_work_folder_with_other_signs_is_accepted(tmp_path, name):
    refuse_odd_folders(real_project({"work": str(tmp_path / name)}))


def test_project_folder_name_that_is_not_utf8_is_refused(tmp_path):
    root = tmp_path / "a\udcff"
    root.mkdir()
    project = load_project(copy_project(root))
    with pytest.raises(UserError, match=r"a\\udcff: its name has bytes that are not UTF-8; choose another place"):
        refuse_odd_folders(project)


def test_environment_in_a_folder_with_an_odd_name_is_found(tmp_path):
    """The environment is not active, and the folder's name has signs that both kinds of quotes leave special."""
    odd = tmp_path / "it's $HOME"
    odd.symlink_to(Path(sys.executable).parents[1])
    root = tmp_path / "clone"
    root.mkdir()
    copy_project(root)
    command = (odd / "bin/python", "-m", "snakemake", "--config", "scale=smoke", "--", "check_data")
    environment = os.environ | {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


ALONE = ("unshare", "--map-root-user", "--net")
"""Prefix of a command that runs without a network."""
CONNECT = "import socket; s = socket.create_server(('', 0)); socket.create_connection(s.getsockname())"


@pytest.fixture
def no_network():
    try:
        done = subprocess.run([*ALONE, sys.executable, "-c", CONNECT], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no `unshare` on this machine")
    if "unshare" in done.stderr:
        pytest.skip(f"no network namespace is allowed here: {done.stderr.strip()}")
    assert "Network is unreachable" in done.stderr, "not even this machine is to be reached from there"


@pytest.mark.slow
def test_toy_paper_is_built_without_a_network(no_network, tmp_path):
    add_toy_paper(shrink(copy_project(tmp_path)))
    call_there = "import sys; from copied_project import *; require(call(Path.cwd(), *sys.argv[1:]))"
    words = ("snakemake", "--cores", "2", "--config", "scale=smoke", "--", "toy")
    helpers = f"{ROOT}{os.pathsep}{ROOT / 'tests/helpers'}"
    require(call(tmp_path, *ALONE, "env", f"PYTHONPATH={helpers}", "python", "-c", call_there, *words))
    assert (tmp_path / "results/smoke/toy/table1.csv").exists()
