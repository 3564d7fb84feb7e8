"""The documentation of speech names the datasets that the scales read."""

import re
from pathlib import Path

from pipeline.papers.project import load_project

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/speech.md").read_text(encoding="utf-8")
ROLES = ("source", "target", "source-text", "target-text", "full-text")


def listed(cell: str) -> list[str]:
    """Names of datasets in a cell; `a-{b,c}` stands for several."""
    names = []
    for name in re.findall(r"`([^`]+)`", cell):
        stem, _, several = name.partition("{")
        names += [stem + ending for ending in several.rstrip("}").split(",")]
    return names


def test_the_table_names_the_datasets_that_each_scale_reads():
    table = next(part for part in PAGE.split("\n\n") if part.startswith("| scale |"))
    rows = {cells[0]: cells[1:] for cells in re.findall(r"^\| `(\w+)` \|(.*)\|(.*)\|(.*)\|$", table, re.MULTILINE)}
    assert set(rows) == {"demo", "small", "paper"}
    for scale, cells in rows.items():
        project = load_project(ROOT, {"scale": scale, "licensed": {}})
        assert [name for cell in cells for name in listed(cell)] == [project.stand_in(role) for role in ROLES]


def test_every_folder_of_the_users_own_is_of_a_dataset():
    packages = re.findall(r"^ +(own-[\w-]+): /", PAGE, re.MULTILINE)
    datasets = load_project(ROOT).dataset_records
    assert packages and all(package in datasets[package].packages for package in packages)
