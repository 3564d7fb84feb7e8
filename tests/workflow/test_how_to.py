"""The section "How to" of CONTRIBUTING, followed to the letter in a copy of the project, and a toy of each kind."""

import csv
import json
import re
import shutil
from textwrap import dedent

import pytest
import toy_kinds
import yaml
from copied_project import ROOT, TOY_TABLE, add_toy_paper, call, copy_project, jobs, require, shrink

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def trained(output: str) -> set[str]:
    """The trainings of a dry run, as system on dataset."""
    return set(re.findall(r"train: (\S+ on [\w-]+), seed", output))


def edit(path, change) -> None:
    value = yaml.safe_load(path.read_text())
    change(value)
    path.write_text(yaml.safe_dump(value, sort_keys=False))


def test_new_parts_of_a_paper_are_a_few_lines(tmp_path):
    """A row is a system and a line of the table; a decoding a base and what differs; a column and a figure a name."""
    folder, datasets = add_toy_paper(copy_project(tmp_path)), tmp_path / "workflow/datasets"
    (datasets / "mine.yaml").write_text((datasets / "grammar-smoke-en-de.yaml").read_text())
    (folder / "table1.csv").unlink()
    (folder / "rows.csv").write_text(TOY_TABLE + "Narrow,19.0,narrow,ours-to-run\n")

    def change(paper):
        narrow = {"base": "base", "description": "half the width", "model": {"d_ff": 1024}}
        paper["systems"]["narrow"] = narrow
        paper["decodings"]["wide"] = {"base": "final", "beam_size": 9}
        paper["tables"]["table1"]["printed"] = "rows.csv"
        cells = paper["tables"]["table1"]["cells"]
        cells["bleu"] |= {"dataset": "mine", "decoding": "wide"}
        cells["parameters"] = {"kind": "parameters", "dataset": "mine"}
        cells["ppl"] = {"metric": "perplexity", "dataset": "mine", "split": "dev", "decoding": "wide"}
        paper["figures"] = {"losses": {"kind": "dev_curves", "caption": "Losses.", "dataset": "mine"}}
        paper["figures"]["losses"]["systems"] = ["base", "narrow"]

    edit(folder / "paper.yaml", change)
    output = require(call(tmp_path, "snakemake", "-n", "-p", "--config", "scale=smoke", "--", "toy"))
    assert trained(output) == {f"toy/{system} on mine" for system in ("base", "narrow")} and jobs(output)["table"] == 1
    plans = re.findall(r"-- decode .*--plan '(.*?)'", output)
    assert len(plans) == 2
    for decoding in plans:
        settings = json.loads(decoding)["settings"]
        assert (settings["beam_size"], settings["length_penalty"]) == (9, 0.6)
        assert "perplexities/wide/dev.json" in decoding
    assert (jobs(output)["decode"], jobs(output)["figure"]) == (2, 1)


