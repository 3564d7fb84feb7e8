"""Transcribing, choosing weights on the development set, and scoring, through the stages."""

import itertools
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from made_records import prepared_speech, speech_corpus
from speech_runs import COLD, CTC, JOINT, LM, RECOGNISER, UTTERANCES, write_corpus, write_run

from pipeline.__main__ import main
from pipeline.config import DecodingConfig, load_run
from pipeline.core.errors import UserError
from pipeline.core.json_csv import read_json
from pipeline.core.records.corpus import SpeechCorpus
from pipeline.core.records.outputs import ScoreFile, TunedPoint, TunedWeights
from pipeline.data.batches.corpus_batches import EvalBatches, evaluation_split, training_batches
from pipeline.data.batches.speech_batches import SpeechSplit
from pipeline.data.sequence_store import TokenStore, write_tokens
from pipeline.data.text.vocabulary import Alphabet
from pipeline.decoding.trained_model import TrainedModel, load_external_lm
from pipeline.decoding.tune import choose_weights, sample
from pipeline.metrics import read_statistics
from pipeline.metrics.error_rates import WER, Transcripts
from pipeline.models.settings import BOS

DATASET = Path(__file__).parents[2] / "workflow/datasets/grammar-smoke-speech-source.yaml"
DECODING = {"beam_size": 3, "length_normalisation": "none", "max_extra_length": 1, "batch_tokens": 200}


@pytest.fixture
def corpus(tmp_path) -> Path:
    return write_corpus(tmp_path / "corpora/source/encoded", seed=1)


@pytest.fixture
def lm(tmp_path, corpus) -> Path:
    return write_run(tmp_path / "lm", corpus, LM)


def transcribe(run: Path, corpus: Path, *options: str, **settings) -> list[str] | None:
    """The transcripts; None when the stage failed."""
    out = run / "test.txt"
    weights = ["--weights", str(run / "model.safetensors"), "--corpus", str(corpus)]
    decoding = json.dumps(DECODING | settings)
    code = main(["transcribe", *weights, "--decoding", decoding, *options, "--out", str(out), "--threads", "1"])
    return None if code else out.read_text(encoding="utf-8").split("\n")[:-1]


def of_other_statistics(corpus: Path, folder: Path) -> Path:
    """A copy of a corpus that would normalise the same frames otherwise."""
    shutil.copytree(corpus, folder)
    record = SpeechCorpus.read(folder / "corpus.json")
    record.model_copy(update={"statistics": speech_corpus(3.0).statistics}).write(folder / "corpus.json")
    return folder


def references(corpus: Path, split: str) -> list[str]:
    store = TokenStore(corpus / f"{split}.tgt")
    return Alphabet().decode([store[index] for index in range(len(store))])


@pytest.mark.parametrize("model", [RECOGNISER, CTC, JOINT], ids=["attention", "ctc", "joint"])
def test_every_utterance_has_one_line_in_its_place(tmp_path, corpus, model):
    run = write_run(tmp_path / "run", corpus, model)
    together = transcribe(run, corpus)
    assert len(together) == UTTERANCES and len(set(together)) > 1
    assert transcribe(run, corpus, batch_tokens=1) == together
    assert read_json(run / "test.json")["lines"] == UTTERANCES


def test_another_corpus_is_normalised_as_the_training_was(tmp_path, corpus):
    """A model gives the same output for two copies of a corpus with other statistics of their own."""
    run = write_run(tmp_path / "run", corpus, RECOGNISER)
    assert transcribe(run, of_other_statistics(corpus, tmp_path / "other")) == transcribe(run, corpus)


