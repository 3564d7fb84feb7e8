"""Every reference is checked when a project is loaded; a typo gets one line with a suggestion."""

import functools
import re
import shutil
from pathlib import Path

import pytest
import yaml
from real_project import real_project

from pipeline.analysis.names import names_in
from pipeline.core.artifacts import RunId
from pipeline.core.errors import UserError
from pipeline.papers.project import load_project
from pipeline.workflow.targets import unknown_target

ROOT = Path(__file__).resolve().parents[2]
PAPER, CLAIMS = "workflow/papers/weighted/paper.yaml", "workflow/papers/weighted/claims.yaml"
DEMO, PLATEAU, CONFIG = "workflow/scales/demo.yaml", "workflow/scales/plateau.yaml", "config.yaml"


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "workflow", folder / "workflow")
    shutil.copy(ROOT / CONFIG, folder)
    return folder


@pytest.fixture
def faults(copied):
    """Lines that a changed file is refused with."""
    before = {}

    def load(name: str, keys: str, value) -> list[str]:
        path = copied / name
        before[path] = path.read_bytes()
        content = yaml.safe_load(before[path])
        *way, last = (int(key) if key.isdigit() else key for key in keys.split("|"))
        holder = functools.reduce(
            lambda inner, key: inner.setdefault(key, {}) if isinstance(inner, dict) else inner[key], way, content
        )
        holder[last] = value
        path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        with pytest.raises(UserError) as caught:
            for fault in load_project(copied).dataset_records.faults.values():
                raise fault
        return str(caught.value).split("\n")

    yield load
    for path, content in before.items():
        path.write_bytes(content)


def mean(name: str) -> str:
    return re.escape(f"; did you mean '{name}'?")


