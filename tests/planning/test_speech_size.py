"""Corpora of speech and text are measured where they are encoded, and planned as the training cuts them."""

from pathlib import Path

import numpy as np
import pytest
from made_records import speech_corpus, text_corpus, training_config
from real_project import project_at

from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT
from pipeline.data.batches.speech_batches import SpeechBatches, SpeechSplit
from pipeline.data.dataset import load_dataset
from pipeline.data.sequence_store import FEATURES, write_frames, write_tokens
from pipeline.data.text.vocabulary import FIRST, Alphabet
from pipeline.planning.corpus_size import Corpus
from pipeline.planning.jobs import Jobs


def write_corpus(folder: Path, kind: str, utterances: int) -> None:
    rng = np.random.default_rng(8)
    counts = rng.integers(20, 300, utterances)
    texts = [rng.integers(FIRST, len(Alphabet()), count // 5) for count in counts]
    with write_frames(folder / "train") as frames, write_tokens(folder / "train.tgt", len(Alphabet())) as tokens:
        for count, text in zip(counts, texts, strict=True):
            frames.append(rng.normal(size=(count, FEATURES)))
            tokens.append(text, [len(text)])
    sizes = {"pairs": utterances, "tgt_tokens": sum(map(len, texts))}
    if kind == "speech":
        corpus = speech_corpus(splits={"train": sizes | {"src_tokens": int(counts.sum()), "seconds": 1.0}})
    else:
        corpus = text_corpus(splits={"train": sizes})
    corpus.write(folder / "corpus.json")


def test_an_update_of_speech_is_forecast_as_it_is_batched(tmp_path):
    write_corpus(tmp_path / "encoded", "speech", 400)
    training = training_config(sentences_per_update=16, max_frames=280)
    dataset = load_dataset(ROOT / "workflow/datasets/grammar-smoke-speech-source.yaml")
    shape = Corpus.of(dataset, tmp_path).step_shape(training)
    data = SpeechBatches(SpeechSplit(tmp_path / "encoded", "train"), training, seed=4)
    updates = [batch for step in range(3 * len(data)) for batch in data.micro_batches(step)]
    counts = [(batch.frames[..., 0].numel(), batch.tgt_out.numel(), batch.num_tokens) for batch in updates]
    found = (shape.src_positions, shape.tgt_positions, shape.tgt_tokens)
    assert found == pytest.approx(tuple(np.mean(counts, axis=0)), rel=0.02)


def test_text_has_no_source(tmp_path):
    write_corpus(tmp_path / "encoded", "text", 200)
    dataset = load_dataset(ROOT / "workflow/datasets/grammar-smoke-text-full.yaml")
    shape = Corpus.of(dataset, tmp_path).step_shape(training_config(sentences_per_update=32))
    assert shape.src_positions == shape.src_length == 0 and shape.tgt_positions > shape.tgt_tokens > 0


@pytest.mark.parametrize(
    ("kind", "sizes", "limit"),
    [
        ("parallel", {"max_length": 2, "tokens_per_update": 900}, "max_length"),
        ("parallel", {"max_length": 900, "tokens_per_update": 2}, "tokens_per_update"),
        ("speech", {"max_frames": 2, "sentences_per_update": 4}, r"max_frames or training\.max_length"),
        ("text", {"max_length": 2, "sentences_per_update": 4}, "max_length"),
    ],
)
def test_sequences_that_are_all_too_long_are_refused(kind, sizes, limit):
    corpus = Corpus({"train": 100}, 200.0, 200.0, 50, 50, None, kind)
    message = rf"no training sequence is short enough, the shortest has .* with EOS; raise training\.{limit}$"
    with pytest.raises(UserError, match=message):
        corpus.step_shape(training_config(**sizes))


def test_expected_speech_size_is_near_shipped_corpora():
    for name, seconds in (("grammar-speech-source", 2.11), ("librispeech", 12.2)):
        corpus = Corpus.of(load_dataset(ROOT / f"workflow/datasets/{name}.yaml"), Path("nowhere"))
        assert corpus.kind == "speech" and corpus.src_subwords == pytest.approx(100 * seconds, rel=0.05)
        assert corpus.tgt_vocab == 32


def test_speech_has_its_own_jobs(tmp_path):
    jobs = Jobs(project_at(tmp_path), [], None)
    speech = {job.kind: job for job in jobs.corpus_jobs("grammar-speech-source")}
    assert list(speech) == ["generate", "speak", "features"]
    assert speech["features"].disk_bytes == pytest.approx(6900 * (211 * 80 + 34 * 2), rel=0.1)
    assert speech["speak"].seconds > 0 and speech["speak"].disk_bytes > 1e8
    assert [job.kind for job in jobs.corpus_jobs("librispeech")] == ["download", "features"]
    assert [job.kind for job in jobs.corpus_jobs("grammar-text-full")] == ["generate", "encode"]


@pytest.mark.parametrize(("name", "kind", "shared"), [("wsj-semi", "prepare", False), ("wmt14-en-de", "prepare", True)])
def test_only_shared_work_is_forecast_to_gain_by_threads(tmp_path, monkeypatch, name, kind, shared):
    seconds = []
    for threads in (1, 16):
        jobs = Jobs(project := project_at(tmp_path), [], None)
        resources = project.scale.resources["prepare"]
        monkeypatch.setitem(project.scale.resources, "prepare", resources.model_copy(update={"threads": threads}))
        (job,) = (job for job in jobs.corpus_jobs(name) if job.kind == kind)
        seconds.append(job.seconds)
    assert seconds[0] / seconds[1] == pytest.approx(16 if shared else 1)