def test_fine_tuning_keeps_the_feature_statistics_of_its_start(tmp_path, corpus, lm):
    """A fine-tuned model that has learnt nothing yet is the model that it starts from, in training and in decoding."""
    other = of_other_statistics(corpus, tmp_path / "other")
    fused = {"fusion": COLD, "language_model": {"run": str(lm), "model": LM}}
    cold = write_run(tmp_path / "CF4", corpus, RECOGNISER, **fused)
    start = {"initial": str(cold), "training": {"trained_part": "fusion"}}
    tuned = write_run(tmp_path / "tuned", other, RECOGNISER, sharpness=1.0, **start, **fused)
    assert transcribe(tuned, other) == transcribe(cold, corpus)
    specs = [load_run(run / "run.yaml") for run in (tuned, cold)]
    (batch,), (expected,) = (training_batches(spec).micro_batches(0) for spec in specs)
    assert batch.frames.equal(expected.frames)
    (validated,) = EvalBatches(evaluation_split(specs[0], other, "dev"), 10_000)
    (expected,) = EvalBatches(SpeechSplit(corpus, "dev"), 10_000)
    assert validated[1].frames.equal(expected[1].frames)


def tune(run, settings, lm, out, others=()) -> dict:
    """Choose fusion weights from those of a decoding."""
    trained = TrainedModel.load(run / "model.safetensors", threads=1)
    choose_weights(trained, DecodingConfig.model_validate(DECODING | settings), lm, out, others)
    return read_json(out)


TUNING = {"language_model": "lm@text", "lm_weights": [0.0, 0.5, 1.5], "tuning_sentences": UTTERANCES}


def test_external_lm_changes_the_transcript_if_its_weight_is_set(tmp_path, corpus, lm):
    run = write_run(tmp_path / "run", corpus, RECOGNISER)
    beside = ["--language-model", str(lm)]
    without, with_lm = (transcribe(run, corpus, *beside, language_model="lm@text", lm_weight=w) for w in (0.0, 2.0))
    assert read_json(run / "test.json")["language_model"] == str(lm)
    assert without == transcribe(run, corpus) != with_lm
    assert read_json(run / "test.json")["language_model"] is None


def test_fused_lm_is_replaceable_only_if_its_logits_are_read(tmp_path, corpus, lm, capsys):
    other = write_run(tmp_path / "lm2", corpus, LM | {"hidden_width": 5}, sharpness=30.0)
    fused = {"language_model": {"run": str(lm), "model": LM}}
    cold = write_run(tmp_path / "CF4", corpus, RECOGNISER, fusion=COLD | {"lm_feature": "logits"}, **fused)
    swap = {"language_model": "lm2@text", "language_model_use": "instead"}
    assert transcribe(cold, corpus, "--language-model", str(other), **swap) != transcribe(cold, corpus)
    state = write_run(tmp_path / "CF3", corpus, RECOGNISER, fusion=COLD | {"lm_feature": "state"}, **fused)
    assert transcribe(state, corpus, "--language-model", str(other), **swap) is None
    assert "hidden states" in capsys.readouterr().err
    plain = write_run(tmp_path / "attention", corpus, RECOGNISER)
    assert transcribe(plain, corpus, "--language-model", str(other), **swap) is None
    assert "no fused language model to replace" in capsys.readouterr().err


@pytest.mark.parametrize("model", [RECOGNISER, CTC], ids=["attention", "ctc"])
def test_tuning_chooses_the_weights_of_lowest_dev_error(tmp_path, corpus, lm, model):
    run, chosen = write_run(tmp_path / "run", corpus, model), tmp_path / "tuned.json"
    settings = TUNING | ({"word_bonuses": [0.0, 2.0]} if model is CTC else {})
    record = tune(run, settings, lm, chosen)
    assert len(record["grid"]) == (6 if model is CTC else 3)
    assert record["wer"] == min(point["wer"] for point in record["grid"])
    beside = ["--language-model", str(lm)]
    dev = transcribe(run, corpus, *beside, "--split", "dev", "--tuned", str(chosen), **settings)
    rates = WER.total(WER.statistics(Transcripts(references(corpus, "dev"), dev)).sum(axis=0))
    assert record["wer"] == pytest.approx(float(rates))
    assert transcribe(run, corpus, *beside, **settings) is None  # without the choice


