"""From two text files to a table, a translation, a packed model and one for CTranslate2, by commands alone."""

import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import yaml
from cipher import cipher, write_texts
from copied_project import call, copy_project, environment_of, require
from real_project import load_once

import reprise as api
from pipeline.core.errors import UserError
from pipeline.data.batches.corpus_batches import EvalBatches
from pipeline.search.beam_search import beam_search
from reprise.__main__ import main as reprise
from reprise.cli.decode import chunks_of_file, decode_lines
from reprise.ctranslate2 import ctranslate2_search
from reprise.model_input import GivenText
from reprise.opening import open_model

pytestmark = pytest.mark.slow

RUN = "mine/baseline/cipher"
SMOKE = ["--set", "scale=smoke"]
SMALL = {
    "model": {"num_layers": 4, "d_model": 1024, "d_ff": 4096, "dropout": 0.0},
    "training": {"max_steps": 1000000, "warmup_steps": 20000, "lr_factor": 0.2, "label_smoothing": 0.0},
}
SEARCH = "final,beam=8,length_normalisation=none"
"""Decoding whose hypotheses CTranslate2 ranks alike."""
SENTENCE = "doctors like rivers today."


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """Return a project in which commands created a dataset and a paper, and made the table, with few words."""
    root = copy_project(tmp_path_factory.mktemp("own"))
    write_texts(root)
    begun = ["new", "dataset", "cipher", "--src", "talk.en", "--tgt", "talk.xx", "--split", "0.9/0.05/0.05"]
    require(call(root, "reprise", *begun))
    require(call(root, "reprise", "new", "paper", "mine", "--dataset", "cipher"))
    path = root / "workflow/papers/mine/paper.yaml"
    paper = yaml.safe_load(path.read_text())
    paper["systems"]["baseline"] |= SMALL
    paper["systems"]["changed"]["training"] = {"max_steps": 20000}  # of which ten are done
    path.write_text(yaml.safe_dump(paper))
    events = require(call(root, "reprise", "make", "mine", *SMOKE))
    assert ": done, dev perplexity" in events and "made of 2 trainings" in events and events.count("\n") < 60
    assert " scores, 2 reports, in results/smoke/mine; " in events
    return root


@pytest.fixture(autouse=True)
def here(root, monkeypatch):
    monkeypatch.chdir(root)
    load_once(monkeypatch, root, root)


@pytest.fixture(scope="module")
def packed(root, tmp_path_factory) -> Path:
    """Return the folder of the model's archive, unpacked elsewhere."""
    folder = tmp_path_factory.mktemp("elsewhere")
    require(call(root, "reprise", "pack", RUN, str(folder / "cipher.tar"), *SMOKE))
    assert reprise(["unpack", str(folder / "cipher.tar"), str(folder)]) == 0
    return folder / "cipher"


def said(capsys, *words: object) -> str:
    assert reprise(list(map(str, words))) == 0
    return capsys.readouterr().out


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def test_own_text_becomes_a_scored_table_and_translates(capsys):
    table = api.table("mine", "table1", scale="smoke").set_index("model")
    assert table["score_ours"]["baseline (attention/base)"] > 95
    assert table["score_test_set"].str.startswith("cipher-test (").all()
    Path("one.en").write_text(f"{SENTENCE}\n\n")
    assert said(capsys, "translate", RUN, *SMOKE, "one.en") == f"{cipher(SENTENCE)}\n\n"
    assert said(capsys, "translate", "mine/baseline", *SMOKE, "one.en") == f"{cipher(SENTENCE)}\n\n"


def test_the_site_shows_own_text_and_names_it(tmp_path, caplog):
    out = tmp_path / "site"
    assert reprise(["site", *SMOKE, "--out", str(out)]) == 0
    shown = "".join(path.read_text(encoding="utf-8") for path in out.rglob("*.js"))
    assert all(line in shown for line in lines(Path("data/cipher/test.en"))[:5])
    assert f"{out}: shows text of cipher; check its licence before you publish the site" in caplog.text
    assert "Does half the dropout help on cipher?" in (out / "index.html").read_text(encoding="utf-8")


