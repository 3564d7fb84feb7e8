"""Datasets made from a file of two columns, a treebank and a table of recordings, as the stages read them."""

import logging
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml
from copied_project import add_toy_paper

from pipeline.__main__ import main
from pipeline.core.errors import UserError
from pipeline.data.dataset import load_dataset
from pipeline.data.speech.manifest import read_manifest
from pipeline.papers.project import load_project
from pipeline.planning.corpus_size import Corpus
from pipeline.workflow.targets import refuse_names_of_rules
from reprise.__main__ import main as reprise

RATE = 8000
WORDS = ["the", "a", "dog", "cat", "tree", "sees", "likes", "old", "small", "big", "red"]


def tree(draw: random.Random) -> str:
    noun, verb, other = (draw.choice(WORDS) for _ in range(3))
    return f"( (S (NP-SBJ (DT the) (NN {noun})) (VP (VBZ {verb})\n  (NP (-NONE- *) (NN {other}))) (. .)) )\n"


def record_calls(root: Path, speakers: int, each: int) -> None:
    """Write recordings of half a second of noise, listed in `calls.tsv`; all speakers say the same."""
    draw, lines = np.random.default_rng(1), ["speaker\taudio\ttext"]
    (root / "audio").mkdir()
    for speaker in range(speakers):
        for number in range(each):
            audio = f"audio/{speaker}-{number}.wav"
            soundfile.write(root / audio, draw.normal(0, 0.1, RATE // 2), RATE)
            said = f"Call {chr(97 + number)}." if speaker % 2 else f"call {chr(97 + number)}"
            lines.append(f"s{speaker}\t{audio}\t{said}")
    (root / "calls.tsv").write_text("".join(f"{line}\n" for line in lines))


def test_new_dataset_from_a_treebank_has_disjoint_splits(root):
    draw = random.Random(5)
    trees = [tree(draw) for _ in range(120)]
    (root / "news.mrg").write_text("".join(trees))
    assert reprise(["new", "dataset", "news", "--trees", "news.mrg", "--split", "0.8/0.1/0.1"]) == 0
    stage = ["--dataset", str(root / "workflow/datasets/news.yaml"), "--corpus", "corpus"]
    assert main(["collect-trees", *stage, "--downloads", "downloads"]) == 0
    dataset = load_dataset(root / "workflow/datasets/news.yaml")
    expected = Corpus.of(dataset, root / "nothing")
    for name in ("prepare-trees", "subwords", "encode"):
        assert main([name, *stage]) == 0
    made = Corpus.of(dataset, root / "corpus")
    assert (made.pairs, made.tgt_vocab) == (expected.pairs, expected.tgt_vocab)
    assert made.tgt_subwords == pytest.approx(expected.tgt_subwords, abs=0.05)
    found = [(root / f"corpus/prepared/{split}.tok.en").read_text().splitlines() for split in ("train", "dev", "test")]
    assert sum(map(len, found)) == len(trees)
    assert not set(found[0]) & set(found[1]) and not set(found[0]) & set(found[2]) and not set(found[1]) & set(found[2])


@pytest.mark.parametrize(("speakers", "apart"), [(10, True), (2, False)])
def test_new_dataset_from_recordings_reads_the_audio_in_place(root, speakers, apart):
    record_calls(root, speakers, each=60 // speakers)
    assert reprise(["new", "dataset", "calls", "--recordings", "calls.tsv", "--split", "0.6/0.2/0.2"]) == 0
    record = yaml.safe_load((root / "workflow/datasets/calls.yaml").read_text())
    assert (record["sample_rate"], record["high_hz"], record["disjoint_speakers"]) == (RATE, 3800, apart)
    said = {split: list(read_manifest(root / f"data/calls/{split}.tsv")) for split in ("train", "dev", "test")}
    assert sum(map(len, said.values())) == 60
    by = {
        split: {utterance.speaker if apart else utterance.text.lower().strip(".") for utterance in lines}
        for split, lines in said.items()
    }
    assert not by["train"] & by["dev"] and not by["train"] & by["test"] and not by["dev"] & by["test"]
    assert all(utterance.seconds == pytest.approx(0.5) for lines in said.values() for utterance in lines)
    stage = ["--dataset", "workflow/datasets/calls.yaml", "--corpus", "corpus", "--package", "calls=data/calls"]
    assert main(["features", *stage]) == 0


def test_new_dataset_keeps_its_longest_transcript_spelt_out(root):
    """Mr and Mrs are written short in the table, and spelt out for training."""
    record_calls(root, speakers=3, each=1)
    (root / "calls.tsv").write_text((root / "calls.tsv").read_text().replace("call a", "Mr and Mrs Call"))
    assert reprise(["new", "dataset", "calls", "--recordings", "calls.tsv", "--split", "0.4/0.3/0.3"]) == 0
    stage = ["--dataset", "workflow/datasets/calls.yaml", "--corpus", "corpus", "--package", "calls=data/calls"]
    assert main(["features", *stage]) == 0
    spelt = [(root / f"corpus/prepared/{split}.en").read_text() for split in ("train", "dev", "test")]
    assert sorted(spelt) == ["call a\n", "mister and missus call\n", "mister and missus call\n"]


def test_report_on_recordings_names_units_and_speeds(root, capsys):
    record_calls(root, speakers=3, each=4)
    assert reprise(["new", "dataset", "calls", "--recordings", "calls.tsv", "--split", "0.4/0.3/0.3"]) == 0
    with open(root / "workflow/datasets/calls.yaml", "a") as dataset:
        dataset.write("speeds: [0.5, 1.0]\n")
    stage = ["--dataset", "workflow/datasets/calls.yaml", "--package", "calls=data/calls"]
    assert main(["features", *stage, "--corpus", str(load_project(root).layout.corpus("calls"))]) == 0
    assert reprise(["report", "calls"]) == 0
    said = capsys.readouterr().out
    assert "train: 8 read, 8 kept, each recording at 2 speeds\n  src: 584 frames, 73.0 a sentence\n" in said
    assert "test: 4 read, 4 kept\n  src: 192 frames, 48.0 a sentence\n  tgt: 24 characters, 6.0 a sentence\n" in said


def test_recordings_of_several_rates_are_refused(root, refused):
    record_calls(root, 3, each=2)
    soundfile.write(root / "audio/0-1.wav", np.zeros(RATE), 2 * RATE)
    said = refused("new", "dataset", "calls", "--recordings", "calls.tsv")
    assert "recordings have several sampling rates (5 of 8000 Hz, 1 of 16000 Hz, such as audio/0-1.wav)" in said
    assert not (root / "workflow/datasets/calls.yaml").exists()


FIRST_FAULT = "error: calls.tsv: line 8: no transcript"
THREE_FAULTS = f"{FIRST_FAULT}; line 9: gone.wav does not exist; line 10: 1 field, the first line names 3 columns"


@pytest.mark.parametrize(
    ("others", "said"),
    [
        (2, THREE_FAULTS),
        (3, f"{THREE_FAULTS}; 1 more line has a fault"),
        (4, f"{THREE_FAULTS}; 2 more lines have faults"),
    ],
)
def test_faulty_lines_of_recordings_are_named_together(root, refused, others, said):
    record_calls(root, 3, each=2)
    with open(root / "calls.tsv", "a") as table:
        table.writelines(["s0\taudio/0-0.wav\t\n", *["s0\tgone.wav\ttext\n", "x\n", "y\n", "z\n"][:others]])
    assert refused("new", "dataset", "calls", "--recordings", "calls.tsv") == f"{said}\n"


@pytest.mark.parametrize("kind", ["pairs", "trees", "recordings"])
def test_cost_of_a_paper_on_new_data_is_known_before_any_job(root, kind):
    write_data(root)
    assert reprise(["new", "dataset", "mine", *MARKED[kind][0]]) == 0
    assert reprise(["new", "paper", "my-paper", "--dataset", "mine"]) == 0
    project = load_project(root, {"scale": "smoke", "paper": "my-paper"})
    found = Corpus.of(project.dataset_records["mine"], project.layout.corpus("mine"))
    assert found.encoded is None and sum(found.pairs.values()) == {"recordings": 20}.get(kind, 100)
    assert all(np.mean(side) > 1 for side in found.lengths)


@pytest.mark.parametrize("splits", [[], ["--dev", "raw.en", "raw.de", "--test", "talk.en", "talk.de"]])
def test_new_dataset_refuses_tokenised_text(root, refused, splits):
    for name, end in (("talk", " ."), ("raw", ".")):
        for side in ("en", "de"):
            (root / f"{name}.{side}").write_text("".join(f"{side} {number}{end}\n" for number in range(100)))
    words = ["--src", "talk.en", "--tgt", "raw.de" if splits else "talk.de"]
    said = refused("new", "dataset", "mine", *words, *splits)
    assert "talk.de: looks tokenised (100 of 100 final stops are separate" in said and "sacremoses -l de deto" in said
    assert not (root / "workflow/datasets/mine.yaml").exists() and not (root / "data").exists()
    assert reprise(["new", "dataset", "mine", "--src", "talk.en", "--tgt", "raw.de"]) == 0  # sources aren't scored


def test_remedy_detokenises_only_the_second_column_of_pairs(root, refused):
    """`sacremoses` removes the tab, and with it the columns."""
    (root / "my talk.tsv").write_text("".join(f"en {number}\tde {number} .\n" for number in range(100)))
    said = refused("new", "dataset", "mine", "--pairs", "my talk.tsv", "--languages", "en", "de")
    (command,) = re.findall("`(.*)`", said)
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    subprocess.run(command, shell=True, check=True, cwd=root, env=os.environ | {"PATH": path})
    assert (root / "RAW").read_text().splitlines() == [f"de {number}." for number in range(100)]


@pytest.mark.parametrize("name", ["all", "speak"])
def test_a_paper_is_not_called_as_a_rule_is(root, refused, name):
    said = refused("new", "paper", name, "--dataset", "wmt14-en-de")
    assert f"error: {name}: is the name of a Snakemake rule" in said
    add_toy_paper(root).rename(root / "workflow/papers" / name)
    with pytest.raises(UserError, match=f"workflow/papers/{name}: is the name of a Snakemake rule"):
        refuse_names_of_rules(load_project(root))


MARKED = {
    "sentences": (["--src", "talk.en", "--tgt", "talk.de"], "talk.*"),
    "pairs": (["--pairs", "talk.tsv", "--languages", "en", "de"], "talk.tsv"),
    "trees": (["--trees", "news.mrg"], "news.mrg"),
    "recordings": (["--recordings", "calls.tsv"], "calls.tsv"),
}
"""Options that name data of each kind, and its files."""


def write_data(root: Path) -> None:
    """Write a hundred sentences, pairs and trees, and twenty recordings."""
    draw = random.Random(4)
    texts = [[" ".join(draw.choices(WORDS, k=5)) for _ in range(100)] for _ in range(2)]
    for side, lines in zip(("en", "de"), texts, strict=True):
        (root / f"talk.{side}").write_text("".join(f"{line}\n" for line in lines))
    (root / "talk.tsv").write_text("".join(f"{first}\t{two}\n" for first, two in zip(*texts, strict=True)))
    (root / "news.mrg").write_text("".join(tree(draw) for _ in range(100)))
    record_calls(root, 10, each=2)


@pytest.mark.parametrize("kind", MARKED)
def test_a_byte_order_mark_changes_nothing_that_is_written(root, kind):
    write_data(root)
    words, files = MARKED[kind]
    written = []
    for mark in ("", "\ufeff"):
        for path in root.glob(files):
            path.write_text(mark + path.read_text(encoding="utf-8"), encoding="utf-8")
        assert reprise(["new", "dataset", "mine", *words, "--split", "0.6/0.2/0.2"]) == 0
        written.append({path.name: path.read_bytes() for path in (root / "data/mine").iterdir()})
        (root / "workflow/datasets/mine.yaml").unlink()
    assert written[0] == written[1] and len(written[0]) >= 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pairs", "calls.tsv", "--languages", "en", "de"], "line 1: 3 columns"),
        (["--pairs", "calls.tsv"], "--languages: name the languages of the two columns"),
        (["--trees", "calls.tsv"], "stands outside a tree"),
        (["--recordings", "audio/0-0.wav"], "; name a table in UTF-8 with the columns audio and text"),
        (["--recordings", "short.tsv"], "missing: text"),
        (["--recordings", "late.tsv"], "line 2: ends 0.50 s after"),
        (["--recordings", "beyond.tsv"], "line 2: starts at 9 s, but audio/0-0.wav has 0.50 s"),
        (["--recordings", "gone.tsv"], "line 4: x.wav does not exist"),
        (["--recordings", "wide.tsv"], "line 2: 3 fields, the first line names 2 columns"),
        (["--recordings", "silent.tsv"], "line 2: has no sound"),
        (["--recordings", "two.tsv"], "audio/two.wav has 2 channels; keep one of them: sox IN"),
        (["--recordings", "calls.tsv", "--trees", "calls.tsv"], "name the data"),
    ],
)
def test_data_faults_are_one_line_errors_and_write_nothing(root, refused, caplog, words, message):
    caplog.set_level(logging.INFO)
    record_calls(root, 3, each=2)
    soundfile.write(root / "audio/two.wav", np.zeros((RATE, 2)), RATE)
    (root / "two.tsv").write_text("audio\ttext\naudio/two.wav\thello\n")
    (root / "short.tsv").write_text("audio\nx.wav\n")
    (root / "gone.tsv").write_text("audio\ttext\n\n\nx.wav\thello\n")
    (root / "wide.tsv").write_text("audio\ttext\naudio/0-0.wav\thello\tyou\n")
    (root / "silent.tsv").write_text("audio\ttext\tseconds\naudio/0-0.wav\thello\t0\n")
    (root / "beyond.tsv").write_text("audio\ttext\tstart\naudio/0-0.wav\thello\t9\n")
    (root / "late.tsv").write_text("audio\ttext\tseconds\naudio/0-0.wav\thello\t1\n")
    assert message in refused("new", "dataset", "mine", *words) and not caplog.messages
    assert not (root / "workflow/datasets/mine.yaml").exists()
