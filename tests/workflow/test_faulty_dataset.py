"""One dataset file with a fault, among the others."""

import pytest
from copied_project import call, copy_project, require

FAULT = "workflow/datasets/grammar-smoke-zh-en.yaml: grammar.oops: unknown key"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = copy_project(tmp_path_factory.mktemp("faulty"))
    with (root / "workflow/datasets/grammar-smoke-zh-en.yaml").open("a") as file:
        file.write("oops: 1\n")
    return root


def dry_run(root, paper):
    return call(root, "snakemake", "-n", "--quiet", "rules", "--config", "scale=smoke", "--", paper)


def test_targets_without_the_faulty_dataset_are_made(root):
    assert f"{FAULT}" in require(dry_run(root, "weighted"))


def test_targets_with_the_faulty_dataset_stop_with_it(root):
    done = dry_run(root, "multichannel")
    assert done.returncode == 1
    assert FAULT in done.stdout + done.stderr