def test_the_command_writes_what_the_workflow_decoded(capsys):
    (workflow,) = Path("work/smoke").glob("runs/mine/baseline/*/*/translations/final/test.txt")
    assert said(capsys, "translate", RUN, "data/cipher/test.en", *SMOKE).split("\n")[:-1] == lines(workflow)
    assert len(set(lines(workflow))) > 95


def test_lines_from_standard_input_are_answered_one_by_one(root, packed):
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    command = [sys.executable, "-m", "reprise", "translate", str(packed)]
    with subprocess.Popen(command, env=environment_of(root, is_warm=False), **streams) as process:
        for sentence in (SENTENCE, "", "cooks see cars often!"):
            process.stdin.write(f"{sentence}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{cipher(sentence)}\n"
        process.stdin.write("guests sell bread here.")  # the last line has no end
        process.stdin.close()
        assert process.stdout.read() == f"{cipher('guests sell bread here.')}\n"


def test_a_named_run_is_trained_further():
    runs = Path("work/smoke/runs/mine/changed")
    (before,) = runs.glob("*/*/run.yaml")
    steps = yaml.safe_load(before.read_text())["training"]["max_steps"] + 5
    assert reprise(["continue", "mine/changed/cipher", "--steps", str(steps), *SMOKE]) == 0
    (after,) = set(runs.glob("*/*/run.yaml")) - {before}
    assert json.loads((after.parent / "done.json").read_text())["steps"] == steps


def test_packed_model_works_without_the_work_folder(root, packed, capsys, monkeypatch):
    there = said(capsys, "translate", RUN, "data/cipher/test.en", *SMOKE)
    (root / "work").rename(root / "gone")
    try:
        monkeypatch.chdir(packed.parent)
        assert said(capsys, "translate", packed, root / "data/cipher/test.en") == there
    finally:
        (root / "gone").rename(root / "work")
    card = (packed / "README.md").read_text()
    assert "cipher-test" in card and "may not be redistributed" in card and str(root) not in card
    assert not any(str(root).encode() in path.read_bytes() for path in packed.iterdir())
    require(call(packed, "sha256sum", "--check", "SHA256SUMS"))


@pytest.mark.parametrize("name", ["model.json", "model.safetensors", "subwords.model", "SHA256SUMS"])
def test_a_packed_model_of_which_a_byte_changed_is_refused(packed, tmp_path, refused, name):
    shutil.copytree(packed, tmp_path / "model")
    path = tmp_path / "model" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    for command in ("translate", "unpack"):
        assert "copy or download the model again" in refused(command, tmp_path / "model")


def test_ctranslate2_gives_the_same_translations_and_scores(tmp_path):
    ctranslate2 = pytest.importorskip("ctranslate2")
    model = open_model(RUN, SEARCH, {"scale": "smoke"}, 1)
    assert reprise(["export", RUN, str(tmp_path / "ct2"), "--decoding", "final", *SMOKE]) == 0
    tokens = [model.preparation.tokens(line) for line in lines(Path("data/cipher/test.en"))]
    subwords = model.symbols[0].model
    translator = ctranslate2.Translator(str(tmp_path / "ct2"), compute_type="float32")
    pieces = [subwords.encode(line, out_type=str) for line in tokens]
    theirs = translator.translate_batch(pieces, beam_size=8, length_penalty=0, return_scores=True)
    ours = model.decode_tokens(dict(enumerate(tokens)))
    assert [subwords.decode(result.hypotheses[0]) for result in theirs] == ours
    assert len(set(ours)) >= 0.99 * len(tokens)
    ((order, batch),) = EvalBatches(GivenText("test", model.symbols[0].encode(tokens)), 10**6)
    scores = np.empty(len(tokens))
    scores[order] = [best.log_prob for best, *_ in beam_search(model.trained.model, batch, model.config)]
    assert [result.scores[0] for result in theirs] == pytest.approx(scores, abs=0.02)  # nats, summed over a sentence


def test_translate_gives_the_same_text_with_ctranslate2(capsys):
    """Compare without normalisation; with it, CTranslate2 may stop at its first eight outputs."""
    text = "data/cipher/test.en"

    def translated(decoding: str, *more: str) -> list[str]:
        return said(capsys, "translate", RUN, text, "--decoding", decoding, *SMOKE, *more).splitlines()

    assert translated(SEARCH, "--ctranslate2", "float32") == translated(SEARCH)
    normalised = "final,beam=8,length_normalisation=length,alpha=1"
    ours = translated(normalised)
    for numbers, least in (("float32", 0.95), ("int8", 0.9)):
        theirs = translated(normalised, "--ctranslate2", numbers)
        assert np.mean([first == other for first, other in zip(theirs, ours, strict=True)]) >= least


def test_ctranslate2_finds_no_better_output_than_our_search():
    model = open_model(RUN, "final,beam=8,length_normalisation=length,alpha=1", {"scale": "smoke"}, 1)
    tokens = [model.preparation.tokens(line) for line in lines(Path("data/cipher/test.en"))]
    ((_, batch),) = EvalBatches(GivenText("test", model.symbols[0].encode(tokens)), 10**6)
    ours = beam_search(model.trained.model, batch, model.config)
    for theirs, (best, *_) in zip(ctranslate2_search(model, "float32")(batch), ours, strict=True):
        assert theirs.score <= best.score + 1e-3  # nats a symbol
        assert theirs.tokens != best.tokens or theirs.log_prob == pytest.approx(best.log_prob, abs=0.02)


def test_line_of_too_many_subwords_is_refused_by_either_search(refused):
    Path("long.en").write_text(f"{SENTENCE}\n" + "a " * 2500 + "\n")
    search = ["--decoding", "length_normalisation=length,alpha=1", "--ctranslate2", "float32"]
    for more in (search, []):
        said = refused("translate", RUN, "long.en", *more, *SMOKE)
        assert "1 line has more than 2,047 subwords; write a sentence per line, unlike long.en, line 2" in said


def test_lines_of_later_chunks_are_numbered_on(monkeypatch):
    monkeypatch.setattr("reprise.cli.decode.LINES_AT_ONCE", 2)
    Path("five.en").write_text("a\nb\nc\nd\ne\n")
    chunks = [*chunks_of_file(Path("five.en"))]
    assert [chunk.lines for chunk in chunks] == [["a", "b"], ["c", "d"], ["e"]]
    assert [chunk.place(1) for chunk in chunks] == ["five.en, line 1", "five.en, line 3", "five.en, line 5"]
    places = [chunk.place(len(chunk.lines)) for chunk in decode_lines([b"a", b"b", b"c"], read=5)]
    assert places == ["standard input, line 7", "standard input, line 8"]


def test_a_pipe_is_read_as_a_file_is(capsys):
    read, write = os.pipe()
    os.write(write, f"{SENTENCE}\n".encode())
    os.close(write)
    assert said(capsys, "translate", RUN, f"/dev/fd/{read}", *SMOKE) == f"{cipher(SENTENCE)}\n"
    os.close(read)


def test_a_dash_names_standard_input(capsys, monkeypatch):
    Path("in.en").write_text(f"{SENTENCE}\n")
    with open("in.en") as read:
        monkeypatch.setattr(sys, "stdin", read)
        assert said(capsys, "translate", RUN, "-", *SMOKE) == f"{cipher(SENTENCE)}\n"
    with open("in.en") as read:
        monkeypatch.setattr(sys, "stdin", read)
        assert said(capsys, "translate", RUN, "in.en", "-", *SMOKE) == f"{cipher(SENTENCE)}\n" * 2


def test_standard_input_that_is_not_utf8_is_refused():
    found = decode_lines([b"a dog .", b"caf\xe9"], read=5)
    assert next(found).lines == ["a dog ."], "what came before is translated"
    with pytest.raises(UserError, match=r"standard input, line 7: not UTF-8 \(.* at byte 3\); convert it first"):
        next(found)


def test_a_line_that_is_no_sentence_is_refused_by_its_number(capsys):
    Path("book.en").write_text(f"{SENTENCE}\n{'bread ' * 30000}\n")
    assert reprise(["translate", RUN, "book.en", *SMOKE]) == 1
    said = capsys.readouterr()
    assert "error: book.en, line 2: 180,000 characters; the limit is 10,000" in said.err
    assert said.out.count("\n") == 1  # of the line before
    found = decode_lines([b"a dog .", b"a" * 10_000, b"a" * 10_001], read=5)
    assert next(found).lines == ["a dog .", "a" * 10_000]
    with pytest.raises(UserError, match="standard input, line 8: 10,001 characters"):
        next(found)


def test_a_packed_model_is_no_run(packed, refused):
    for command, *more in (["score"], ["pack", "again"]):
        assert "is a packed model; name a run" in refused(command, packed, *more, *SMOKE)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Limit the size of files in bytes; a longer one is an OSError, as Python ignores the signal."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    cached, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # Python keeps byte code that was cut off
    try:
        yield
    finally:
        sys.dont_write_bytecode = cached
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (["pack", RUN], "full/model"),
        (["pack", RUN], "full/model.tar"),
        (["export", RUN], "full/ct2"),
        (["record", RUN, "--into"], "full/kept"),
        (["record", RUN, "--into"], "/proc/kept"),
        (["pack", RUN], "/proc/model.tar"),
    ],
)
def test_unwritable_output_is_one_error_and_leaves_no_part_file(root, words, out, refused):
    """Files can't grow beyond a kilobyte, as on a full disk, or the folder is not writable."""
    with largest_file(1024):
        said = refused(*words, out, *SMOKE)
    (line,) = (line for line in said.split("\n") if "error: " in line)
    assert line.startswith(("error: can't write ", f"error: {out}: ")) and f"{Path(out).parent}/" in line
    assert "choose another `work:`" not in line
    assert not [path for path in root.glob("full/**/*") if path.is_file()] and not (root / out).is_file()


