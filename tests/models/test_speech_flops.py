"""Counted operations against torch's own counter, which sees recurrent layers only where they are not fused."""

import pytest
import torch
from small_models import pairs, transformer_config
from speech_batches import VOCAB, attention_config, ctc_config, fusion_config, joint_config, lm_config, speech
from torch.utils.flop_counter import FlopCounterMode

from pipeline.config import LanguageModelRun, RunSpec, TrainingConfig
from pipeline.models.settings import BatchShape
from pipeline.training.run_model import build_run_model
from pipeline.training.specification import run_flops

FRAMES, CHARACTERS, ROWS = 48, 7, 8
SHAPE = BatchShape(VOCAB, ROWS * FRAMES, ROWS * (CHARACTERS + 1), FRAMES, CHARACTERS + 1)


def spec(model, row: str | None = None, trained_part: str = "all") -> RunSpec:
    sizes = {"max_steps": 1, "warmup_steps": 1, "sentences_per_update": 1, "validate_every": 1, "checkpoint_every": 1}
    sizes |= {"label_smoothing": 0.0}
    fused = {}
    if row:
        fused = {"fusion": fusion_config(row), "language_model": LanguageModelRun(run="lm", model=lm_config())}
    names = dict.fromkeys(("paper", "system", "dataset", "scale", "corpus"), "x")
    training = TrainingConfig(trained_part=trained_part, **sizes)
    return RunSpec(**names, seed=1, model=model, training=training, initial="am", **fused)


def counted(run: RunSpec, batch, vocab: int) -> float:
    """Count FLOPs of forward and backward; the gradient of the frames is requested to make all layers alike."""
    if hasattr(batch, "frames"):
        batch.frames.requires_grad_(run.fusion is None or run.fusion.kind == "cold")
    model = build_run_model(run, (vocab, vocab)).train()
    with torch.backends.mkldnn.flags(enabled=False), FlopCounterMode(display=False) as counter:
        model.loss(batch, 0.0).loss.backward()
    return counter.get_total_flops()


MODELS = [attention_config(frame_stacking=2), attention_config(gru_reads="last context"), ctc_config()]


@pytest.mark.parametrize("model", [*MODELS, joint_config(), lm_config()])
def test_operations_of_an_update(model):
    batch = speech([FRAMES] * ROWS, [CHARACTERS] * ROWS)
    ours = run_flops(spec(model), SHAPE)
    assert counted(spec(model), batch, VOCAB) == pytest.approx(ours, rel=0.03)


@pytest.mark.parametrize("row", ["DF0", "DF3", "CF2", "CF4"])
def test_operations_of_a_fusion(row):
    batch, run = speech([FRAMES] * ROWS, [CHARACTERS] * ROWS), spec(attention_config(), row)
    ours = run_flops(run, SHAPE)
    assert counted(run, batch, VOCAB) == pytest.approx(ours, rel=0.03)


def test_training_only_the_fusion_layer_costs_fewer_flops():
    alone, together = (run_flops(spec(attention_config(), "CF4", part), SHAPE) for part in ("fusion", "all"))
    assert alone < 0.6 * together


def test_operations_of_a_fused_translation_model():
    run = spec(transformer_config(tie_embeddings="none"), "CF4")
    ours = run_flops(run, BatchShape(40, 640, 768, 10, 12))
    assert counted(run, pairs([10] * 64, [12] * 64), 40) == pytest.approx(ours, rel=0.1)