def test_both_tuned_weights_are_used(tmp_path, corpus, lm):
    run, beside = write_run(tmp_path / "run", corpus, CTC), ["--language-model", str(lm)]
    point = {"lm_weight": 0.4, "word_bonus": 6.0, "wer": 90.0, "cer": 80.0}
    TunedWeights(**point, sentences=3, grid=[TunedPoint(**point)]).write(tmp_path / "tuned.json")
    asked = {"language_model": "lm@text", "lm_weights": [0.4], "word_bonuses": [6.0], "tuning_sentences": 3}
    tuned = transcribe(run, corpus, *beside, "--tuned", str(tmp_path / "tuned.json"), **asked)
    said = [
        transcribe(run, corpus, *beside, language_model="lm@text", lm_weight=weight, word_bonus=bonus)
        for weight, bonus in ((0.4, 6.0), (0.4, 0.0), (0.0, 6.0))
    ]
    assert tuned == said[0] and said[0] not in said[1:]


def test_weights_are_chosen_by_the_mean_error_of_several_runs(tmp_path, corpus, lm):
    runs = [write_run(tmp_path / name, corpus, model) for name, model in (("a", RECOGNISER), ("b", JOINT))]
    files = [tmp_path / f"{run.name}.json" for run in runs]
    alone = [tune(run, TUNING, lm, file) for run, file in zip(runs, files, strict=True)]
    both = tune(runs[0], TUNING | {"tuned_with": ["b@corpus"]}, lm, tmp_path / "both.json", files[1:])
    assert [point["cer"] for point in alone[0]["grid"]] != [point["cer"] for point in alone[1]["grid"]]
    for first, second, mean in zip(*(record["grid"] for record in (*alone, both)), strict=True):
        assert first["lm_weight"] == second["lm_weight"] == mean["lm_weight"]
        for rate in ("wer", "cer"):
            assert mean[rate] == pytest.approx((first[rate] + second[rate]) / 2)
    assert both["sentences"] == sum(record["sentences"] for record in alone)
    assert both["wer"] == min(point["wer"] for point in both["grid"])
    tune(runs[1], TUNING | {"lm_weights": [0.0, 0.5]}, lm, files[1])
    with pytest.raises(UserError, match="other weights were tried"):
        tune(runs[0], TUNING, lm, tmp_path / "unlike.json", files[1:])


def test_lack_of_memory_in_tuning_names_the_setting(tmp_path, corpus, lm, monkeypatch):
    def search(batch):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr("pipeline.decoding.tune.build_decoder", lambda *_: search)
    run = write_run(tmp_path / "run", corpus, CTC)
    with pytest.raises(UserError, match=r"out of memory .*set decoding.batch_tokens to 100 \(now 200\)"):
        tune(run, TUNING, lm, tmp_path / "tuned.json")


@pytest.mark.parametrize("sentences", [4, 500])
def test_tuning_sample_spans_the_dev_set_for_any_batch_size(tmp_path, corpus, sentences):
    run = write_run(tmp_path / "run", corpus, CTC)
    trained, seen = TrainedModel.load(run / "model.safetensors", threads=1), []
    for batch_tokens in (1, 100, 10_000):
        batches, texts = sample(trained, DecodingConfig(tuning_sentences=sentences, batch_tokens=batch_tokens))
        assert all(len(batch.frames) == 1 or batch.frames.shape[:2].numel() <= batch_tokens for batch in batches)
        frames = [row[:count] for batch in batches for row, count in zip(batch.frames, batch.frame_counts, strict=True)]
        seen.append((texts, [float(frame.sum()) for frame in frames]))
    assert [texts for texts, _ in seen] == [seen[0][0]] * 3
    assert all(sums == pytest.approx(seen[0][1]) for _, sums in seen)
    dev = references(corpus, "dev")
    expected = [dev[index] for index in (0, 4, 8, 12)] if sentences == 4 else dev
    assert sorted(seen[0][0]) == sorted(expected) and len(batches) <= 2


