"""Reports made by their stages, at scale demo."""

import csv
from pathlib import Path

from pipeline.__main__ import main
from pipeline.core.provenance import ROOT


def report_command(stage: str, paper: str, name: str, out: Path, *options: str) -> list[str]:
    """Return the words of a stage that writes a figure or a table, with the work folder beside it."""
    named = ["--paper", paper, "--figure" if stage == "figure" else "--table", name, "--out", str(out)]
    return [stage, "--root", str(ROOT), *named, "--set", f"work={out.parent}", "--set", "scale=demo", *options]


def make_report(stage: str, paper: str, name: str, out: Path, *options: str) -> list[dict[str, str]]:
    assert main(report_command(stage, paper, name, out, *options)) == 0
    return list(csv.DictReader(out.with_suffix(".csv").open(encoding="utf-8")))
