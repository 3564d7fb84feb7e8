"""Every reference is checked when a project is loaded; a typo gets one line with a suggestion."""

import re
from pathlib import Path

import pytest
from real_project import real_project

from pipeline.analysis.reference_types import names_in
from pipeline.core.errors import UserError
from pipeline.workflow.targets import unknown_target

PAPER, CLAIMS = "workflow/papers/weighted/paper.yaml", "workflow/papers/weighted/claims.yaml"
DEMO, PLATEAU, CONFIG = "workflow/scales/demo.yaml", "workflow/scales/plateau.yaml", "config.yaml"
ATTENTION, ANCHORS, MULTICHANNEL = (
    f"workflow/papers/{paper}/paper.yaml" for paper in ("attention", "anchors", "multichannel")
)
LENGTHS = "workflow/papers/attention/claims.yaml"
WSJ, SPEECH, AN4 = (f"workflow/datasets/{name}.yaml" for name in ("wsj", "grammar-speech-target", "an4"))
LANGUAGE_MODEL = "coldfusion/lm-ful@source-text"
TUNED_WITH, COLUMN = "decodings|joint-lm-folds|tuned_with|0", "tables|table3|cells|bleu|decoding_column"


def faults(edited, *changes: tuple) -> list[str]:
    """Return the lines that changed files are refused with; each change is a file, a key and a value."""
    for change in changes:
        edited.put(*change)
    with pytest.raises(UserError) as caught:
        for fault in edited.load().dataset_records.faults.values():
            raise fault
    return str(caught.value).split("\n")


def mean(name: str) -> str:
    return re.escape(f"; did you mean '{name}'?")


