"""Every documented command of `reprise` works in the state that its page promises.

A page promises a state by "After `COMMAND`", which holds until the next one; without one it is "After `make demo`". The
models that a command names have to be among those that COMMAND trains. The commands of a page run in order in a copy of
a project in which they are trained, at scale smoke.
"""

import csv
import json
import re
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
from cipher import write_texts
from copied_project import ROOT, call, require
from finished_project import finished_project
from real_project import real_project
from warm import warm_programs

from pipeline.core.artifacts import Score, Trained
from pipeline.papers.config_file import parse_settings
from pipeline.workflow.graph import Graph, runs_in
from pipeline.workflow.targets import reports_asked_for
from reprise.__main__ import main
from reprise.cli import REPRISE
from reprise.find_runs import resolve_run

PAGES = [ROOT / "README.md", ROOT / "Makefile", ROOT / "CONTRIBUTING.md", ROOT / "config/README.md"]
PAGES += sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("[!m]*/*.md")])
"""All pages but the measured results, whose commands train for hours."""
DEMO = "make demo"
STATE = re.compile(r"\bafter\s+`([^`]+)`", re.IGNORECASE)
COMMAND = re.compile(r"^(?: {4}|\t@echo \" *\$\(BIN\)/)(reprise .*)$|`(reprise [a-z]+(?: [^`]*)?)`", re.MULTILINE)
MENTIONED = {"make", "translate", "transcribe", "unpack", "record"}
"""Commands that need arguments, and that pages also name without them, to speak of them."""
MODEL = re.compile(r"^(attention|weighted|multichannel|coldfusion)/[\w-]+(/[\w-]+)*$")
ELSEWHERE = ("make", "publish", "train")
"""Commands that take minutes or a network, with tests of their own; here their arguments are parsed."""
LOOKING = {"completion", "free", "results", "show", "status", "unlock", "verify"}
"""Commands that read no file of a page: on a second page, the same words would do the same in the same project."""
OWN_PAPERS = {"my-paper", "calls-paper"}
"""Papers of a user's own, which are small enough to be made here."""
OWN_FILES = ("talk.", "calls.")
"""Beginnings of the names of a user's own files, which the tutorials begin with."""


