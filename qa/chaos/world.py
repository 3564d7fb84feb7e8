"""A tiny project in which every stage ran once, undisturbed: its commands, and the files that each read and wrote."""

import hashlib
import itertools
import pickle
import re
import shlex
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from pipeline.core.artifacts import (
    Artifact,
    Claims,
    ExampleTable,
    Figure,
    Gates,
    LayerTable,
    ModelSizes,
    RunId,
    Score,
    Table,
    TranscriptTable,
    Tuned,
)
from pipeline.core.files import note_path
from pipeline.papers.project import load_project
from qa.chaos.injection import Fault, Injector
from qa.chaos.server import ROOT, Server
from qa.chaos.sources import add_fetched

sys.path.append(str(ROOT / "tests/helpers"))
from copied_project import add_toy_paper, call, copy_project, require

SCALE = "smoke"
ENGLISH_GERMAN = RunId("weighted", "C", "grammar-smoke-en-de", 1)
CHINESE_ENGLISH = RunId("multichannel", "RNN-EMB", "grammar-smoke-zh-en", 1)
SPEECH = RunId("coldfusion", "ctc", "grammar-smoke-speech-source", 1)
TEXT: tuple[Artifact, ...] = (
    Gates(CHINESE_ENGLISH),
    Score(CHINESE_ENGLISH, "phenomena", "beam10", "test"),
    Score(ENGLISH_GERMAN, "scores", "final", "dev"),
    ModelSizes("weighted"),
)
TARGETS: tuple[Artifact, ...] = (
    *TEXT,
    Claims("toy"),
    Table("toy", "table1"),
    Table("attention", "table4"),  # trees
    Figure("attention", "figure3"),  # attention-maps
    Figure("coldfusion", "figure3"),  # alignments
    TranscriptTable("coldfusion", "table1"),
    ExampleTable("multichannel", "table3"),
    LayerTable("attention", "table1"),  # layer-times
    Table("coldfusion", "table2"),  # perplexity elsewhere
    Tuned(SPEECH, "shallow-ctc"),
    Score(SPEECH, "scores", "final", "test", SPEECH.dataset),
    Figure("weighted", "figure2"),
)
CLAIMS = """\
scores:
  bleu: {metric: bleu_paper, dataset: wmt14-en-de, split: test, decoding: final}
claims:
  better:
    kind: order
    statement: The one is better than the other.
    printed: "nowhere"
    score: bleu
    ascending: [attention/C1, base]
"""
"""Claims of the toy paper."""
STAGES = (
    *("generate", "download", "collect-trees", "collect-text", "collect-recordings", "speak", "prepare"),
    *("prepare-trees", "subwords", "features", "encode-text", "encode", "train", "decode", "score"),
    *("layer-times", "model-sizes", "table", "transcript-table", "example-table"),
    *("layer-table", "figure", "claims", "launch", "plan", "cost"),
)
"""Stages that the rules call, in the order of the workflow."""
PLAN, COST = (f"results/{SCALE}/{name}.csv" for name in ("plan", "cost"))
FORECAST = (
    ["plan", "--set", f"scale={SCALE}", "--out", PLAN],
    ["cost", "--set", f"scale={SCALE}", "--plan", PLAN, "--out", COST],
)
"""Command that no table asks for."""

SHORTEST_LIMIT_S, TRIES = 120.0, 10
"""Least limit in seconds, and its factor: a damaged file makes a stage run up to four times."""

Digests = dict[str, str]
"""SHA-256 of each file below work/ and results/, by path."""


@dataclass
class Step:
    """A command of the workflow.

    Attributes:
        writes: Files that are equal after two undisturbed runs, with their digests.
        unlike: Files that differ between them: times, logs.
        seen: How often it makes each system call.
        reads: Files that it opens to read, of those that were there before.
        seconds: Duration.
    """

    argv: list[str]
    writes: Digests = field(default_factory=dict)
    unlike: set[str] = field(default_factory=set)
    seen: dict[str, int] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def stage(self) -> str:
        return self.argv[0]