def test_the_page_of_a_changed_system_works_as_printed(tmp_path):
    page = (ROOT / "docs/how-to/change-a-system.md").read_text(encoding="utf-8")
    folder = copy_project(tmp_path) / "workflow/papers/weighted"
    (added,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    before, line, after = re.split(r"^(systems:.*\n)", (folder / "paper.yaml").read_text(), flags=re.MULTILINE)
    (folder / "paper.yaml").write_text(before + line + added + after)
    (line,) = re.findall(r"`([^`]*,ours-to-run,[^`]*)`", page)
    with open(folder / "ablations.csv", "a", encoding="utf-8") as table:
        table.write(f"{line}\n")
        table.write(line.replace("C-dropout", "C-start") + "\n")
    start = {"base": "C", "description": "another start", "initial": re.search(r"`initial: (\S+)`", page)[1]}
    edit(folder / "paper.yaml", lambda paper: paper["systems"].update({"C-start": start}))
    output = require(call(tmp_path, "snakemake", "-n", "results/demo/weighted/ablations.csv"))
    assert {f"weighted/{name} on grammar-en-de" for name in ("C", "C-dropout", "C-start")} <= trained(output)


def test_every_how_to_is_done_here_or_where_its_own_tests_are():
    """A new one has to be added here with the test that does it."""
    done = {
        "Add a paper": "test_new_parts_of_a_paper_are_a_few_lines",
        "Add a row": "test_new_parts_of_a_paper_are_a_few_lines",
        "Add a reading": "tests/papers/test_readings.py",
        "Add a decoding": "test_new_parts_of_a_paper_are_a_few_lines",
        "Add a dataset": "test_new_parts_of_a_paper_are_a_few_lines",
        "Add a claim": "tests/analysis/claims",
        "Add a column": "test_new_parts_of_a_paper_are_a_few_lines",
        "Add a figure": "test_new_parts_of_a_paper_are_a_few_lines",
        "Add a metric": "test_a_toy_of_each_kind_works_end_to_end",
        "Add a kind of claim, figure or column": "test_a_toy_of_each_kind_works_end_to_end",
        "Add an architecture": "test_toys_are_forecast_timed_described_and_checked",
        "Bring speech of your own": "tests/workflow/test_measured_pages.py",
        "Fuse a language model": "tests/papers/test_coldfusion.py",
    }
    section = PAGE.split("## How to")[1].split("\n## ")[0]
    assert set(re.findall(r"^- \*\*(.+?)\*\*", section, re.MULTILINE)) == set(done)
    assert all(test in globals() or (ROOT / test).exists() for test in done.values())


PAPER = {
    "workflow/papers/toy/paper.yaml": """
        title: Toys
        authors: Nobody
        year: 2026
        systems:
          bag:
            description: a bag of words
            model: {architecture: bag_of_words, width: 8}
            training: {max_steps: 100000, warmup_steps: 4000, tokens_per_update: 25000, validate_every: 1000,
                       checkpoint_every: 1000}
        decodings:
          final: {beam_size: 4, average_last: 1}
        tables:
          table1:
            caption: A toy of each kind.
            printed: table1.csv
            label: [model]
            cells:
              whole_lines: {metric: toy, dataset: wmt14-en-de, split: test, decoding: final, printed: whole_lines}
              letters: {kind: letters, times: 3, dataset: wmt14-en-de}
        figures:
          figure1: {kind: line, caption: A line., dataset: wmt14-en-de, system: bag}
    """,
    "workflow/papers/toy/table1.csv": """
        model,whole_lines,system,source
        Bag of words,,bag,ours-to-run
    """,
    "workflow/papers/toy/claims.yaml": """
        claims:
          trained: {kind: long_training, statement: It is., printed: "1", dataset: wmt14-en-de, system: bag, updates: 5}
    """,
}


@pytest.fixture(scope="module")
def toys_code(tmp_path_factory):
    """A copy of the project, code and all, with a toy of each kind and a paper that has one of each."""
    root = shrink(copy_project(tmp_path_factory.mktemp("toys")))
    (root / "pipeline").unlink()
    shutil.copytree(ROOT / "pipeline", root / "pipeline", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests/helpers/architectures/bag_of_words", root / "pipeline/models/bag_of_words")
    (root / "workflow/papers/toy").mkdir()
    toy_kinds.register(root)
    for name, content in PAPER.items():
        (root / name).write_text(dedent(content).lstrip(), encoding="utf-8")
    return root


@pytest.fixture
def toys(tmp_path, toys_code):
    """A copy whose code is that of `toys_code`, so that one warm server runs the commands of all."""
    shutil.copytree(toys_code, tmp_path, symlinks=True, ignore=shutil.ignore_patterns("pipeline"), dirs_exist_ok=True)
    (tmp_path / "pipeline").symlink_to(toys_code / "pipeline")
    return tmp_path


@pytest.mark.slow
def test_a_toy_of_each_kind_works_end_to_end(toys):
    figure = pipeline(toys, "figure", "--figure", "figure1", "--paper", "toy", "--out", "early.svg")
    assert "done.json: no such file; figure figure1 of toy needs it" in figure.stderr
    require(call(toys, "snakemake", "-j2", "--quiet", "rules", "--config", "scale=smoke", "--", "toy"))
    results = toys / "results/smoke/toy"
    (row,) = csv.DictReader((results / "table1.csv").open(encoding="utf-8"))
    assert 0 <= float(row["whole_lines_ours"]) <= 100 and row["letters_ours"] == str(3 * len("bag"))
    note = "- letters: letters, 3 times; `grammar-smoke-en-de` stands in for wmt14-en-de."
    assert note in (results / "table1.md").read_text(encoding="utf-8")
    (score,) = (toys / "work/smoke/runs/toy").glob("bag/*/*/scores/final/test.json")
    assert json.loads(score.read_text())["metrics"]["toy"]["signature"] == "whole-lines"
    (claim,) = csv.DictReader((results / "claims.csv").open(encoding="utf-8"))
    steps = json.loads((score.parents[2] / "done.json").read_text())["steps"]
    assert (claim["claim"], claim["verdict"], claim["ours"]) == ("trained", "not trained", f"{steps} updates")
    assert (results / "figure1.svg").exists()
    assert "It is straight." in (results / "figure1.md").read_text(encoding="utf-8")


def test_claim_of_a_toy_kind_needs_its_trainings(toys):
    """The dry run of the claims alone has the trainings that the kind names, and no other."""
    output = require(call(toys, "snakemake", "-n", "--config", "scale=smoke", "--", "results/smoke/toy/claims.csv"))
    assert trained(output) == {"toy/bag on grammar-smoke-en-de"}


def pipeline(root, stage: str, *arguments: str):
    return call(root, "python", "-m", "pipeline", stage, *arguments, "--set", "scale=smoke")


@pytest.mark.slow
def test_toys_are_forecast_timed_described_and_checked(toys):
    schemas = require(call(toys, "python", "-m", "pipeline", "schemas", "--out", "schemas"))
    assert "error" not in schemas
    known = "".join(path.read_text() for path in (toys / "schemas").glob("*.json"))
    assert all(name in known for name in ("LettersCell", "Line", "LongTraining", "BagOfWordsConfig"))
    (toys / "workflow/papers/toy").rename(toys / "workflow/papers/a-toy")  # the first paper is measured first
    settings = ("--set", "paper=a-toy", "--out")
    require(pipeline(toys, "calibrate", "--seconds", "0", "--threads", "1", *settings, "calibration.json"))
    (point,) = json.loads((toys / "calibration.json").read_text())["points"]
    assert point["family"] == "bag_of_words"
    require(pipeline(toys, "plan", "--calibration", "calibration.json", *settings, "plan.csv"))
    planned = {row["job"]: row for row in csv.DictReader((toys / "plan.csv").open(encoding="utf-8"))}
    assert all(float(planned[job][column]) > 0 for job in ("train", "translate") for column in ("flops", "hours_here"))
    paper = toys / "workflow/papers/a-toy/paper.yaml"
    paper.write_text(paper.read_text().replace("times: 3", "tims: 3"))
    wrong = pipeline(toys, "table", "--table", "table1", "--paper", "a-toy", "--out", "wrong.csv")
    assert wrong.returncode == 1 and "Traceback" not in wrong.stderr
    assert "tables.table1.cells.letters.letters.tims: unknown key; allowed: dataset, kind, printed" in wrong.stderr