CELL = "tables|table2|cells|bleu"
TYPOS = {
    "metric of another form": (
        PAPER,
        f"{CELL}|metric",
        "wer",
        r"bleu\.metric: of dataset grammar-\S+ \(sentences\): unknown name 'wer'; allowed: [^;]*sacrebleu",
    ),
    "split that the dataset lacks": (
        PAPER,
        f"{CELL}|split",
        "test3",
        r"bleu\.split: of dataset grammar-\S+: unknown name 'test3'; allowed: dev, test, test2",
    ),
    "metric of a claim's score": (
        CLAIMS,
        "scores|bleu|metric",
        "f1",
        r"scores\.bleu, of claim \S+\.metric: of dataset grammar-\S+ \(sentences\): unknown name 'f1'",
    ),
    "metric": (
        PAPER,
        f"{CELL}|metric",
        "bleu_papr",
        rf"{CELL}.metric: unknown name 'bleu_papr'; .*" + mean("bleu_paper"),
    ),
    "dataset": (
        PAPER,
        f"{CELL}|dataset",
        "wmt14-en-ed",
        f"{CELL}.dataset: unknown name 'wmt14-en-ed'.*" + mean("wmt14-en-de"),
    ),
    "dataset that is scored": (
        PAPER,
        f"{CELL}|scored_on",
        "wmt",
        rf"{CELL}.scored_on: unknown name 'wmt'; allowed: .*wsj",
    ),
    "decoding": (PAPER, f"{CELL}|decoding", "finl", f"{CELL}.decoding: unknown name 'finl'.*" + mean("final")),
    "decoding of another owner": (
        PAPER,
        f"{CELL}|decoding",
        "uniform",
        "row 2: decoding of attention/C1: unknown name 'uniform'",
    ),
    "printed number": (PAPER, f"{CELL}|printed", "model", "line 2: model: Input should be a valid number.*Transformer"),
    "system column": (PAPER, f"{CELL}|system", "sytem", "no column sytem; it has .*" + mean("system")),
    "decoding column": (
        PAPER,
        "tables|table3|cells|bleu|decoding_column",
        "decodng",
        "no column decodng.*" + mean("decoding"),
    ),
    "scale of a table": (
        PAPER,
        "tables|table2|scales",
        ["dmeo"],
        "tables.table2.scales.0: unknown name 'dmeo'.*" + mean("demo"),
    ),
    "base": (
        PAPER,
        "systems|N4|base",
        "AA",
        "systems.N4.base: unknown name 'AA'; allowed: A, A-16, A-32, B.*" + mean("A"),
    ),
    "base's paper": (
        PAPER,
        "systems|N4|base",
        "atention/base",
        "systems.N4.base: unknown name 'atention'.*" + mean("attention"),
    ),
    "circle of bases": (PAPER, "systems|A|base", "C", "systems.A: its bases form a cycle"),
    "language model": (
        PAPER,
        "systems|N4|language_model",
        "coldfusion/lm-ful@source-text",
        "unknown name 'lm-ful'.*" + mean("lm-full"),
    ),
    "no dataset": (PAPER, "systems|N4|initial", "A", "systems.N4.initial: 'A': write system@dataset"),
    "initial dataset": (PAPER, "systems|N4|initial", "A@wmt14-en-fe", "systems.N4.initial: unknown name 'wmt14-en-fe'"),
    "circle of weights": (
        PAPER,
        "systems|N4|initial",
        "N4@wmt14-en-de",
        "systems.N4: it loads its own weights, in a circle",
    ),
    "dataset of a system": (
        PAPER,
        "systems|N4|datasets",
        {"wsjj": "wsj"},
        "systems.N4.datasets.wsjj: unknown name.*" + mean("wsj"),
    ),
    "decoding of a system": (
        PAPER,
        "systems|N4|decodings",
        {"finl": {}},
        "systems.N4.decodings.finl: unknown name.*" + mean("final"),
    ),
    "key of a decoding": (
        PAPER,
        "systems|N4|decodings",
        {"final": {"beam_siz": 4}},
        "systems.N4: decodings.final: beam_siz: unknown key; .*" + mean("beam_size"),
    ),
    "decoding's model": (
        PAPER,
        "decodings|final|language_model",
        "lm@wsj",
        "decodings.final.language_model: unknown name 'lm'",
    ),
    "no language model": (
        PAPER,
        "decodings|final|language_model",
        "A@wsj",
        "decodings.final.language_model: 'A@wsj' is not a language model .architecture weighted_transformer",
    ),
    "figure's system": (
        PAPER,
        "figures|figure3|system",
        "CC",
        "figures.figure3.system: unknown name 'CC'.*" + mean("C"),
    ),
    "deviation": (
        PAPER,
        "deviations|0|systems",
        ["attention/bsae"],
        "deviations.0.systems.0: unknown name 'bsae'.*" + mean("base"),
    ),
    "size's system": (
        PAPER,
        "tables|table2|cells|parameters|vocab_of",
        {"BB": 3},
        "vocab_of: unknown name 'BB'; allowed: .*" + mean("B"),
    ),
    "claim's scale": (
        CLAIMS,
        "claims|better-large|scales",
        ["dmeo"],
        "better-large.scales.0: unknown name 'dmeo'.*" + mean("demo"),
    ),
    "claim's score": (
        CLAIMS,
        "claims|better-large|score",
        "bluu",
        "better-large: no score 'bluu'; there are .*" + mean("bleu"),
    ),
    "claim's system": (CLAIMS, "claims|faster-six-layers|system", "AA", "faster-six-layers.system: unknown name 'AA'"),
    "claim's test": (
        CLAIMS,
        "claims|x",
        {"kind": "test", "statement": "", "printed": "", "tests": ["a.py"]},
        "claims.x.test.tests.0: .*got 'a.py'",
    ),
    "score's metric": (
        CLAIMS,
        "scores|bleu|metric",
        "bleu_papr",
        "scores.bleu.metric: unknown name.*" + mean("bleu_paper"),
    ),
    "score's decoding": (
        CLAIMS,
        "scores|bleu|decoding",
        "uniform",
        "of attention/C1 in claim better-two-layers: unknown name 'uniform'",
    ),
    "key of a rule": (
        DEMO,
        "model|d_fff",
        {"divide": 8},
        "demo.yaml: model.d_fff: unknown name 'd_fff'.*" + mean("d_ff"),
    ),
    "key of a training's rule": (
        DEMO,
        "training|max_step",
        {"divide": 8},
        "training.max_step: unknown name.*" + mean("max_steps"),
    ),
    "key of a system's rule": (
        DEMO,
        "systems|weighted/A|model",
        {"droput": {"set": 0.1}},
        "systems.weighted/A.model.droput: .*" + mean("dropout"),
    ),
    "scaled system": (
        DEMO,
        "systems|attention/bsae",
        {},
        "systems: unknown name 'attention/bsae'.*" + mean("attention/base"),
    ),
    "type of a rule": (
        DEMO,
        "training|precision",
        {"set": "fp8"},
        "training.precision.set: Input should be 'fp32' or 'bf16', got 'fp8'",
    ),
    "rule that divides a word": (
        DEMO,
        "training|optimiser",
        {"divide": 2},
        "training.optimiser: not a number, so it can't be divided",
    ),
    "dataset of a scale": (
        DEMO,
        "datasets|wmt14-en-dd",
        "grammar-en-de",
        "datasets: unknown name 'wmt14-en-dd'.*" + mean("wmt14-en-de"),
    ),
    "stand-in": (
        DEMO,
        "datasets|wsj",
        "grammar-tree",
        "datasets.wsj: unknown name 'grammar-tree'.*" + mean("grammar-trees"),
    ),
    "base of a scale": (PLATEAU, "base", "smal", "plateau.yaml: base: unknown name 'smal'.*" + mean("small")),
    "a scale as its own base": (
        PLATEAU,
        "base",
        "plateau",
        "plateau.yaml: base: unknown name 'plateau'; allowed: demo, ",
    ),
    "job": (DEMO, "resources|trian", {}, "resources.trian: .*" + mean("train")),
    "stand-in of licensed data": (
        "workflow/datasets/wsj.yaml",
        "otherwise",
        "crft",
        "wsj.yaml: otherwise: unknown name 'crft'.*" + mean("craft"),
    ),
    "source of a domain gap": (
        "workflow/datasets/grammar-speech-target.yaml",
        "gap|source",
        "grammar-speech-sorce",
        "gap.source: unknown name 'grammar-speech-sorce'.*" + mean("grammar-speech-source"),
    ),
    "source": (
        "workflow/datasets/an4.yaml",
        "splits|dev|0|source",
        "an4.tra",
        "splits name an4.tra, but it is neither .*" + mean("an4.tar"),
    ),
    "no seeds": (CONFIG, "seeds", [], r"config.yaml: seeds: List should have at least 1 item.*got \[\]"),
    "a seed twice": (CONFIG, "seeds", [1, 1], r"config.yaml: seeds: a seed is listed twice; remove one, got \[1, 1\]"),
    "too many seeds": (CONFIG, "seeds", 100_000_000, "config.yaml: seeds: .*less than or equal to 1000, got 100000000"),
    "negative seed": (CONFIG, "seeds", [-1], "config.yaml: seeds.0: .*greater than or equal to 0, got -1"),
    "mirror": (
        CONFIG,
        "mirror",
        "/dev/null/folder",
        "config.yaml: mirror: must be an existing folder or a URL .*got '/dev/null/folder'",
    ),
    "mirror of FTP": (
        CONFIG,
        "mirror",
        "ftp://host/data",
        "mirror: must be an existing folder or a URL .*https.*got 'ftp://host/",
    ),
    "work": (CONFIG, "work", "", "config.yaml: work: .*at least 1 character"),
    "variable": (CONFIG, "work", "$NO_SUCH/x", "config.yaml: work: has an unknown user or an unset variable.*NO_SUCH"),
    "home of nobody": (
        CONFIG,
        "mirror",
        "~no-such-user",
        "config.yaml: mirror: has an unknown user or an unset variable",
    ),
    "package": (
        CONFIG,
        "licensed",
        {"LDC99T4": "/x"},
        "config.yaml: licensed: unknown name 'LDC99T4'.*" + mean("LDC99T42"),
    ),
    "paper": (CONFIG, "paper", "weigthed", "config.yaml: paper: unknown name 'weigthed'.*" + mean("weighted")),
    "scale": (CONFIG, "scale", "dmeo", "config.yaml: scale: unknown name 'dmeo'.*" + mean("demo")),
}