CELL = "tables|table2|cells|bleu"
FOLDS = "systems|joint-an4-without-{}|decodings|joint-lm-folds"
FOLD_J, FOLD_M = (f"joint-an4-without-{letter}@an4-without-{letter}" for letter in "jm")
SELF = {"kind": "close", "statement": "", "printed": "", "score": "bleu", "terms": ["A", {"system": "A"}], "margin": 1}
PAIR = {"kind": "long_sentences", "statement": "", "printed": "", "score": "bleu", "longer_than": 9}
PROVED = {"kind": "test", "statement": "", "printed": "", "tests": ["a.py"]}
SCALED = "systems|C-split-cross-scaled|model|branch_scale"
FITS_NONE = r"readings\.scale: system C-split-cross-start: model\.branch_scale start fits no choice; add one"
BASES = r"weighted/paper\.yaml: decodings: "
OTHER = {"dataset": "wmt14-en-de", "system": "other"}
NO_SOURCE = "dataset: 'source' has no stand-in at scale demo, only at medium, paper, plateau, small, smoke"
TOGETHER = {
    "names in a paper": [
        (PAPER, f"{CELL}|metric", "bleu_papr", ": unknown name 'bleu_papr'; .*" + mean("bleu_paper")),
        (PAPER, f"{CELL}|dataset", "wmt14-en-ed", ": unknown name 'wmt14-en-ed'.*" + mean("wmt14-en-de")),
        (PAPER, f"{CELL}|scored_on", "wmt", ": unknown name 'wmt'; allowed: .*wsj"),
        (PAPER, "tables|table2|scales", ["dmeo"], ".0: unknown name 'dmeo'.*" + mean("demo")),
        (PAPER, "systems|N8|base", "AA", ": unknown name 'AA'; allowed: A, A-16, A-32, B.*" + mean("A")),
        (PAPER, "systems|N4|datasets", {"wsjj": "wsj"}, ".wsjj: unknown name.*" + mean("wsj")),
        (PAPER, "systems|N4|decodings", {"finl": {}}, ".finl: unknown name.*" + mean("final")),
        (PAPER, "systems|N4|initial", "A@wmt14-en-fe", ": unknown name 'wmt14-en-fe'"),
        (PAPER, "systems|N4|language_model", LANGUAGE_MODEL, ": unknown name 'lm-ful'.*" + mean("lm-full")),
        (PAPER, "figures|figure3|system", "CC", ": unknown name 'CC'.*" + mean("C")),
        (PAPER, "deviations|0|systems", ["attention/bsae"], ".0: unknown name 'bsae'.*" + mean("base")),
        (PAPER, "readings|scale|of", "CC", r"readings\.scale\.of.*unknown.*'CC'"),
    ],
    "a base and a decoding": [
        (PAPER, "systems|N4|base", "atention/base", ": unknown name 'atention'.*" + mean("attention")),
        (PAPER, "systems|N4|initial", "A", ": 'A': write system@dataset"),
        (PAPER, f"{CELL}|decoding", "finl", ": unknown name 'finl'.*" + mean("final")),
        (PAPER, f"{CELL}|split", "test3", r": of dataset grammar-\S+: .* 'test3'; allowed: dev, test, test2"),
        (PAPER, f"{CELL}|metric", "wer", r": of dataset \S+ \(sentences\): .* 'wer'; allowed: [^;]*sacrebleu"),
    ],
    "a language model of a decoding": [
        (PAPER, "decodings|final|language_model", "lm@wsj", ": unknown name 'lm'"),
    ],
    "names in claims": [
        (CLAIMS, "claims|better-large|scales", ["dmeo"], ".0: unknown name 'dmeo'.*" + mean("demo")),
        (CLAIMS, "claims|faster-six-layers|system", "AA", ": unknown name 'AA'"),
        (CLAIMS, "scores|bleu|metric", "bleu_papr", ": unknown name.*" + mean("bleu_paper")),
        (LENGTHS, "claims|self-attention-length|layer", "self-atention", ": unknown name.*" + mean("self-attention")),
    ],
    "a decoding of another owner": [
        (PAPER, f"{CELL}|decoding", "uniform", "row 2: decoding of attention/C1: unknown name 'uniform'"),
    ],
    "a metric of a claim's score": [
        (CLAIMS, "scores|bleu|metric", "f1", r"scores\.bleu, of claim \S+\.metric: of dataset .*: unknown name 'f1'"),
    ],
    "a decoding of a claim's score": [
        (CLAIMS, "scores|bleu|decoding", "uniform", "of attention/C1 in claim better-two-layers: .* 'uniform'"),
    ],
    "names in a scale": [
        (DEMO, "model|d_fff", {"divide": 8}, ": unknown name 'd_fff'.*" + mean("d_ff")),
        (DEMO, "training|max_step", {"divide": 8}, ": unknown name.*" + mean("max_steps")),
        (DEMO, "systems|weighted/A|model", {"droput": {"set": 0.1}}, ".droput: .*" + mean("dropout")),
        (DEMO, "systems|attention/bsae", {}, "systems: unknown name 'attention/bsae'.*" + mean("attention/base")),
        (DEMO, "training|precision", {"set": "fp8"}, ".set: Input should be 'fp32' or 'bf16', got 'fp8'"),
        (DEMO, "training|optimiser", {"divide": 2}, ": not a number, so it can't be divided"),
        (DEMO, "datasets|wmt14-en-dd", "grammar-en-de", "unknown name 'wmt14-en-dd'.*" + mean("wmt14-en-de")),
        (DEMO, "datasets|wsj", "grammar-tree", ": unknown name 'grammar-tree'.*" + mean("grammar-trees")),
    ],
    "names in datasets": [
        (WSJ, "otherwise", "crft", "wsj.yaml: otherwise: .*'crft'.*" + mean("craft")),
        (SPEECH, "gap|source", "grammar-speech-sorce", ": .*'grammar-speech-sorce'.*" + mean("grammar-speech-source")),
    ],
    "a source": [
        (AN4, "splits|dev|0|source", "an4.tra", "splits name an4.tra, but it is neither .*" + mean("an4.tar"))
    ],
    "a circle of bases": [(PAPER, "systems|A|base", "C", "systems.A: its bases form a cycle")],
    "a circle of weights": [
        (PAPER, "systems|N4|initial", "N4@wmt14-en-de", "systems.N4: it loads its own weights, in a circle"),
    ],
    "a base of a decoding": [(PAPER, "decodings|final|base", "attention/finl", BASES + ".*'finl'.*" + mean("final"))],
    "a paper of a decoding": [(PAPER, "decodings|final|base", "atention/final", BASES + ".*" + mean("attention"))],
    "a circle of decodings": [
        (PAPER, "decodings|final|base", "uniform", BASES + "the bases of weighted/.* form a cycle")
    ],
    "a key of a decoding": [
        (PAPER, "systems|N4|decodings", {"final": {"beam_siz": 4}}, "N4: decodings.final: .*" + mean("beam_size")),
    ],
    "a decoding that nobody uses": [
        (PAPER, "decodings|unused", {"lm_weight": 0.3}, r"decodings\.unused: .*need a language_model"),
    ],
    "a model that models no language": [
        (PAPER, "decodings|final|language_model", "A@wsj", "'A@wsj' is not a language model .architecture weighted"),
    ],
    "further runs of tuned weights": [
        (ANCHORS, f"{FOLDS.format('j')}|tuned_with", [FOLD_M], f"'{FOLD_J}' is itself tuned with others; set"),
        (ANCHORS, f"{FOLDS.format('m')}|lm_weights", [0.2], rf"tuned_with: '{FOLD_M}' tries other weights; give both"),
        (ANCHORS, f"{FOLDS.format('s')}|word_bonuses", [1.0], "an4-without-s@an4-without-s' tries other weights"),
    ],
    "a further run without the decoding": [
        (ANCHORS, TUNED_WITH, "weighted/A@wsj", r"joint-an4, .*tuned_with: 'weighted/A@wsj': .* 'joint-lm-folds'"),
    ],
    "an average of checkpoints that are not kept": [
        (PAPER, "decodings|final|average_last", 500, r"demo: decodings\.final: average_last: \d+ are more checkpoints"),
    ],
    "an average of checkpoints without a loss": [
        (PAPER, "decodings|final|averaged", "best", r"best needs a checkpoint_every \(here 50\) that is a multiple of"),
    ],
    "several settings": [
        (CONFIG, "seeds", [], r": List should have at least 1 item.*got \[\]"),
        (CONFIG, "mirror", "/dev/null/folder", ": must be an existing folder or a URL .*got '/dev"),
        (CONFIG, "work", "", ": .*at least 1 character"),
    ],
    "the work folder and seeds": [
        (CONFIG, "seeds", [1, 1], r": a seed is listed twice; remove one, got \[1, 1\]"),
        (CONFIG, "mirror", "ftp://host/data", ": must be an existing folder or a URL .*https.*got 'ftp://host/"),
        (CONFIG, "work", "$NO_SUCH/x", ": has an unknown user or an unset variable.*NO_SUCH"),
    ],
    "the mirror and seeds": [
        (CONFIG, "seeds", 100_000_000, ": .*less than or equal to 1000, got 100000000"),
        (CONFIG, "mirror", "~no-such-user", ": has an unknown user or an unset variable"),
    ],
    "a negative seed": [(CONFIG, "seeds", [-1], ".0: .*greater than or equal to 0, got -1")],
    "a package": [(CONFIG, "licensed", {"LDC99T4": "/x"}, ": unknown name 'LDC99T4'.*" + mean("LDC99T42"))],
    "the paper": [(CONFIG, "paper", "weigthed", ": .* 'weigthed'.*" + mean("weighted"))],
    "the scale": [(CONFIG, "scale", "dmeo", ": unknown name 'dmeo'.*" + mean("demo"))],
    "the base of a scale": [(PLATEAU, "base", "smal", ": unknown name 'smal'.*" + mean("small"))],
    "a scale as its own base": [(PLATEAU, "base", "plateau", ": the bases form a cycle, plateau -> plateau")],
    "a job": [(DEMO, "resources|trian", {}, ": .*" + mean("train"))],
    "a printed number": [
        (PAPER, f"{CELL}|printed", "model", "line 2: model: Input should be a valid number.*Transformer"),
    ],
    "a column of systems": [(PAPER, f"{CELL}|system", "sytem", "no column sytem; it has .*" + mean("system"))],
    "a column of decodings": [(PAPER, COLUMN, "decodng", "no column decodng.*" + mean("decoding"))],
    "a system that sizes are of": [
        (PAPER, "tables|table2|cells|parameters|vocab_of", {"BB": 3}, "vocab_of: unknown name 'BB'; .*" + mean("B")),
    ],
    "a claim's score": [
        (CLAIMS, "claims|better-large|score", "bluu", "better-large: no score 'bluu'; there are .*" + mean("bleu")),
    ],
    "a dataset without a file": [(DEMO, "datasets", {"wmt14-en-de": "grammar-en-de"}, NO_SOURCE)],
    "a setting": [(CONFIG, "sede", 1, ": unknown key; allowed: .*seeds")],
    "a key and a value of a model": [
        (ATTENTION, "systems|base|model|dropuot", 0.1, "model: transformer.dropuot: unknown key; allowed: .*dropout"),
        (ATTENTION, "systems|base|model|dropout", 1.5, "dropout: Input should be less than 1, got 1.5"),
    ],
    "a label": [(PAPER, "tables|table2|label", ["model", "colour"], "no column colour; it has model")],
    "a table of examples": [(MULTICHANNEL, "examples|table3|printed", "table2.csv", r"table2\.csv: no column item")],
    "a rule and a key of a scale": [
        (DEMO, "model|d_model", {"divide": 8, "set": 3}, "needs exactly one of divide, multiply, set"),
        (DEMO, "dataset", {}, ": unknown key; allowed: .*datasets"),
    ],
    "a reading of no system": [
        (PAPER, SCALED, "one", r"scale\.choices\.weights: no system has its settings"),
    ],
    "a default that is no choice": [(PAPER, "readings|scale|default", "two", ": unknown name 'two'; allowed: one")],
    "a system of no reading": [
        (PAPER, "readings|scale|choices|start|settings", {"model.branch_scale": "middle"}, FITS_NONE),
    ],
    "a key of a reading": [(PAPER, "readings|scale|reason", "x", "reason")],
    "a decoding with the name of another manifest": [
        (PAPER, "decodings|training", {}, ": this name has another meaning")
    ],
    "a claim about one system": [
        (CLAIMS, "claims|x", SELF, r"claims\.x\.close\.terms: lists A twice; name different"),
        (CLAIMS, "claims|y", PAIR | {"system": "A", "baseline": "A"}, r"claims\.y\.long_sentences: lists A twice"),
    ],
    "a claim's test": [(CLAIMS, "claims|x", PROVED, ".test.tests.0: .*got 'a.py'")],
}
"""Changes made at once (file, key, value), each with the message that one of the lines matches.

A message that begins with a colon or a full stop follows the name of the file and the key.
"""


