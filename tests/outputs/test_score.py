import json
import random
import shutil
from pathlib import Path

import pytest
import yaml
from made_records import decoded

from pipeline.__main__ import main
from pipeline.core import provenance
from pipeline.core.digests import sha256_file
from pipeline.core.errors import UserError
from pipeline.core.records.corpus import PairsReport, PreparedPairs
from pipeline.data.dataset import GrammarDataset
from pipeline.metrics import compare_scores, read_statistics
from pipeline.outputs.plan import PlannedScore, ScoringPlan
from pipeline.outputs.score import key_of
from reprise.__main__ import main as reprise

LINES = 40
DATASETS = Path(__file__).parents[2] / "workflow" / "datasets"


@pytest.fixture
def corpus(tmp_path):
    """A dataset file, its references, a translation that differs in some words, and a perfect one."""
    generator = random.Random(0)
    words = ["der", "die", "Hund", "Frau", "sieht", "geht", "schnell", "E-Mail", "und", "alt"]
    reference = [generator.choices(words, k=generator.randint(4, 12)) for _ in range(LINES)]
    hypothesis = [
        [generator.choice(words) if generator.random() < 0.2 else word for word in line] for line in reference
    ]
    raw = write(tmp_path / "raw" / "test.de", reference, ".")
    write(tmp_path / "prepared" / "test.de", reference, ".")
    write(tmp_path / "prepared" / "test.tok.de", reference, " .")
    for name, lines in (("hyp", hypothesis), ("perfect", reference)):
        write(tmp_path / f"{name}.txt", lines, ".")
        write(tmp_path / f"{name}.tok", lines, " .")
    describe(tmp_path, lines=LINES, tgt_sha256=sha256_file(raw))
    return tmp_path


def write(path, lines, end):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(" ".join(line) + end + "\n" for line in lines), encoding="utf-8")
    return path


def describe(folder, **expected):
    record = yaml.safe_load((DATASETS / "grammar-en-de.yaml").read_text())
    record |= {"test_set": "toy", "compound_split": True, "expected": {"test": expected}}
    (folder / "toy.yaml").write_text(yaml.safe_dump(record))


def change_dataset(corpus, **keys):
    record = yaml.safe_load((corpus / "toy.yaml").read_text())
    (corpus / "toy.yaml").write_text(yaml.safe_dump(record | keys))


def score(corpus, out, hypothesis="hyp") -> int:
    data = ["--dataset", str(corpus / "toy.yaml"), "--prepared", str(corpus / "prepared")]
    texts = ["--tokenised", str(corpus / f"{hypothesis}.tok"), "--text", str(corpus / f"{hypothesis}.txt")]
    return main(["score-text", *data, *texts, "--out", str(out)])


def scored(corpus, out, hypothesis="hyp") -> dict:
    assert score(corpus, out, hypothesis) == 0
    return json.loads(out.read_text())


def test_score_file_has_interval_and_signature_of_each_metric(corpus, tmp_path):
    found = scored(corpus, out := tmp_path / "scores" / "toy.json")
    assert (found["test_set"], found["lines"]) == ("toy", LINES)
    assert set(found["metrics"]) == {"bleu_paper", "bleu_tok", "bleu_tok_lc", "sacrebleu", "gleu", "chrf"}
    for metric in found["metrics"].values():
        assert set(metric) == {"value", "low", "high", "signature"}
        assert 0 < metric["low"] < metric["value"] < metric["high"] < 100
    assert "compounds:split" in found["metrics"]["bleu_paper"]["signature"]
    assert read_statistics(out, "bleu_paper").shape == (LINES, 10)
    assert found["inputs"][str(corpus / "hyp.tok")] == sha256_file(corpus / "hyp.tok")
    assert found["references"] == sha256_file(corpus / "prepared" / "test.de")


def test_nist_set_is_also_scored_by_closest_reference(corpus, tmp_path):
    change_dataset(corpus, bleu="nist")
    assert "bleu_closest" in scored(corpus, tmp_path / "nist.json")["metrics"]


def test_changed_code_of_a_metric_gives_a_score_another_key(tmp_path, monkeypatch):
    planned = PlannedScore(kind="text", file="a", output="b", split="test", dataset="d", corpus="c")
    code = tmp_path / "pipeline/metrics/bleu.py"
    code.parent.mkdir(parents=True)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    keys = []
    for text in ("old", "old", "new"):
        code.write_text(text)
        keys.append(key_of(tmp_path, ScoringPlan(name="final", scores=[planned]), planned))
    assert keys[0] == keys[1] != keys[2]


def test_the_same_inputs_give_the_same_bytes(corpus, tmp_path):
    first, second = tmp_path / "a" / "toy.json", tmp_path / "b" / "toy.json"
    assert scored(corpus, first) == scored(corpus, second)
    for suffix in (".json", ".npz"):
        assert first.with_suffix(suffix).read_bytes() == second.with_suffix(suffix).read_bytes()