def test_runs_are_scored_again_and_compared(capsys):
    as_is, greedy = (said(capsys, "score", RUN, *SMOKE, *more) for more in ([], ["--decoding", "beam=1,alpha=0"]))
    (workflow,) = Path("work/smoke").glob("runs/mine/baseline/*/*/scores/final/test.json")
    value = yaml.safe_load(workflow.read_text())["metrics"]["sacrebleu"]["value"]
    for scored in (as_is, greedy):  # what is learnt so well is found by any search
        (line,) = (line for line in scored.split("\n") if line.startswith("sacrebleu"))
        assert float(line.split()[1]) == pytest.approx(value, abs=2)
    compared = said(capsys, "compare", RUN, "mine/changed/cipher", "--metric", "sacrebleu", *SMOKE)
    assert compared.startswith("sacrebleu: ") and "p = 0.0" in compared


def test_record_writes_measurements_to_a_folder(capsys, tmp_path):
    said(capsys, "record", RUN, "mine/changed/cipher", "--into", tmp_path / "kept", "--metric", "sacrebleu", *SMOKE)
    (workflow,) = Path("work/smoke").glob("runs/mine/baseline/*/*/scores/final/test.json")
    value = json.loads(workflow.read_text())["metrics"]["sacrebleu"]
    table = (tmp_path / "kept/table.md").read_text()
    assert f"{value['value']:.2f} ({value['low']:.2f}–{value['high']:.2f})" in table
    assert len(list((tmp_path / "kept").glob("mine-*-cipher-smoke-seed1.json"))) == 2
    for path in (tmp_path / "kept").iterdir():
        assert "work/" not in path.read_text() and os.uname().nodename not in path.read_text()
    once = {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()}
    for more in (["--metric", "sacrebleu"], []):  # which metrics it shows, the table itself says
        said(capsys, "record", "--into", tmp_path / "kept", *more)
        assert {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()} == once


