"""Records as the stages write them, with made-up values for all fields that a test does not set."""

import math

from pipeline.config import TrainingConfig
from pipeline.core.records import corpus, training
from pipeline.core.records.outputs import Decoded, LayerCosts, ScoreFile
from pipeline.data.sequence_store import FEATURES
from pipeline.data.text.vocabulary import Alphabet

UPDATES = training.TrainingLoss(loss_per_token=1.0, nll_per_token=1.0, perplexity=math.e)
MACHINE = training.Machine(device="toy processor", threads=1, processes=1, torch="2")
START = training.StartCost(
    **dict(MACHINE),
    started="2026-01-01T00:00:00+00:00",
    stopped="2026-01-01T00:00:10+00:00",
    node="toy",
    steps=1,
    seconds=10.0,
    gpu_hours=0.0,
    peak_memory_gib=1.0,
    tokens=1,
    flops=1e9,
)


def data_loss(nll: float) -> training.Loss:
    return training.Loss(nll_per_token=nll, perplexity=math.exp(nll), tokens=100)


def trained_run(**values) -> training.TrainedRun:
    made = {
        "key": "toy",
        "weights_digest": "toy",
        "steps": 1,
        "dev": data_loss(1.0),
        "train": UPDATES,
        "parameters": training.Parameters(total=1, branch_weights=0),
        "skipped_updates": 0,
        "updates_per_epoch": 1,
        "padding": 0.0,
        "left_out_pairs": 0,
    }
    return training.TrainedRun.model_validate(made | values)


def training_config(**values) -> TrainingConfig:
    """For what reads no more of it than the values given."""
    steps = {"max_steps": 1, "schedule": "constant", "lr": 1.0, "validate_every": 1, "checkpoint_every": 1}
    return TrainingConfig(**steps | values)


def start_cost(**values) -> training.StartCost:
    return training.StartCost.model_validate(dict(START) | values)


def training_cost(*starts: training.StartCost) -> training.TrainingCost:
    return training.TrainingCost(starts=starts, total=training.TotalCost.of(starts))


def validation_line(**values) -> training.ValidationLine:
    return training.ValidationLine.model_validate({"train": UPDATES} | values)


def progress_line(step: int, loss: float = 2.0, **values) -> training.ProgressLine:
    made = {"max_steps": 100, "loss_per_token": loss, "nll_per_token": loss, "perplexity": math.exp(loss), "lr": 1e-4}
    made |= {"gradient_norm": 1.0, "tokens_per_s": 1234.0, "loader_share": 0.0, "seconds_left": 3700.0}
    return training.ProgressLine.model_validate({"step": step} | made | values)


def parallel_split(pairs: int = 1, src_tokens: int = 1, tgt_tokens: int = 1) -> corpus.ParallelSizes:
    lost = {"src_unknown": 0, "src_changed": 0, "tgt_unknown": 0, "tgt_changed": 0}
    return corpus.ParallelSizes(pairs=pairs, src_tokens=src_tokens, tgt_tokens=tgt_tokens, **lost)


def parallel_corpus(vocab_size: int, vocab_digest: str = "toy", **values) -> corpus.ParallelCorpus:
    """Return the record of a corpus; by default both sides share one vocabulary."""
    made = {"vocab_size": vocab_size, "vocab_digest": vocab_digest}
    made |= {"tgt_vocab_size": vocab_size, "tgt_vocab_digest": vocab_digest}
    made |= {"dataset": "toy", "src": "en", "tgt": "de", "digest": "toy", "splits": {}}
    return corpus.ParallelCorpus.model_validate(made | values)


def text_corpus(**values) -> corpus.TextCorpus:
    made = {"vocab_size": len(Alphabet()), "vocab_digest": Alphabet().digest}
    made |= {"dataset": "toy", "tgt": "en", "digest": "toy", "splits": {}}
    return corpus.TextCorpus.model_validate(made | values)


def speech_corpus(mean: float = 0.0, deviation: float = 1.0, features: int = FEATURES, **values) -> corpus.SpeechCorpus:
    statistics = corpus.Statistics(mean=[mean] * features, deviation=[deviation] * features)
    made = {"features": features, "vocab_size": len(Alphabet()), "vocab_digest": Alphabet().digest}
    made |= {"dataset": "toy", "tgt": "en", "digest": "toy", "splits": {}, "statistics": statistics}
    return corpus.SpeechCorpus.model_validate(made | values)


def score_file(metrics: dict, lines: int) -> ScoreFile:
    made = {"dataset": "toy", "split": "test", "test_set": "toy", "statistics": "toy.npz", "references": "toy"}
    return ScoreFile.model_validate(made | {"metrics": metrics, "lines": lines})


def prepared_speech(**rejected: dict[str, int]) -> corpus.PreparedSpeech:
    """rejected: of each split, by reason."""
    counts = dict.fromkeys(("read", "kept", "utterances", "frames", "seconds", "characters", "words"), 0)
    splits = {split: counts | {"rejected": found, "examples": []} for split, found in rejected.items()}
    return corpus.PreparedSpeech.model_validate({"dataset": "toy", "splits": splits})


def decoded(**values) -> Decoded:
    made = {"split": "test", "lines": 1, "cut_at_last_position": 0, "weights": "toy", "decoding": {}}
    made |= {"precision": "fp32", "device": "cpu", "seconds": 1.0, "sentences_per_second": 1.0}
    return Decoded.model_validate(made | values)


def layer_costs(times: list[dict], **values) -> LayerCosts:
    made = {"matmul_flops_per_s": 1e10, "kernel": 3, "window": 32, "on_processor": True, **dict(MACHINE)}
    return LayerCosts.model_validate(made | {"times": times, "provenance": {"commit": "abc"}} | values)


def measured_noise(dataset: str = "toy", **values: list[float]) -> training.MeasuredNoise:
    """Return the noise of twenty trainings; values: by quantity."""
    return training.MeasuredNoise(
        system="toy/system",
        dataset=dataset,
        scale="demo",
        commit="toy",
        device="toy processor",
        seeds=list(range(1, 21)),
        weights=["toy"] * 20,
        values=values,
    )