@pytest.mark.parametrize("line", ["", "<unk>", "<unk> <unk> <unk> <unk> <unk>", ".", "\u00a0"])
def test_hypotheses_without_a_right_word_are_scored(corpus, tmp_path, line):
    perfect, out = tmp_path / "perfect.json", tmp_path / "out.json"
    for end in ("tok", "txt"):
        (corpus / f"nothing.{end}").write_text(f"{line}\n" * LINES, encoding="utf-8")
    scored(corpus, perfect, hypothesis="perfect")
    metrics = scored(corpus, out, hypothesis="nothing")["metrics"]
    for name, metric in metrics.items():
        assert 0 <= metric["low"] <= metric["value"] <= metric["high"] < 5, name
        assert compare_scores(perfect, out, name).low > 90
    assert metrics["bleu_tok"]["value"] == 0


def test_scores_are_compared_by_paired_bootstrap(corpus, tmp_path, capsys):
    ours, perfect, other = (tmp_path / f"{name}.json" for name in ("ours", "perfect", "other"))
    score(corpus, ours), score(corpus, perfect, hypothesis="perfect")
    for name in ("bleu_paper", "sacrebleu", "chrf", "gleu"):
        found = compare_scores(perfect, ours, name)
        assert found.low > 0 and found.p_value < 0.01
    for words in (["--split", "dev"], ["--set", "scale=small"]):
        assert reprise(["compare", str(perfect), str(ours), "--metric", "gleu", *words]) == 1
        assert "apply to runs only" in capsys.readouterr().err
    assert reprise(["compare", str(perfect), str(ours), "--metric", "gleu"]) == 0
    assert f"less {ours}: {found.difference:+.2f} (95 % between {found.low:+.2f} and" in capsys.readouterr().out
    other.write_text(json.dumps(json.loads(ours.read_text()) | {"test_set": "newstest"}))
    with pytest.raises(UserError, match=r"test set differs \(toy, newstest\)"):
        compare_scores(ours, other, "bleu_tok")
    with pytest.raises(UserError, match="no statistics"):
        read_statistics(ours, "perplexity")


def test_lower_cased_scores_compare_only_with_lower_cased(corpus, tmp_path):
    """The raw references are the same, so that their digest does not distinguish them."""
    cased, lowered, out = (tmp_path / name for name in ("cased.json", "lowered.json", "again.json"))
    write(corpus / "hyp.tok", [line.split() for line in (corpus / "hyp.tok").read_text().swapcase().splitlines()], "")
    before = scored(corpus, cased)["metrics"]
    for path in (corpus / "hyp.tok", corpus / "prepared/test.tok.de"):
        path.write_text(path.read_text().lower())
    change_dataset(corpus, lowercase=True)
    after, _ = scored(corpus, lowered)["metrics"], scored(corpus, out)
    assert after["bleu_tok"] == after["bleu_tok_lc"] == before["bleu_tok_lc"]
    for metric in ("bleu_tok", "bleu_paper", "gleu"):
        assert after[metric]["value"] > before[metric]["value"] + 10
        with pytest.raises(UserError, match=r"signature differs .*case:lc.*case:mixed"):
            compare_scores(lowered, cased, metric)
        assert compare_scores(lowered, out, metric).difference == 0
    assert compare_scores(lowered, cased, "bleu_tok_lc").difference == 0


def test_lower_cased_corpora_are_scored_without_case(corpus, tmp_path):
    """The references keep their capitals, which the model never wrote."""
    write(corpus / "hyp.txt", [line.split() for line in (corpus / "perfect.txt").read_text().lower().splitlines()], "")
    cased = scored(corpus, tmp_path / "cased.json")["metrics"]
    change_dataset(corpus, lowercase=True)
    lowered = scored(corpus, tmp_path / "lowered.json")["metrics"]
    for metric in ("sacrebleu", "chrf"):
        assert cased[metric]["value"] < 90 and lowered[metric]["value"] == pytest.approx(100)
        assert "case:lc" in lowered[metric]["signature"] and "case:lc" not in cased[metric]["signature"]


def test_single_sentence_has_no_interval_and_no_comparison(corpus, tmp_path, capsys):
    """However often it is drawn again, it stays the same: the interval had no width, and p was 0.001."""
    texts = ((corpus / f"{name}.tok").read_text().splitlines() for name in ("hyp", "perfect"))
    wrong = next(number for number, (ours, right) in enumerate(zip(*texts, strict=True)) if ours != right)
    for path in [*corpus.glob("*/test.*"), *corpus.glob("hyp.*"), *corpus.glob("perfect.*")]:
        path.write_text(path.read_text().splitlines()[wrong] + "\n")
    describe(corpus, lines=1)
    ours, perfect = tmp_path / "ours.json", tmp_path / "perfect.json"
    scored(corpus, perfect, hypothesis="perfect")
    for metric in scored(corpus, ours)["metrics"].values():
        assert metric["low"] is metric["high"] is None and metric["value"] < 100
    assert reprise(["compare", str(perfect), str(ours), "--metric", "chrf"]) == 1
    assert "can't compare scores of one sentence" in capsys.readouterr().err