def test_python_has_models_tables_claims_and_curves(packed):
    model = api.open_run(packed)
    assert model.translate([SENTENCE]) == [cipher(SENTENCE)]
    with pytest.raises(UserError, match=r"expected a list of lines, got one string: write \[text\]"):
        model.translate(SENTENCE)
    curve = api.curves(RUN, scale="smoke")
    assert curve["dev"].iloc[-1] < 0.2 < curve["dev"].iloc[0]
    claims = api.claims("mine", scale="smoke")
    assert claims["verdict"].tolist() == ["not trained"]  # of ten updates nothing is learnt
    with pytest.raises(UserError, match="did you mean 'table1'"):
        api.table("mine", "tabel1", scale="smoke")


def test_a_packed_model_refuses_settings_it_would_not_read(packed):
    with pytest.raises(UserError, match=f"^{packed}: a packed model has its own settings; leave out scale, seeds$"):
        api.open_run(packed, scale="smoke", seeds=3)


def test_a_dataset_says_what_is_in_it(capsys):
    report = said(capsys, "report", "cipher", *SMOKE)
    assert "licence: not known" in report and "not to be redistributed" in report
    assert f"train: {len(lines(Path('data/cipher/train.en'))):,} read" in report
    assert "in train too" not in report


def test_commands_that_need_freed_text_name_the_cause(capsys, refused):
    (text,) = Path("work/corpora").glob("cipher-*/prepared/train.en")
    kept = text.rename(text.with_name("kept"))
    try:
        assert "train: overlap with other splits unknown" in said(capsys, "report", "cipher", *SMOKE)
        said_of_score = refused("score", RUN, "--split", "train", *SMOKE)
        assert "the text of `train` was removed to free disk space" in said_of_score
    finally:
        kept.rename(text)


