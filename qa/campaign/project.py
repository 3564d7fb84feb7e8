"""The project at paper scale with tiny data and models, and its real rules, papers and jobs.

A copy differs in the sizes that dataset files state, the checksums of downloads and the numbers of
`workflow/scales/paper.yaml`, `config.yaml` and `slurm/site.yaml`. One line of the rules differs too: it names the
program that trains, so that trainings can be slowed down.
"""

import csv
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from pipeline.core.artifacts import Artifact
from pipeline.core.provenance import ROOT
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph, datasets_in, runs_in
from qa.campaign.archives import TREES, write_archives
from tests.cluster.tracing import set_pace

sys.path.append(str(ROOT / "tests/helpers"))
from copied_project import COPIED

SETTINGS = {"scale": "paper", "licensed": {}}
STEPS, VALIDATE_EVERY, CHECKPOINT_EVERY = 20, 10, 2
TREES_TAKEN = {16445: TREES["train"], 16446: TREES["train"] + 1, 1555: TREES["dev"], 2780: TREES["test"]}
VOCABULARY = {"bpe": 90, "word": 50}
TRAINS = " --run {params.folder:q} --spec"
SLOWED = " --function paced_training:train" + TRAINS
NODE_MB, NODES, GPUS_OF_NODE = 32000, 2, 4  # of tests/cluster/slurm.sh
LEAST_S = 8.0  # so that something can befall the shortest training


def make_project(folder: Path, served: Path, address: str, targets: tuple[Artifact, ...] = ()) -> Path:
    """Copy the project to `folder`, with archives in `served` that are downloaded from `address`.

    There are archives for `targets` alone, for all reports if there are none.
    """
    project = load_project(ROOT, SETTINGS)
    graph = Graph(project)
    artifacts = graph.closure(targets or graph.reports(project.reproduced))
    needed = [project.dataset_records[name] for name in datasets_in(artifacts)]
    digests = write_archives(needed, served)
    folder.mkdir(parents=True)
    for name in (*COPIED, "pipeline", "reprise", "profiles", "slurm"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder)
    for path in (folder / "workflow/datasets").glob("*.yaml"):
        if path.stem in {dataset.name for dataset in needed}:
            rewrite(path, smaller)
    for path in (folder / "workflow/files").glob("*.yaml"):
        rewrite(path, lambda origin: with_digests(origin, digests))
    rewrite(folder / "workflow/scales/paper.yaml", tiny)
    rewrite(folder / "config.yaml", lambda config: config | {"mirror": address})
    rules = folder / "workflow/rules/models.smk"
    text = rules.read_text()
    assert text.count(TRAINS) == 1
    rules.write_text(text.replace(TRAINS, SLOWED))
    return folder


def rewrite(path: Path, change: Any) -> None:
    path.write_text(yaml.safe_dump(change(yaml.safe_load(path.read_text())), sort_keys=False, allow_unicode=True))


def smaller(dataset: dict[str, Any]) -> dict[str, Any]:
    """Return a dataset file without the sizes it states, and with few subwords."""
    dataset.pop("expected", None)
    for key in ("subwords", "tgt_subwords"):
        if "vocab_size" in dataset.get(key, {}):
            dataset[key]["vocab_size"] = VOCABULARY[dataset[key]["kind"]]
    for split in dataset.get("splits", {}).values():
        for part in split["parts"] if isinstance(split, dict) else split:
            part.pop("lines", None)
            part |= {key: TREES_TAKEN.get(part[key], 8) for key in ("first", "trees") if key in part}
    return dataset


def with_digests(origin: dict[str, Any], digests: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Set the checksums of downloads to those of our archives, so that they are verified too."""
    for name, source in origin["files"].items():
        if name in digests:
            source.pop("md5", None)
            source |= digests[name]
    return origin


def tiny(paper: dict[str, Any]) -> dict[str, Any]:
    """Return the scale `paper` with the models of `smoke`, one seed, and short trainings."""
    smoke = yaml.safe_load((ROOT / "workflow/scales/smoke.yaml").read_text())
    short = {"max_steps": STEPS, "validate_every": VALIDATE_EVERY, "checkpoint_every": CHECKPOINT_EVERY}
    rules = {key: {"set": value} for key, value in short.items()}
    for part in (smoke, *smoke["systems"].values()):
        if "training" in part:
            part["training"] |= rules
    # Nodes have no GPU that computes, and memory in its place: as many jobs run at once as there would be GPUs.
    memory = {"train": NODE_MB // GPUS_OF_NODE, "decode": NODE_MB // GPUS_OF_NODE, "prepare": 1000, "score": 1000}
    resources = {job: {"threads": 1, "mem_mb": memory[job], "runtime": 60} for job in paper["resources"]}
    return smoke | {"datasets": paper["datasets"], "description": paper["description"], "resources": resources}


def forecast(folder: Path) -> dict[str, float]:
    """Return the forecast hours of each training at the true paper scale on one H100, by folder of the run."""
    table = folder / "plan.csv"
    options = ["--set", "scale=paper", "--set", "licensed={}", "--set", f"work={folder / 'nothing'}"]
    command = [sys.executable, "-m", "pipeline", "plan", *options, "--out", table]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    with open(table, newline="") as file:
        trainings = [row for row in csv.DictReader(file) if row["job"] == "train" and row["name"].endswith("/seed1")]
    return {row["name"]: float(row["gpu_hours_H100"]) for row in trainings}


def shares_of(minutes: float, hours: dict[str, float]) -> dict[str, float]:
    """Divide minutes on all GPUs among trainings in proportion to their forecast hours; returns seconds by training."""
    second = minutes * 60 * NODES * GPUS_OF_NODE / sum(hours.values())
    return {name: max(LEAST_S, hour * second) for name, hour in hours.items()}


def set_paces(root: Path, seconds: Callable[[str], float]) -> None:
    """Slow each training down to `seconds(paper/system/dataset/seed1)`; 0 leaves it as fast as it is."""
    project = load_project(root, SETTINGS)
    graph = Graph(project)
    for run in runs_in(graph.closure(graph.reports(project.reproduced))):
        folder = root / project.layout.run(run)
        folder.mkdir(parents=True, exist_ok=True)
        set_pace(folder, seconds(run.folder) / STEPS)