def test_tuning_reads_only_the_development_set(tmp_path, corpus, lm):
    run = write_run(tmp_path / "run", corpus, RECOGNISER)
    settings = TUNING | {"tuning_sentences": 5}
    expected = tune(run, settings, lm, tmp_path / "tuned.json")
    for path in (*corpus.glob("test*"), *corpus.glob("train*")):
        path.unlink()
    assert tune(run, settings, lm, tmp_path / "again.json") == expected


@pytest.fixture
def score(tmp_path, corpus) -> Callable[[list[str]], ScoreFile | None]:
    """Score transcripts of the test set, with lines that end in `end`; None if the stage failed.

    The files of the first call are `0.txt` and `0.json`.
    """
    numbers = itertools.count()

    def scored(transcripts: list[str], end: str = "\n") -> ScoreFile | None:
        text = tmp_path / f"{next(numbers)}.txt"
        text.write_bytes("".join(f"{line}{end}" for line in transcripts).encode())
        options = ["--dataset", str(DATASET), "--corpus", str(corpus), "--split", "test", "--transcripts", str(text)]
        failed = main(["score-speech", *options, "--out", str(text.with_suffix(".json"))])
        return None if failed else ScoreFile.read(text.with_suffix(".json"))

    return scored


def test_scores_are_those_of_the_transcripts(tmp_path, corpus, score):
    said = references(corpus, "test")
    record = score([text[1:] for text in said[:-1]] + [said[-1]])
    characters = sum(map(len, said))
    assert record.metrics["cer"].value == pytest.approx(100 * (UTTERANCES - 1) / characters)
    assert read_statistics(tmp_path / "0.json", "wer")[:, 1].tolist() == [len(text.split()) for text in said]
    assert score(["one line"]) is None


@pytest.mark.parametrize("line", ["", " ", "<unk>", "\u2047"])
def test_transcripts_without_a_word_are_all_errors(corpus, score, line):
    metrics = score([line] * UTTERANCES).metrics
    assert all(metric.low <= metric.value <= metric.high for metric in metrics.values())
    assert metrics["wer"].low >= 100
    if set(line).isdisjoint("".join(references(corpus, "test"))):
        assert metrics["cer"].low >= 100
    else:
        assert line in (" ", "<unk>"), "whose characters are in the alphabet"


def test_transcripts_saved_on_windows_have_the_same_error_rates(corpus, score):
    heard = [text[1:] for text in references(corpus, "test")]
    assert score(heard).metrics == score(heard, end="\r\n").metrics


def test_transcripts_in_capitals_have_the_same_error_rates(corpus, score):
    heard = [text[1:] for text in references(corpus, "test")]
    assert score(heard).metrics == score([text.upper() for text in heard]).metrics


def test_speech_score_counts_the_unusable_utterances(corpus, score):
    said = references(corpus, "test")
    assert f"({UTTERANCES} lines, references" in score(said).test_set_in_words
    prepared_speech(test={"too long": 2, "outside the alphabet": 1}).write(corpus.parent / "prepared/report.json")
    assert f"({UTTERANCES} of {UTTERANCES + 3} lines, references" in score(said).test_set_in_words


def test_lm_perplexity_can_be_measured_on_another_corpus(tmp_path, corpus, lm, capsys):
    other = write_corpus(tmp_path / "corpora/target/encoded", seed=2)
    out, values = tmp_path / "perplexity.json", set()
    options = ["--weights", str(lm / "model.safetensors"), "--dataset", str(DATASET), "--threads", "1"]
    for heard in (corpus, other):
        assert main(["perplexity", *options, "--corpus", str(heard), "--out", str(out)]) == 0
        record = read_json(out)
        assert "unit:character" in record["metrics"]["perplexity"]["signature"]
        assert record["tokens"] == int(np.sum(TokenStore(heard / "dev.tgt").lengths() + 1))
        values.add(record["metrics"]["perplexity"]["value"])
    assert len(values) == 2
    SpeechCorpus.read(other / "corpus.json").model_copy(update={"vocab_digest": "subwords"}).write(
        other / "corpus.json"
    )
    assert main(["perplexity", *options, "--corpus", str(other), "--out", str(out)]) == 1
    assert "another vocabulary" in capsys.readouterr().err