@pytest.mark.parametrize("changes", TOGETHER.values(), ids=TOGETHER)
def test_a_typo_is_refused_with_what_is_meant(edited, changes):
    lines = faults(edited, *(change[:3] for change in changes))
    if all("reading" in key for _, key, *_ in changes):  # other names are of several places, with a line each
        assert len(lines) == len(changes)
    for file, key, _, message in changes:
        place = f"{Path(file).name}: {key.replace('|', '.')}{message[0]}"
        expected = re.escape(place) + message[1:] if message[0] in ".:" else message
        assert any(re.search(expected, line) for line in lines), (expected, lines)
    assert all(line.isprintable() for line in lines)


def test_faults_beyond_the_first_twenty_are_counted(edited):
    lines = faults(edited, (DEMO, "seeds", {f"weighted/x{number}": 1 for number in range(23)}))
    assert len(lines) == 21 and lines[-1] == "and 3 more faults"


def test_a_row_to_run_without_a_system_is_refused(edited):
    table = edited.path("workflow/papers/weighted/table2.csv")
    table.write_text(re.sub(",C(?=,|$)", ",", table.read_text(), flags=re.MULTILINE))
    with pytest.raises(UserError, match=r"table2\.csv: row 3: system: names no system to run"):
        edited.load()


def test_a_row_to_run_without_a_decoding_is_refused(edited):
    table = edited.path("workflow/papers/weighted/table3.csv")
    table.write_text(re.sub(",uniform$", ",", table.read_text(), flags=re.MULTILINE))
    with pytest.raises(UserError, match=r"table3\.csv: row 4: decoding: names no decoding of C; name one$"):
        edited.load()