@pytest.mark.parametrize(("name", "keys", "value", "message"), TYPOS.values(), ids=TYPOS)
def test_a_typo_is_refused_with_what_is_meant(faults, name, keys, value, message):
    lines = faults(name, keys, value)
    pattern = re.compile(message.replace("|", "."))
    assert any(pattern.search(line) for line in lines), "\n".join(lines)
    assert all(line.isprintable() for line in lines)


def test_layer_of_a_claim_must_be_in_the_complexity_table(faults):
    lines = faults("workflow/papers/attention/claims.yaml", "claims|self-attention-length|layer", "self-atention")
    assert "layer: unknown name 'self-atention'" in lines[0] and "did you mean 'self-attention'?" in lines[0]


def test_dataset_without_file_needs_a_stand_in_at_each_scale(faults):
    lines = faults(DEMO, "datasets", {"wmt14-en-de": "grammar-en-de"})
    expected = "dataset: 'source' has no stand-in at scale demo, only at medium, paper, plateau, small, smoke"
    assert any(expected in line for line in lines)


def test_several_faults_are_a_line_each(faults):
    lines = faults(PAPER, CELL, {"metric": "bluu", "dataset": "wsjj", "split": "dev", "decoding": "finl"})
    assert [re.search("unknown name '([a-z]+)'", line)[1] for line in lines[:3]] == ["bluu", "wsjj", "finl"]


