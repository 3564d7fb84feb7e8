"""Own data in any language, from `reprise new dataset` to scores, and its errors and warnings."""

import json
from pathlib import Path

import pytest
from written_languages import BEYOND_RULES, WRITTEN

from pipeline.__main__ import main
from pipeline.data.dataset import load_dataset
from reprise.__main__ import main as reprise
from reprise.model_input import Preparation

SENTENCES = WRITTEN | BEYOND_RULES
SHARES = ["--split", "0.4/0.3/0.3"]


def write(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def numbered(sentences: list[str], count: int) -> list[str]:
    """Return distinct sentences, one per line."""
    return [f"{sentences[number % len(sentences)]} {number}" for number in range(count)]


def pair_of_files(root: Path, lines: int, ending: str) -> list[str]:
    """Return the options that name two files of a few words."""
    tgt = write(root / f"a.{ending}", numbered(["c"], lines))
    return ["--src", write(root / "a.en", numbered(["a b"], lines)), "--tgt", tgt]


def prepared(name: str) -> Path:
    stage = ["--dataset", f"workflow/datasets/{name}.yaml", "--corpus", f"corpus/{name}"]
    assert main(["download", *stage, "--downloads", "downloads"]) == main(["prepare", *stage]) == 0
    return Path(f"corpus/{name}/prepared")


def score_of_perfect(name: str, folder: Path) -> dict:
    """Score the reference as a translation, after tokenising and detokenising it."""
    dataset = load_dataset(Path(f"workflow/datasets/{name}.yaml"))
    tokens = (folder / f"test.tok.{dataset.tgt}").read_text(encoding="utf-8").split("\n")[:-1]
    text = [*map(Preparation.of(dataset).text, tokens)]
    assert text == (folder / f"test.{dataset.tgt}").read_text(encoding="utf-8").split("\n")[:-1]
    outputs = ["--tokenised", write(folder / "o.tok", tokens), "--text", write(folder / "o.txt", text)]
    words = ["--dataset", f"workflow/datasets/{name}.yaml", "--prepared", str(folder), "--out", "score.json"]
    assert main(["score-text", *words, *outputs]) == 0
    return json.loads(Path("score.json").read_text())


@pytest.mark.parametrize("code", SENTENCES)
def test_a_perfect_translation_scores_100_in_any_language(root, code):
    target = numbered(SENTENCES[code], 40)
    source = [f"Line {number} of a text, as long as the other one." for number in range(40)]
    files = ["--src", write(root / "a.en", source), "--tgt", write(root / f"a.{code}", target)]
    if code == "en":
        files = ["--src", write(root / "a.de", source), *files[2:]]
    assert reprise(["new", "dataset", "own", *files, *SHARES]) == 0
    folder = prepared("own")
    assert json.loads((folder / "report.json").read_text())["splits"]["train"]["rejected"] == {}
    found = score_of_perfect("own", folder)
    assert found["ceiling"] == 100
    assert {name: metric["value"] for name, metric in found["metrics"].items()} == pytest.approx(
        dict.fromkeys(found["metrics"], 100)
    )
    unit = "zh" if code in ("zho", "yue") else "char" if code in ("ja", "tha", "lo", "km", "my", "bo") else "13a"
    assert f"tok:{unit}" in found["metrics"]["sacrebleu"]["signature"]


@pytest.mark.parametrize(("ending", "code"), [("no", "no"), ("cmn", "zh"), ("pt-br", "pt-BR"), ("on", None)])
def test_language_codes_are_shortened_or_refused(root, capsys, ending, code):
    assert reprise(["new", "dataset", "own", *pair_of_files(root, 9, ending), *SHARES]) == (code is None)
    if code:
        assert load_dataset(Path("workflow/datasets/own.yaml")).languages == ("en", code)
    else:
        assert "--languages: 'on' is not an ISO 639 code" in capsys.readouterr().err


def test_the_ending_of_a_text_file_is_no_language(root, refused):
    files = pair_of_files(root, 9, "txt")
    said = refused("new", "dataset", "own", *files)
    assert "--languages: name the two languages, such as en de; a file ends in 'txt'" in said
    assert reprise(["new", "dataset", "own", *files, "--languages", "en", "txt"]) == 0  # Citak, of Papua


def test_no_form_of_a_sentence_is_in_two_splits(root):
    plain = [f"L'été n'est pas déjà fini à l'école {number}." for number in range(100)]
    source = [*plain, *(line.upper().replace("'", "’").replace(" ", "\u00a0") for line in plain)]
    target = [f"Satz {number} ist hier." for number in range(100)] * 2
    files = ["--src", write(root / "a.fr", source), "--tgt", write(root / "a.de", target)]
    assert reprise(["new", "dataset", "own", *files, "--split", "0.8/0.1/0.1"]) == 0
    report = json.loads((prepared("own") / "report.json").read_text())
    assert report["shared"] == report["shared_targets"] == {}


def test_new_warns_of_a_small_test_set(root, caplog):
    files = pair_of_files(root, 50, "de")
    assert reprise(["new", "dataset", "own", *files, "--split", "0.3/0.3/0.4"]) == 0
    assert "own: a test set of 20 is small: only differences of about 7.1 BLEU" in caplog.text
    assert "1 BLEU is; --split or --test sets its size" in caplog.text