@pytest.mark.parametrize("how", [{"segmenter": "characters"}, {"tokeniser": "none"}])
def test_the_signature_names_what_parted_chinese_into_words(corpus, tmp_path, how):
    change_dataset(corpus, tgt="zh", **how)
    for path in (*corpus.glob("*/test.de"), *corpus.glob("*/test.tok.de")):
        path.rename(path.with_suffix(".zh"))
    metrics = scored(corpus, tmp_path / "zh.json")["metrics"]
    signed = {name: metric["signature"].split("|")[0] for name, metric in metrics.items()}
    raw, tokenised = dict.fromkeys(("sacrebleu", "chrf"), "text:raw"), ("bleu_paper", "bleu_tok", "bleu_tok_lc", "gleu")
    assert signed == raw | dict.fromkeys(tokenised, "text:characters")


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"lines": LINES + 1}, f"hyp.txt: {LINES} lines, but the test set has {LINES + 1}"),
        ({"lines": LINES, "tgt_sha256": "0" * 64}, "this is not the test set"),
    ],
)
def test_another_test_set_is_refused_in_one_line(corpus, capsys, expected, message):
    describe(corpus, **expected)
    assert score(corpus, corpus / "toy.json") == 1
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error and not (corpus / "toy.json").exists()


@pytest.mark.parametrize(("ceiling", "warns"), [(97.5, True), (99.9, False), (None, False)])
def test_ceiling_is_the_one_that_prepare_reported(corpus, tmp_path, caplog, ceiling, warns):
    counts = {"read": LINES, "kept": LINES, "rejected": {}, "rejected_lines": {}, "repaired": {}}
    split = PairsReport(**counts, src_words=9, tgt_words=9, ceiling=ceiling)
    if ceiling is not None:
        PreparedPairs(dataset="toy", tokeniser="none", splits={"test": split}).write(corpus / "prepared/report.json")
    assert scored(corpus, tmp_path / "score.json")["ceiling"] == ceiling
    assert ("a perfect translation reaches" in caplog.text) == warns


@pytest.mark.parametrize("name", ["hyp.tok", "hyp.txt", "prepared/test.de", "prepared/test.tok.de"])
def test_a_missing_sentence_is_refused(corpus, capsys, name):
    lines = (corpus / name).read_text(encoding="utf-8").split("\n")
    (corpus / name).write_text("\n".join(lines[1:]), encoding="utf-8")
    assert score(corpus, corpus / "toy.json") == 1
    assert f"{name}: {LINES - 1} lines" in capsys.readouterr().err


@pytest.mark.parametrize(("raw", "tokenised"), [("hyp.txt", "hyp.tok"), ("prepared/test.de", "prepared/test.tok.de")])
def test_tokenised_text_is_not_scored_as_raw(corpus, capsys, raw, tokenised):
    shutil.copy(corpus / tokenised, corpus / raw)
    assert score(corpus, corpus / "toy.json") == 1
    assert f"{raw}: looks tokenised" in capsys.readouterr().err


@pytest.mark.parametrize(("tokeniser", "decoded_here"), [("none", True), ("none", False), ("moses", True)])
def test_raw_text_of_a_model_may_set_its_stops_apart(corpus, capsys, tokeniser, decoded_here):
    """A poorly trained model of raw text writes such spaces itself; from elsewhere they are a tokeniser's."""
    change_dataset(corpus, tokeniser=tokeniser)
    shutil.copy(corpus / "hyp.tok", corpus / "hyp.txt")
    if decoded_here:
        decoded(lines=LINES).write(corpus / "hyp.json")
    is_raw = tokeniser == "none" and decoded_here
    assert score(corpus, corpus / "toy.json") == (0 if is_raw else 1)
    assert ("hyp.txt: looks tokenised" in capsys.readouterr().err) != is_raw


def test_four_references_count_in_any_order(corpus, tmp_path, monkeypatch):
    """Each sentence of the translation is that of one reference, in turn; the references share no word."""
    words = [[f"w{number}x{place}" for place in range(6)] for number in range(4)]
    suffixes = ["de", "de2", "de3", "de4"]
    for suffix, line in zip(suffixes, words, strict=True):
        for folder in ("raw", "prepared"):
            write(tmp_path / f"{folder}/test.{suffix}", [line] * LINES, ".")
        write(tmp_path / f"prepared/test.tok.{suffix}", [line] * LINES, " .")
    for name, end in (("hyp.txt", "."), ("hyp.tok", " .")):
        write(tmp_path / name, [words[number % 4] for number in range(LINES)], end)
    describe(tmp_path, lines=LINES)

    def scored_by(used):
        monkeypatch.setattr(GrammarDataset, "references", lambda dataset, split: used)
        record = scored(corpus, tmp_path / "out.json")
        return {name: metric["value"] for name, metric in record["metrics"].items()}, record["references"]

    values, digest = scored_by(suffixes)
    assert values == pytest.approx(dict.fromkeys(values, 100))
    for left_out in suffixes:
        values, other = scored_by([suffix for suffix in suffixes if suffix != left_out])
        assert max(values.values()) < 90 and other != digest
