"""The documentation of the paper scale matches the workflow: its jobs, its depth, and how it splits a step."""

import itertools
import re
import resource
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from copied_project import ROOT, call, jobs, require
from real_project import real_project
from rule_files import local_rules, rules_with

from pipeline.workflow.graph import Graph, runs_in
from pipeline.workflow.rules import RuleFunctions

PAGE = ROOT / "docs/how-to/run-paper-scale.md"
DEEPEST, LONGEST, MOST_SUBMITTED = 11, 4.5, 200


def snakemake(*options):
    """(what it prints, processor seconds)."""
    command = [str(Path(sys.executable).parent / "snakemake"), *options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def printed_graph(work):
    """Everything at the paper scale, as `snakemake` above has it."""
    config = ["--config", f"work={work}", "licensed={}", "seeds=1"]
    return snakemake("--profile", "slurm", "--dag", "dot", "--nolock", *config, "--", "all")


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """(rule by job, jobs that each job waits for, processor seconds) of everything at the paper scale."""
    printed, seconds = printed_graph(tmp_path_factory.mktemp("work"))
    rules = dict(re.findall(r'^\s*(\d+)\[label = "(\w+)', printed, re.MULTILINE))
    needs = defaultdict(list)
    for needed, job in re.findall(r"^\s*(\d+) -> (\d+)", printed, re.MULTILINE):
        needs[job].append(needed)
    return rules, needs, seconds


def test_the_page_counts_the_jobs_of_every_rule(graph):
    rows = re.findall(r"^\| (\w+) \| (\d+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    counted = sorted(Counter(graph[0].values()).items())
    expected = "\n".join(f"| {rule} | {jobs} |" for rule, jobs in counted)
    assert [(rule, int(jobs)) for rule, jobs in rows] == counted, f"the table of jobs should be\n{expected}"


@pytest.mark.parametrize(
    ("dataset", "threads"), [("wmt14-en-de", 16), ("librispeech", 16), ("wsj-semi", 1), ("tedlium3-text", 1)]
)
def test_a_corpus_stage_of_one_process_requests_one_core(dataset, threads):
    functions = RuleFunctions(real_project({"scale": "paper"}))
    assert functions.corpus_threads(SimpleNamespace(dataset=dataset)) == threads
    assert rules_with("corpus_threads") == {"prepare", "features"}


def test_fetch_target_makes_all_downloads_and_only_locally(graph, tmp_path):
    config = ("--config", "scale=paper", f"work={tmp_path}", "licensed={}")
    planned = jobs(require(call(ROOT, "snakemake", "-n", "--nolock", *config, "--", "fetch")))
    fetching = {rule: number for rule, number in planned.items() if rule in local_rules()}
    assert fetching == {"download": Counter(graph[0].values())["download"], "fetch": 1}


def test_paper_scale_submits_the_documented_number_of_jobs(graph):
    rules, needs, _ = graph
    submitted = [
        job for job, rule in rules.items() if rule in rules_with("LAUNCH") - {"decode"} or rule not in local_rules()
    ]
    trainings = {job: [need for need in needs[job] if rules[need] == "train"] for job in rules}
    late = [job for job, rule in rules.items() if rule == "decode" and len(trainings[job]) > 1]
    said = re.search(r"submits (\d+) jobs to Slurm", " ".join(PAGE.read_text(encoding="utf-8").split()))
    assert int(said[1]) == len(submitted) + len(late) <= MOST_SUBMITTED
    assert all(trainings[job] for job, rule in rules.items() if rule == "decode"), "at the end of which training?"


def test_the_graph_is_as_deep_as_the_page_says(graph):
    rules, needs, _ = graph
    levels = {}

    def level(job):
        if job not in levels:
            levels[job] = 1 + max(map(level, needs[job]), default=0)
        return levels[job]

    assert max(map(level, rules)) == DEEPEST


def test_graph_is_resolved_in_a_few_snakemake_start_times(graph, tmp_path):
    # In processor time of one run: about three times, on slow machines as on fast ones.
    tries = itertools.chain([graph[-1]], (printed_graph(tmp_path)[1] for _ in range(3)))
    assert any(seconds < LONGEST * snakemake("--version")[1] for seconds in tries)


def test_each_of_the_gpus_gets_a_micro_batch_of_an_update():
    project = real_project({"scale": "paper"})
    graph = Graph(project)
    for run in runs_in(graph.closure(graph.reports(project.papers))):
        training = project.run_spec(run).training
        gpus = project.training_gpus(run)
        widths = np.arange(5, min(training.max_length, 256) + 2)
        rows = training.micro_batch_tokens // widths
        if training.sentences_per_update is None:
            parts = -(-(training.tokens_per_update // widths) // rows)
            assert (parts == gpus).mean() > 0.95 and parts.max() <= gpus
        elif gpus > 1:  # of sentences that are longer than a few words there are several for each
            parts = -(-training.sentences_per_update // rows)
            assert (parts >= gpus).mean() > 0.8