def test_every_field_that_is_named_as_a_reference_is_looked_up():
    """So that a record of a new kind can't forget the type that has its names looked up."""
    project = real_project()
    for paper, record in project.papers.items():
        for whole in (record, project.claims[paper]):
            looked_up = {
                (id(name.holder), name.place[-1] if isinstance(name.place[-1], str) else name.place[-2])
                for name in names_in(whole)
            }
            for holder in {id(named.holder): named.holder for named in names_in(whole)}.values():
                for key in {"baseline", "dataset", "decoding", "metric", "scored_on", "score", "chosen_by"} & set(
                    type(holder).model_fields
                ):
                    assert getattr(holder, key) is None or (id(holder), key) in looked_up, (paper, type(holder), key)


TARGETS = {
    "results/demo/weighted/table2.csv": None,
    "results/demo/weighted/figure2.svg": None,
    "results/demo/attention/table1.png": None,
    "results/demo/multichannel/claims.md": None,
    "results/table2.md": None,
    "results/site/index.html": None,
    "work/demo/anything": None,
    "weighted": None,
    "results/demo/weighted/tabel2.csv": "unknown name 'tabel2'; allowed: .*" + mean("table2"),
    "results/tabel2.csv": "unknown name 'tabel2'.*" + mean("table2"),
    "results/demo/weigthed/table2.csv": "unknown name 'weigthed'.*" + mean("weighted"),
    "results/demo/weighted/figur2.svg": "unknown name 'figur2'.*" + mean("figure2"),
    "results/demo/weighted/table2.svg": "ending: unknown name 'svg'; allowed: csv, md",
    "results/dmeo/weighted/table2.csv": "unknown name 'dmeo'.*" + mean("demo"),
    "results/small/weighted/table2.csv": "the configured scale is demo; add --config scale=small .*--set scale=small",
    "results/demo/coldfusion/recordings.csv": "made at scale small only; add --config scale=small",
    "results/site": "made with the whole site, by `snakemake .*-- site`",
    "results/site/claims.html": "made with the whole site, by `snakemake .*-- site`",
    "results/demo/plan.csv": "rewritten each time by `snakemake .*-- plan`",
    "wieghted": "target wieghted: unknown name 'wieghted'; allowed: all, weighted.*" + mean("weighted"),
}


@pytest.mark.parametrize(("target", "message"), TARGETS.items(), ids=TARGETS)
def test_a_target_that_nothing_makes_names_those_that_exist(target, message):
    found = unknown_target(real_project({"scale": "demo", "paper": "weighted"}), target, {"all", "weighted"})
    assert found is None if message is None else re.search(message, found)


@pytest.mark.parametrize("digits", ["", "-0123abcd"])
def test_run_named_without_its_sources_gets_a_hint(digits):
    project = real_project({"scale": "demo"})
    run = RunId("weighted", "C", "grammar-en-de", 3)
    found = unknown_target(project, f"{project.layout.runs / run.folder}{digits}/scores/final/dev.json")
    assert (found is None) if digits else found.endswith(f": {project.layout.run(run) / 'scores/final/dev.json'}")


@pytest.mark.parametrize("ask", ["table", "figure", "examples", "transcript_table"])
def test_an_unknown_paper_table_or_figure_names_those_that_exist(ask):
    project = real_project({"scale": "demo"})
    with pytest.raises(UserError, match="unknown name 'weigthed'; allowed: anchors, attention, .*" + mean("weighted")):
        getattr(project, ask)("weigthed", "table2")
    with pytest.raises(UserError, match=r"paper\.yaml: \w+: unknown name 'tabel9'; allowed: "):
        getattr(project, ask)("weighted", "tabel9")