def test_the_language_model_and_its_run_go_together(tmp_path, corpus, lm, capsys):
    run = write_run(tmp_path / "run", corpus, RECOGNISER)
    assert transcribe(run, corpus, "--language-model", str(lm)) is None
    assert "go together" in capsys.readouterr().err
    assert transcribe(run, corpus, lm_weight=0.5) is None
    assert "need a language_model" in capsys.readouterr().err


def test_ngrams_come_from_the_corpus_of_the_named_language_model(tmp_path, corpus):
    other = write_corpus(tmp_path / "corpora/target/encoded", seed=2)
    run, lm = write_run(tmp_path / "run", corpus, RECOGNISER), write_run(tmp_path / "lm-other", other, LM)
    trained = TrainedModel.load(run / "model.safetensors", threads=1)
    for folder, texts in ((None, corpus), (lm, other)):
        named = {"language_model": "lm@other"} if folder else {}
        used = load_external_lm(trained, DecodingConfig(ngram_order=2, **named), folder)
        store = TokenStore(texts / "train.tgt")
        first = Counter(int(store[index][0]) for index in range(len(store)))
        assert {symbol: int(count) for symbol, count in enumerate(used.counts[(BOS,)]) if count} == first


def test_ngrams_count_a_transcript_once_at_several_speeds(tmp_path, corpus):
    run, record = write_run(tmp_path / "run", corpus, RECOGNISER), SpeechCorpus.read(corpus / "corpus.json")
    trained, config = TrainedModel.load(run / "model.safetensors", threads=1), DecodingConfig(ngram_order=3)
    expected, texts = load_external_lm(trained, config, None).counts, [*TokenStore(corpus / "train.tgt")]
    with write_tokens(corpus / "train.tgt", len(Alphabet())) as tokens:
        for text in texts:
            tokens.append(np.tile(text, 4), [len(text)] * 4)
    record.model_copy(update={"speeds": 4}).write(corpus / "corpus.json")
    found = load_external_lm(trained, config, None).counts
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[context], expected[context]) for context in expected)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ngram_order": 3, "lm_weight": 0.5}, "used beside the model"),
        ({"ngram_order": 3, "lm_weights": [0.1]}, "used beside the model"),
        ({}, "instead needs a language_model or ngram_order"),
    ],
)
def test_replacement_lm_must_be_named_and_have_no_weight(settings, said):
    with pytest.raises(ValueError, match=said):
        DecodingConfig(language_model_use="instead", **settings)


@pytest.mark.parametrize("model", [RECOGNISER, CTC, JOINT], ids=["attention", "ctc", "joint"])
def test_ngram_weight_is_tuned_on_the_dev_set_and_used(tmp_path, corpus, model):
    run, tuned = write_run(tmp_path / "run", corpus, model), tmp_path / "tuned.json"
    settings = DECODING | {"ngram_order": 3, "lm_weights": [0.0, 5.0], "tuning_sentences": 4}
    tune(run, settings, None, tuned)
    assert [point.lm_weight for point in TunedWeights.read(tuned).grid] == [0.0, 5.0]
    assert transcribe(run, corpus, "--tuned", str(tuned), **settings) is not None
    plain = transcribe(run, corpus)
    assert transcribe(run, corpus, ngram_order=3, lm_weight=0.0) == plain
    assert transcribe(run, corpus, ngram_order=3, lm_weight=5.0) != plain
