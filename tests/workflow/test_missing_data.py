"""The workflow stops before its first job when a file that it will read can't be had."""

from copied_project import ROOT, call

from pipeline.core.artifacts import Encoded
from pipeline.papers.project import load_project

NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")


def snakemake(*arguments, **variables):
    return call(ROOT, "snakemake", "--nolock", "-j1", *arguments, **NO_NETWORK, no_proxy="", **variables)


def test_missing_files_are_listed_and_no_job_is_started(tmp_path):
    project = load_project(ROOT, {"scale": "small", "work": str(tmp_path), "licensed": {}, "mirror": None})
    target = str(project.layout.path(Encoded("multi30k-en-de")))
    done = snakemake("--config", "scale=small", f"work={tmp_path}", "mirror=null", "--", target)
    assert done.returncode != 0
    assert "multi30k-en-de: 6 files are missing: multi30k/train.en.gz" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not list(tmp_path.rglob("*.log"))


def test_the_rule_says_what_is_missing_and_fails(tmp_path):
    done = snakemake("--config", "scale=small", f"work={tmp_path}", "mirror=null", "licensed={}", "--", "check_data")
    assert done.returncode != 0
    assert "licence: " in done.stdout and "missing   train.en.gz" in done.stdout


def test_data_already_present_is_found_without_fetching(tmp_path):
    done = snakemake("--config", "scale=smoke", f"work={tmp_path}", "mirror=null", "licensed={}", "--", "check_data")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "written by the grammar" in done.stdout and "0 B to fetch" in done.stdout


def test_no_command_shows_the_password_of_a_mirror(tmp_path):
    """Neither that of a download nor of a stage that takes all settings."""
    project = load_project(ROOT, {"scale": "small", "work": str(tmp_path), "licensed": {}, "mirror": None})
    targets = [str(project.layout.path(Encoded("multi30k-en-de"))), "check_data"]
    options = [
        "--config",
        "scale=small",
        f"work={tmp_path}",
        "mirror=https://me:$SECRET@127.0.0.1:9/files",
        "licensed={}",
    ]
    done = snakemake("--dry-run", "--printshellcmds", *options, "--", *targets, SECRET="s3cret")
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    assert printed.count("$REPRISE_MIRROR") >= 2 and "s3cret" not in printed


def test_a_home_without_a_cache_folder_is_no_obstacle(tmp_path):
    options = ["--config", "scale=smoke", f"work={tmp_path}", "mirror=null", "licensed={}"]
    done = snakemake("--dry-run", *options, "--", "check_data", HOME="/dev/null", XDG_CACHE_HOME="")
    assert done.returncode == 0, done.stdout + done.stderr