def test_a_column_that_no_row_to_run_fills_is_refused(edited):
    table = edited.path("workflow/papers/weighted/table3.csv")
    first, *rows = table.read_text().splitlines()
    table.write_text("\n".join([f"{first},other", *(f"{row}," for row in rows)]))
    (line,) = faults(edited, (PAPER, "tables|table3|cells|more", {"kind": "parameters", **OTHER}))
    fault = "no row to run names a system in the column other of table3.csv; name one, or remove the cell"
    assert line == f"{PAPER}: tables.table3.cells.more: {fault}"


def test_the_best_of_a_single_checkpoint_is_allowed(edited):
    """It is the last one, which is always validated."""
    rules = {"max_steps": 10, "checkpoint_every": 10, "validate_every": 20, "branch_freeze_steps": 5}
    edited.put(
        "workflow/scales/smoke.yaml", "systems|weighted/C|training", {key: {"set": n} for key, n in rules.items()}
    )
    edited.put(PAPER, "systems|C|decodings", {"final": {"averaged": "best"}})
    assert edited.load(scale="smoke").decoding("weighted", "C", "final").averaged == "best"
    edited.put("workflow/scales/smoke.yaml", "systems|weighted/C|training|max_steps", {"set": 11})
    with pytest.raises(UserError, match=r"C at scale smoke: decodings\.final: averaged: best needs"):
        edited.load(scale="smoke")