def digests(folder: Path) -> Digests:
    """Return the digests of the files below a folder, without half-written files and notes of sizes and times."""
    paths = (path for part in ("work", "results") for path in (folder / part).rglob("*") if path.is_file())
    names = ((path, path.relative_to(folder)) for path in paths)
    shown = ((path, name) for path, name in names if not any(part.startswith(".") for part in name.parts))
    return {str(name): hashlib.sha256(path.read_bytes()).hexdigest() for path, name in shown}


def shrink(folder: Path) -> None:
    """Shrink the smoke scale of a copied project further."""
    for path in (folder / "workflow/datasets").glob("grammar-smoke-*.yaml"):
        record = yaml.safe_load(path.read_text())
        record.pop("expected", None)
        for sizes in sizes_of(record):
            sizes.update({split: max(4 if "utterances" in record else 8, count // 8) for split, count in sizes.items()})
        for vocabulary in (record.get("subwords", {}), record.get("tgt_subwords", {})):
            if "vocab_size" in vocabulary:
                vocabulary["vocab_size"] //= 4
        path.write_text(yaml.safe_dump(record, sort_keys=False))
    path = folder / "workflow/scales/smoke.yaml"
    scale = yaml.safe_load(path.read_text())
    short = {"max_steps": {"set": 9}, "validate_every": {"set": 3}, "checkpoint_every": {"set": 3}}
    for part in (scale, *scale["systems"].values()):
        if "training" in part:
            part["training"] |= short
    scale["systems"]["attention/big"] = {"decoding": {"average_last": {"divide": 10}}}  # 2 of its 3 checkpoints
    path.write_text(yaml.safe_dump(scale, sort_keys=False))


def sizes_of(record: dict[str, Any]) -> list[dict[str, int]]:
    owners = (record.get("generator", {}), record.get("text", {}), record)
    found = [owner[name] for owner in owners for name in ("sizes", "chained", "utterances") if name in owner]
    return [sizes for sizes in found if isinstance(sizes, dict)]


def commands(folder: Path, targets: tuple[Artifact, ...]) -> list[list[str]]:
    """Return the commands that Snakemake would run for `targets`, by stage in the order of STAGES."""
    layout = load_project(folder, {"scale": SCALE}).layout
    paths = list(dict.fromkeys(str(layout.target(target)) for target in targets))
    options = ("-n", "-p", "--cores", "1", "--config", f"scale={SCALE}")
    shown = require(call(folder, "snakemake", *options, "--", *paths))
    lines = re.findall(r"python -m pipeline (.*)$", re.sub(r"\\\n\s*", "", shown), re.MULTILINE)
    found = [bare(list(itertools.takewhile(is_argument, shlex.split(line)))) for line in lines]
    order = [*STAGES]
    return sorted(found, key=lambda argv: order.index(argv[0]))


def is_argument(word: str) -> bool:
    """Return whether a word of a shell command stands before its redirections."""
    return not word.startswith((">", "2>", "|"))


class World:
    """The undisturbed world in `folder`, and copies of it before each step."""

    def __init__(self, folder: Path, injector: Injector, server: Server, targets: tuple[Artifact, ...] = TARGETS):
        self.folder, self.injector, self.server = folder, injector, server
        self.template, self.golden = folder / "template", folder / "golden"
        self.kept = folder / "steps.pickle"
        self.steps: list[Step] = pickle.loads(self.kept.read_bytes()) if self.kept.exists() else []
        self.waiting = [] if self.steps else self.commands(targets)

    def commands(self, targets: tuple[Artifact, ...]) -> list[list[str]]:
        """Make the project and return its commands."""
        self.template.mkdir()
        copy_project(self.template)
        shrink(self.template)
        toy = add_toy_paper(self.template)
        (toy / "claims.yaml").write_text(CLAIMS)
        ordered = commands(self.template, targets)
        waiting = [*ordered, *add_fetched(self.template), launched(ordered)]
        if targets is TARGETS:
            waiting += FORECAST
        self.copied(self.template, self.golden)
        return waiting

    def build(self) -> None:
        """Run every command twice; a command that needs the output of a later one waits for it."""
        failures = 0
        while self.waiting:
            argv = self.waiting.pop(0)
            if self.add(Step(argv)):
                failures = 0
                continue
            self.waiting.append(argv)
            failures += 1
            if failures == len(self.waiting):
                raise SystemExit(f"error: undisturbed, {shlex.join(argv)} fails: {self.said()[-2000:]}")

        self.kept.write_bytes(pickle.dumps(self.steps))

    def add(self, step: Step) -> bool:
        """Add a step, and return whether it could be run."""
        before = digests(self.golden)
        twin = self.folder / "twin"
        self.copied(self.golden, twin)
        begun = time.monotonic()
        try:
            if self.run(step, twin, None):
                return False
            step.seconds, step.seen = time.monotonic() - begun, self.injector.seen()
            step.reads = sorted(path for path in self.injector.opened(twin) if path in before)
            assert self.run(step, self.golden, None) == 0, self.said()
            first, second = changed(before, digests(twin)), changed(before, digests(self.golden))
            step.writes = {path: digest for path, digest in second.items() if first.get(path) == digest}
            step.unlike = {*first, *second} - {*step.writes}
        finally:
            shutil.rmtree(twin)
        self.steps.append(step)
        return True

    def copied(self, source: Path, target: Path) -> None:
        """Copy a project; files that no stage writes are shared."""
        shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("workflow", ".snakemake"))
        (target / "workflow").symlink_to(self.template / "workflow")

    def run(self, step: Step, folder: Path, fault: Fault | None) -> int:
        """Run a step in `folder` and return its exit status."""
        self.injector.arm((folder / "work", folder / "results"), fault)
        try:
            limit_s = max(SHORTEST_LIMIT_S, TRIES * step.seconds)
            return self.server.run(step.argv, folder, self.folder / "log", limit_s)
        finally:
            self.injector.disarm()

    def said(self) -> str:
        """Return what the last step wrote to its terminal."""
        return (self.folder / "log").read_text(errors="replace")

    def before(self, step: Step, name: str) -> Path:
        """Return a copy of the world in which `step` was not run; later steps may have been."""
        folder = self.folder / name
        if folder.exists():
            shutil.rmtree(folder)
        self.copied(self.golden, folder)
        for path in (*step.writes, *step.unlike):
            (folder / path).unlink(missing_ok=True)
            note_path(folder / path).unlink(missing_ok=True)
        return folder


def launched(ordered: list[list[str]]) -> list[str]:
    """Return the first count of model sizes once more, as a job in a process of its own."""
    counting = next(argv for argv in ordered if argv[0] == "model-sizes")
    folder = Path("work", SCALE, "launched")
    makes = str(folder / "sizes.json")
    counting = [makes if before == "--out" else word for before, word in itertools.pairwise(["", *counting])]
    sizes = ("--cpus", "1", "--mem-mb", "1000", "--runtime-min", "5")
    return ["launch", "--launcher", "local", *sizes, "--folder", str(folder), "--makes", makes, "--", *counting]


def changed(before: Digests, after: Digests) -> Digests:
    """Return the files of `after` that are new or changed."""
    return {path: digest for path, digest in after.items() if before.get(path) != digest}


def bare(argv: list[str]) -> list[str]:
    """Return a command without its launcher; that of a training becomes the stage `train`."""
    if argv[0] != "launch":
        return argv
    if "--" in argv:
        return argv[argv.index("--") + 1 :]
    run, specification = (argv[argv.index(option) + 1] for option in ("--run", "--spec"))
    return ["train", "--run", run, "--spec", specification, "--device", "cpu", "--threads", "1"]
