"""The section "How to" of CONTRIBUTING, followed to the letter in a copy of the project."""

import json
import re

import pytest
import yaml
from copied_project import ROOT, TOY_TABLE, add_toy_paper, call, copy_project, jobs, require

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TOY = ["--config", "scale=smoke", "--", "toy"]


@pytest.fixture
def root(tmp_path):
    """A copy of the project with a paper of one system and one table."""
    add_toy_paper(copy_project(tmp_path))
    return tmp_path


def trained(output: str) -> set[str]:
    """The trainings of a dry run, as system on dataset."""
    return set(re.findall(r"train: (\S+ on [\w-]+), seed", output))


def edit(path, change) -> None:
    """Change a YAML file."""
    value = yaml.safe_load(path.read_text())
    change(value)
    path.write_text(yaml.safe_dump(value, sort_keys=False))


def test_a_new_paper_is_a_folder(root):
    output = require(call(root, "snakemake", "-n", *TOY))
    assert trained(output) == {"toy/base on grammar-smoke-en-de"} and jobs(output)["table"] == 1


def test_a_new_row_is_a_system_and_a_line_of_the_table(root):
    folder = root / "workflow/papers/toy"
    narrow = {"base": "base", "description": "half the width", "model": {"d_ff": 1024}}
    edit(folder / "paper.yaml", lambda paper: paper["systems"].update(narrow=narrow))
    (folder / "table1.csv").write_text(TOY_TABLE + "Narrow,19.0,narrow,ours-to-run\n")
    output = require(call(root, "snakemake", "-n", *TOY))
    assert trained(output) == {f"toy/{system} on grammar-smoke-en-de" for system in ("base", "narrow")}


def test_the_page_of_a_changed_system_works_as_printed(tmp_path):
    page = (ROOT / "docs/how-to/change-a-system.md").read_text(encoding="utf-8")
    folder = copy_project(tmp_path) / "workflow/papers/weighted"
    (added,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    edit(folder / "paper.yaml", lambda paper: paper["systems"].update(yaml.safe_load(added)))
    (line,) = re.findall(r"`([^`]*,ours-to-run,[^`]*)`", page)
    with open(folder / "ablations.csv", "a", encoding="utf-8") as table:
        table.write(f"{line}\n")
    start = {"base": "C", "description": "another start", "initial": re.search(r"`initial: (\S+)`", page)[1]}
    edit(folder / "paper.yaml", lambda paper: paper["systems"].update({"C-start": start}))
    with open(folder / "ablations.csv", "a", encoding="utf-8") as table:
        table.write(line.replace("C-dropout", "C-start") + "\n")
    output = require(call(tmp_path, "snakemake", "-n", "results/demo/weighted/ablations.csv"))
    assert {f"weighted/{name} on grammar-en-de" for name in ("C", "C-dropout", "C-start")} <= trained(output)


def test_a_new_column_is_a_name_under_the_cells_of_a_table(root):
    cells = {
        "parameters": {"kind": "parameters", "dataset": "wmt14-en-de"},
        "ppl": {"metric": "perplexity", "dataset": "wmt14-en-de", "split": "dev", "decoding": "final"},
    }
    edit(root / "workflow/papers/toy/paper.yaml", lambda paper: paper["tables"]["table1"]["cells"].update(cells))
    output = require(call(root, "snakemake", "-n", "-p", *TOY))
    assert "perplexities/final/dev.json" in re.search(r"-- decode .*--plan '(.*?)'", output)[1]


def test_a_new_figure_is_a_name_with_its_kind(root):
    figure = {"kind": "dev_curves", "caption": "Losses.", "dataset": "wmt14-en-de", "systems": ["base"]}
    edit(root / "workflow/papers/toy/paper.yaml", lambda paper: paper.update(figures={"figure1": figure}))
    assert jobs(require(call(root, "snakemake", "-n", *TOY)))["figure"] == 1


def test_a_new_decoding_is_a_base_and_what_differs_from_it(root):
    def change(paper):
        paper["decodings"]["wide"] = {"base": "final", "beam_size": 9}
        paper["tables"]["table1"]["cells"]["bleu"]["decoding"] = "wide"

    edit(root / "workflow/papers/toy/paper.yaml", change)
    output = require(call(root, "snakemake", "-n", "-p", *TOY))
    (decoding,) = re.findall(r"-- decode .*--plan '(.*?)'", output)
    settings = json.loads(decoding)["settings"]
    assert (settings["beam_size"], settings["length_penalty"]) == (9, 0.6)


def test_a_new_dataset_is_a_file_that_a_paper_names(root):
    datasets = root / "workflow/datasets"
    (datasets / "mine.yaml").write_text((datasets / "grammar-smoke-en-de.yaml").read_text())
    cell = {"printed": "bleu", "metric": "sacrebleu", "dataset": "mine", "split": "test", "decoding": "final"}
    edit(root / "workflow/papers/toy/paper.yaml", lambda paper: paper["tables"]["table1"]["cells"].update(bleu=cell))
    assert trained(require(call(root, "snakemake", "-n", *TOY))) == {"toy/base on mine"}


def test_new_dataset_describes_downloads_inline_or_in_files(root):
    path = root / "workflow/datasets/fsdd.yaml"
    origin = root / "workflow/files/fsdd.yaml"
    described = yaml.safe_load(origin.read_text())
    edit(path, lambda dataset: dataset.update(sources=described["files"], licence=described["licence"]))
    origin.unlink()
    require(call(root, "snakemake", "-n", *TOY))
    edit(path, lambda dataset: dataset.update(sources={}))
    message = "fsdd.yaml: splits name fsdd.tar.gz, but it is neither under sources nor in workflow/files"
    assert message in require(call(root, "snakemake", "-n", *TOY))  # a warning where nothing reads it
    done = call(root, "snakemake", "-n", "--config", "scale=small", "--", "results/small/coldfusion/recordings.csv")
    assert done.returncode != 0 and message in (done.stdout + done.stderr).partition("InputFunctionException")[2]


def test_every_how_to_is_done_here_or_where_its_own_tests_are():
    """A new one has to be added here with the test that does it."""
    done = {
        "Add a paper": "test_a_new_paper_is_a_folder",
        "Add a row": "test_a_new_row_is_a_system_and_a_line_of_the_table",
        "Add a reading": "tests/papers/test_readings.py",
        "Add a decoding": "test_a_new_decoding_is_a_base_and_what_differs_from_it",
        "Add a dataset": "test_a_new_dataset_is_a_file_that_a_paper_names",
        "Add a claim": "tests/report",
        "Add a column": "test_a_new_column_is_a_name_under_the_cells_of_a_table",
        "Add a figure": "test_a_new_figure_is_a_name_with_its_kind",
        "Add a metric": "tests/metrics",
        "Add a kind of claim, figure or column": "tests/analysis/test_toy_kinds.py",
        "Add an architecture": "tests/models",
        "Bring speech of your own": "tests/workflow/test_measured_pages.py",
        "Fuse a language model": "tests/papers/test_coldfusion.py",
    }
    section = PAGE.split("## How to")[1].split("\n## ")[0]
    assert set(re.findall(r"^- \*\*(.+?)\*\*", section, re.MULTILINE)) == set(done)
    assert all(test in globals() or (ROOT / test).exists() for test in done.values())