def test_a_system_that_only_a_deviation_names_gets_a_warning(edited):
    assert edited.load().untrained == []
    edited.put(PAPER, "systems|lonely", {"base": "A", "description": "forgotten"})
    edited.put(PAPER, "deviations|0|systems", ["lonely"])
    (warning,) = edited.load().untrained
    assert warning.startswith(f"{PAPER}: systems.lonely: nothing trains it; name it in the CSV of a table")


@pytest.mark.parametrize("name", ["My Data", "a.b"])
@pytest.mark.parametrize("kind", ["papers/weighted", "scales/demo.yaml", "datasets/wsj.yaml"])
def test_file_names_that_fit_no_path_of_a_rule_are_refused(edited, kind, name):
    path = edited.root / "workflow" / kind
    (copy := path.with_name(name + path.suffix)).symlink_to(path)
    try:
        with pytest.raises(UserError, match="a name has only letters, digits, `-` and `_`; rename it"):
            raise edited.load().dataset_records.faults[name]
    finally:
        copy.unlink()


@pytest.mark.parametrize("name", ["site", "corpora", "downloads"])
def test_scales_named_like_other_folders_are_refused(edited, name):
    path = edited.root / "workflow/scales/smoke.yaml"
    (copy := path.with_stem(name)).symlink_to(path)
    try:
        with pytest.raises(UserError, match=rf"{name}\.yaml: rename it; .* has a folder {name} with another use"):
            edited.load()
    finally:
        copy.unlink()


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
    "results/weighted/table2.csv": r"results/demo/weighted/table2\.csv$",
    "tabel2": r"or a file, such as results/table2\.csv$",
    "wieghted": "target wieghted: unknown name 'wieghted'; allowed: all, weighted.*" + mean("weighted"),
}


@pytest.mark.parametrize(("target", "message"), TARGETS.items(), ids=TARGETS)
def test_a_target_that_nothing_makes_names_those_that_exist(target, message):
    found = unknown_target(real_project({"scale": "demo", "paper": "weighted"}), target, {"all", "weighted"})
    assert found is None if message is None else re.search(message, found)


@pytest.mark.parametrize("ask", ["table", "figure", "examples", "transcript_table"])
def test_an_unknown_paper_table_or_figure_names_those_that_exist(ask):
    project = real_project({"scale": "demo"})
    with pytest.raises(UserError, match="unknown name 'weigthed'; allowed: anchors, attention, .*" + mean("weighted")):
        getattr(project, ask)("weigthed", "table2")
    with pytest.raises(UserError, match=r"paper\.yaml: \w+: unknown name 'tabel9'; allowed: "):
        getattr(project, ask)("weighted", "tabel9")