def commands_of(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a page, as words, with the command that its state comes after."""
    text = page.read_text(encoding="utf-8")
    states = [(found.start(), found[1]) for found in STATE.finditer(text)]
    for found in COMMAND.finditer(text):
        state = [name for place, name in states if place < found.start()]
        line = re.sub(r" +#.*| {3,}.*", "", (found[1] or found[2]).rstrip('"'))
        words = shlex.split(line)[1:]
        if len(words) > 1 or words[0] not in MENTIONED:
            yield (state or [DEMO])[-1], words


def commands_to_run() -> dict[Path, list[list[str]]]:
    """Return the commands of each page, without those of LOOKING that an earlier page has."""
    found, seen = dict[Path, list[list[str]]](), set[tuple[str, ...]]()
    for page in PAGES:
        commands = [words for _, words in commands_of(page) if words[0] not in LOOKING or tuple(words) not in seen]
        seen |= {*map(tuple, commands)}
        if commands:
            found[page] = commands
    return found


COMMANDS = [(page.name, state, words) for page in PAGES for state, words in commands_of(page)]
MODELS = sorted({(state, word) for _, state, words in COMMANDS for word in words if MODEL.match(word)})


def target_of(state: str) -> str:
    """Return what Snakemake makes in the command that a state comes after."""
    if state == DEMO:
        (target,) = re.findall(r"^demo: env\n(?:.*\n)*?\t@\$\(BIN\)/reprise make (\S+)$", MAKEFILE, re.MULTILINE)
        return target
    *_, target = state.split()
    return target


MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize(("state", "model"), MODELS)
def test_documented_model_is_trained_by_its_state(state, model):
    graph = Graph(real_project())
    name = model if model.count("/") > 1 else f"{model}/wmt14-en-de"
    assert resolve_run(graph.project, name) in runs_in(graph.closure(reports_asked_for(graph, target_of(state))))


def test_documented_targets_of_make_are_reports():
    commands = [words for _, _, words in COMMANDS if words[0] == "make" and not OWN_PAPERS & {*words}]
    assert ["make", "coldfusion"] in commands and ["make", "results/claims.csv"] in commands
    for words in commands:
        args = REPRISE.parse(words)
        graph = Graph(real_project(parse_settings(args.settings)))
        assert all(reports_asked_for(graph, target) for target in args.targets), words


def test_every_kind_of_documented_command_is_found():
    found = {words[0] for _, _, words in COMMANDS}
    assert {"translate", "parse", "transcribe", "score", "compare", "pack", "export", "record", "continue"} <= found
    assert len(MODELS) >= 6 and {state for state, _ in MODELS} > {DEMO}


@pytest.mark.parametrize("name", sorted(MENTIONED))
def test_a_command_that_is_only_mentioned_needs_arguments(name):
    with pytest.raises(SystemExit, match=r"^2$"):
        REPRISE.parse([name])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_line_of_a_page_that_is_a_command_is_missed(page):
    """Lines are counted another way: by their first words, whatever is before and after them."""
    lines = [
        line.replace("@echo", "").replace("$(BIN)/", "").strip('\t "').split() for line in page.read_text().split("\n")
    ]
    written = sorted(line[1] for line in lines if line[:1] == ["reprise"] and line[1] in REPRISE.commands)
    found = sorted(words[0] for _, words in commands_of(page))
    assert Counter(written) <= Counter(found)


def test_measured_pages_have_no_command_of_their_own():
    assert not [words for page in (ROOT / "docs/measured").rglob("*.md") for _, words in commands_of(page)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A project at smoke in which the documented models are trained, with Table 2 of their scores and files to read."""
    graph = Graph(real_project({"scale": "smoke"}))
    names = [model if model.count("/") > 1 else f"{model}/wmt14-en-de" for _, model in MODELS]
    runs = {resolve_run(graph.project, name) for name in names}
    (table,) = reports_asked_for(graph, target_of(DEMO))
    scores = [score for score in graph.closure([table]) if isinstance(score, Score) and score.run in runs]
    root = finished_project(tmp_path_factory, [*map(Trained, runs), *scores])
    config = root / "config.yaml"
    config.write_text(config.read_text().replace("scale: demo", "scale: smoke"))
    require(call(root, "reprise", "results", str(graph.project.layout.target(table))))
    shutil.copy(root / graph.project.layout.target(table), root / target_of(DEMO))
    for name in ("sentences.txt", "FILE"):
        (root / name).write_text("can dogs eat carrots\nhow much does a car cost\n")
    noise = np.random.default_rng(1).normal(0, 0.1, 16_000)
    for name in ("speech.wav", "talk.flac", "AUDIO.wav"):
        soundfile.write(root / name, noise, 16_000)
    (root / "AUDIO.wav").rename(root / "AUDIO")
    return root


@pytest.fixture
def root(finished, tmp_path, monkeypatch) -> Path:
    """Return a copy of the finished project, which is the working folder."""
    root = shutil.copytree(finished, tmp_path / "project", symlinks=True)
    monkeypatch.chdir(root)
    return root


def bring_own_data(root: Path) -> None:
    """Write the files that the tutorials of a user's own data begin with."""
    _, translations = write_texts(root, pairs=500)
    translations.rename(root / "talk.de")
    rows = ["audio\ttext\tspeaker"]
    draw = np.random.default_rng(2)
    for number in range(60):
        soundfile.write(root / f"{number}.wav", draw.normal(0, 0.1, 12_000), 16_000)
        rows.append(f"{number}.wav\tcall of {'abcdef'[number % 6] * 3}\tspeaker {number % 6}")
    (root / "calls.tsv").write_text("\n".join(rows) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "commands"), [pytest.param(page, found, id=page.name) for page, found in commands_to_run().items()]
)
def test_documented_commands_work_in_order(page, commands, root, monkeypatch, capfd):
    monkeypatch.setattr(sys, "executable", str(warm_programs() / "python"))
    if any(name in page.read_text(encoding="utf-8") for name in OWN_FILES):
        bring_own_data(root)
    for words in commands:
        if words[0] == "make" and words[1] in OWN_PAPERS:
            require(call(root, "reprise", *words))
            with open(root / f"results/smoke/{words[1]}/table1.csv", newline="", encoding="utf-8") as table:
                scores = [row["score_ours"] for row in csv.DictReader(table)]
            assert scores and all(scores)
            continue
        if words[0] in ELSEWHERE:
            REPRISE.parse(words)
            continue
        words = [word for word in words if word != "--watch"]
        if words[0] == "continue":
            words.append("--prepare")  # the training itself takes minutes
        if words[0] == "results" and words[1:2] in ([], ["--set"]):
            words.insert(1, "weighted")  # tests/status/test_results.py has the reports of all papers
        if words[0] in ("translate", "parse") and len(words) == 2:
            words.append("FILE")  # instead of a keyboard
        words = ["FILE" if word == "talk.en" and words[0] == "translate" else word for word in words]
        status = main(words)
        captured = capfd.readouterr()
        assert status == 0, f"reprise {shlex.join(words)}\n{captured.err[-2000:]}"
        if words[0] in ("translate", "parse"):
            assert captured.out.count("\n") == 2


@pytest.mark.slow
def test_runs_sent_without_weights_give_the_same_table(root):
    """The commands of the page are run at the scale of the finished project; `timeout` has warm programs run them."""
    page = (ROOT / "docs/how-to/keep-results.md").read_text()
    commands = re.findall(r"^    (.+)$", page.partition("## Judge claims over seeds")[2], re.MULTILINE)
    assert [words.split()[0] for words in commands] == ["tar", "mkdir", "tar", "reprise"]
    table = root / "results/smoke/weighted/table2.csv"
    before = table.read_bytes()
    table.unlink()
    script = "\n".join(commands).replace("demo/", "smoke/").replace(" weighted ", f" {table.relative_to(root)} ")
    require(call(root, "timeout", "600", "bash", "-euc", script))
    assert table.read_bytes() == before and re.search(rb"\d+\.\d", before)
    assert not [*(root / "judged").rglob("*.safetensors")]


def python_of(page: Path) -> str:
    """Return the Python of a page or notebook, at the scale of the finished project."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        return "\n".join(cells).replace('"demo"', '"smoke"')
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))


PYTHON = [page for page in (*PAGES, ROOT / "docs/tour.ipynb") if python_of(page)]


@pytest.mark.slow
@pytest.mark.parametrize("page", PYTHON, ids=lambda page: page.name)
@pytest.mark.usefixtures("root")
def test_documented_python_runs_after_the_demo(page):
    assert {"use-a-model.md", "tour.ipynb"} <= {page.name for page in PYTHON}
    names: dict[str, object] = {}
    exec(python_of(page), names)
    assert names["model"].name == "attention/base seed 1"
