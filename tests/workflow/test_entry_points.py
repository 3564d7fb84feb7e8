"""The workflow starts from its own folder, from `workflow/Snakefile`, and as a module of another workflow."""

from pathlib import Path

import yaml
from copied_project import ROOT, call, jobs, require

MODULE = """\
module reprise:
    snakefile: "{root}/workflow/Snakefile"
    config: config


use rule * from reprise{renamed}
"""
SETTINGS = ("--cores", "1", "--nolock", "--config", "paper=weighted", "scale=smoke")


def dry_run(folder: Path, work: Path, *options: str) -> dict[str, int]:
    """Jobs by rule, without the one that only names the targets."""
    found = jobs(require(call(folder, "snakemake", "-n", "--quiet", "rules", *SETTINGS, f"work={work}", *options)))
    return {rule: number for rule, number in found.items() if rule not in ("all", "default", "total")}


def test_all_is_the_default_target(tmp_path):
    everything, *default = (
        dry_run(ROOT, tmp_path, *options)
        for options in (("--", "all"), ("--snakefile", "Snakefile"), ("--snakefile", "workflow/Snakefile"))
    )
    assert default == [everything, everything]
    assert {"train", "claims", "site"} <= everything.keys()


def test_another_workflow_can_use_it_as_a_module(tmp_path):
    target = "results/smoke/weighted/table2.csv"
    expected = dry_run(ROOT, tmp_path / "work", "--", target)
    for prefix, renamed in (("", ""), ("papers_", " as papers_*")):
        (tmp_path / "Snakefile").write_text(MODULE.format(root=ROOT, renamed=renamed))
        options = ("--directory", str(ROOT), "--", target)
        found = dry_run(tmp_path, tmp_path / "work", "--configfile", str(ROOT / "config.yaml"), *options)
        assert found == {f"{prefix}{rule}": number for rule, number in expected.items()}


def test_another_working_directory_is_refused(tmp_path):
    done = call(tmp_path, "snakemake", "-n", "--snakefile", str(ROOT / "workflow/Snakefile"), *SETTINGS)
    assert done.returncode != 0 and "add --directory" in done.stdout + done.stderr


def test_catalogue_finds_what_standard_usage_wants():
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert {"mandatory-flags", "software-stack-deployment"} <= usage.keys()
    assert (ROOT / "workflow/Snakefile").is_file() and (ROOT / "config/README.md").is_file()