def test_perplexities_that_no_report_reads_are_compared_as_files(refused, tmp_path, capsys):
    runs = [RUN, "mine/changed/cipher"]
    files = [str(tmp_path / f"{place}.json") for place in range(2)]
    for run, other, file in zip(runs, runs[::-1], files, strict=True):
        message = refused("compare", run, other, "--metric", "perplexity", "--split", "dev", *SMOKE)
        _, command, rest = message.split("`")
        assert rest.startswith(" measures it; compare two such files")
        assert reprise(shlex.split(command.replace("FILE.json", file))[1:]) == 0
    assert said(capsys, "compare", *files).startswith("perplexity: ")
    for run, file in zip(runs, files, strict=True):
        last = api.curves(run, scale="smoke").dev.iloc[-1]
        measured = json.loads(Path(file).read_text())["metrics"]["perplexity"]["value"]
        assert measured == pytest.approx(np.exp(last), rel=1e-3)


WRONG = {
    "no such paper": (["translate", "mien/baseline"], "did you mean 'mine'?"),
    "no such system": (["translate", "mine/basline"], "did you mean 'baseline'?"),
    "no such dataset": (["translate", "mine/baseline/ciper"], "did you mean 'cipher'?"),
    "no such seed": (["translate", f"{RUN}/9"], "not trained at scale smoke"),
    "no number": (["translate", f"{RUN}/one"], "the seed is a number"),
    "no name": (["translate", "mine"], "neither a folder nor paper/system/dataset/seed"),
    "a folder of no run": (["translate", "data"], "has no run.yaml"),
    "no such file": (["translate", RUN, "nothing.en"], "nothing.en: no such file"),
    "not text": (["translate", RUN, "latin.en"], "not UTF-8"),
    "no such decoding": (["translate", RUN, "--decoding", "finl"], "did you mean 'final'?"),
    "no such setting": (["translate", RUN, "--decoding", "beem=4"], "did you mean 'beam'?"),
    "a bad setting": (["translate", RUN, "--decoding", "beam=0"], "beam_size: Input should be greater"),
    "no weight": (["translate", RUN, "--decoding", "ngram_order=3"], "its language model has weight 0"),
    "other weights": (["translate", RUN, "--decoding", "average_last=5"], "name a decoding of paper.yaml"),
    "no recogniser": (["transcribe", RUN, "talk.en"], "does not transcribe; use `reprise translate`"),
    "no trees": (["parse", RUN, "talk.en"], "does not parse; use `reprise translate`"),
    "a folder": (["translate", RUN, "data"], "data: is a folder"),
    "one run twice": (["compare", RUN, RUN], "is compared with itself; name two different runs"),
    "a run and a file": (["compare", RUN, "test.json"], "compare it with another score file, not with a run"),
    "misspelt split": (["score", RUN, "--split", "tets"], "did you mean 'test'?"),
    "misspelt metric": (["compare", RUN, RUN, "--metric", "blue_paper"], "did you mean 'bleu_paper'?"),
    "not scored": (["compare", RUN, RUN, "--split", "dev"], "no report reads it; `--split test` is scored"),
    "no such key": (["translate", RUN, "--set", "scal=smoke"], "did you mean 'scale'?"),
    "bad threads": (["translate", RUN, "--threads", "0"], "at least 1"),
    "packed over something": (["pack", RUN, "data"], "not empty"),
    "packed as another archive": (["pack", RUN, "model.zip"], "model.zip: an archive of a model is a .tar file"),
    "packed as a small archive": (["pack", RUN, "model.tar.gz"], "model.tar.gz: an archive of a model is a .tar"),
    "no packed model": (["unpack", "data"], "so it is not a packed model"),
    "exported over something": (["export", RUN, "data"], "already exists"),
    "exported with a search": (["export", RUN, "ct2", "--decoding", SEARCH], "beam: is not exported; give it to CTra"),
    "no such data": (["report", "ciper"], "did you mean 'cipher'?"),
    "data not prepared": (["report", "multi30k-en-de"], "not prepared yet; run `snakemake "),
    "dataset there": (["new", "dataset", "cipher", "--src", "talk.en", "--tgt", "talk.xx"], "exists already"),
    "one side": (["new", "dataset", "two", "--src", "talk.en"], "--src and --tgt"),
    "no language": (["new", "dataset", "two", "--src", "talk.en", "--tgt", "talk"], "ISO 639"),
    "a bad name": (["new", "paper", "My Paper", "--dataset", "cipher"], "lower-case letters"),
    "paper there": (["new", "paper", "mine", "--dataset", "cipher"], "already exists"),
    "paper without data": (["new", "paper", "two"], "name the dataset"),
    "paper on other data": (["new", "paper", "two", "--dataset", "ciper"], "did you mean 'cipher'?"),
}


@pytest.mark.parametrize("move", WRONG)
def test_user_mistake_is_answered_by_one_line_with_a_remedy(root, capsys, move):
    Path("latin.en").write_bytes(b"caf\xe9\n")
    shutil.copy("talk.xx", "talk")
    words, message = WRONG[move]
    commands = {"translate", "transcribe", "parse", "score", "compare", "pack", "export", "report"}
    settings = SMOKE if words[0] in commands and "--set" not in words else []
    before = sorted(path.name for folder in (Path(), Path("data")) for path in folder.iterdir())
    try:
        status = reprise([*words, *settings])
    except SystemExit as error:
        status = error.code
    found = capsys.readouterr()
    assert status in (1, 2) and message in found.err, found.err
    assert len([line for line in found.err.split("\n") if "error: " in line]) == 1 and not found.out
    assert before == sorted(path.name for folder in (Path(), Path("data")) for path in folder.iterdir())
