"""Counted FLOPs of training steps against those of torch's operators."""

import pytest
import recurrent_models
import small_models
import torch
from made_records import training_config
from small_models import pairs, transformer_config
from speech_batches import VOCAB, attention_config, ctc_config, fusion_config, joint_config, lm_config, speech
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from pipeline.config import LanguageModelRun, RunSpec
from pipeline.models.architectures import architectures, build_model
from pipeline.models.settings import BatchShape, training_flops
from pipeline.training.run_model import build_run_model
from pipeline.training.specification import run_flops

WIDE = {"d_embedding": 24, "d_readout": 28}
TEXT = small_models.CONFIGS | {
    name: config.model_copy(update=WIDE | ({"d_state": 24, "d_attention": 40} if "channels" in dict(config) else {}))
    for name, config in recurrent_models.CONFIGS.items()
}


class ProductCounter(TorchDispatchMode):
    """Multiply-adds of matmuls, those in place among them, which torch's counter passes over."""

    def __init__(self):
        super().__init__()
        self.products = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name.removeprefix("aten::").rstrip("_")
        if name in ("mm", "bmm", "mv", "addmm", "addmv", "baddbmm"):
            left, right = args[:2] if name in ("mm", "bmm", "mv") else args[1:3]
            self.products += left.numel() * (right.shape[-1] if "mm" in name else 1)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", TEXT)
def test_flops_equal_the_counted_matmuls_of_a_training_step(name):
    """The Weighted Transformer's products of parameters do not grow with the batch, and are left out."""
    config, vocab, rows = TEXT[name], small_models.VOCAB, 32
    model, batch = build_model(config, (vocab, vocab)), pairs([10] * rows, [12] * rows)
    with ProductCounter() as counter:
        model.loss(batch, 0.1).loss.backward()
    merged = len(getattr(model, "blocks", [])) * 6 * 32 * 8 * 48 if getattr(config, "residuals", "") == "block" else 0
    merged *= 4 if getattr(config, "ffn_mode", "") == "shared" else 1
    ours = training_flops(config, BatchShape(vocab, 10 * rows, 12 * rows, 10, 12))
    assert 2 * counter.products == pytest.approx(ours + merged, rel=0.02)


def spec(model, row: str | None = None, trained_part: str = "all") -> RunSpec:
    fused = (
        {"fusion": fusion_config(row), "language_model": LanguageModelRun(run="lm", model=lm_config())} if row else {}
    )
    names = dict.fromkeys(("paper", "system", "dataset", "scale", "corpus"), "x")
    training = training_config(sentences_per_update=1, label_smoothing=0.0, trained_part=trained_part)
    return RunSpec(**names, seed=1, model=model, training=training, initial="am", **fused)


def counted(run: RunSpec, batch, vocab: int) -> float:
    """Count FLOPs of forward and backward by torch's counter, which sees recurrent layers only if they are not fused.

    The gradient of the frames is requested to make all layers alike.
    """
    if hasattr(batch, "frames"):
        batch.frames.requires_grad_(
            run.fusion is None or (run.fusion.kind, run.training.trained_part) == ("cold", "all")
        )
    model = build_run_model(run, (vocab, vocab)).train()
    with torch.backends.mkldnn.flags(enabled=False), FlopCounterMode(display=False) as counter:
        model.loss(batch, 0.0).loss.backward()
    return counter.get_total_flops()


FRAMES, CHARACTERS, ROWS = 48, 7, 8
SHAPE = BatchShape(VOCAB, ROWS * FRAMES, ROWS * (CHARACTERS + 1), FRAMES, CHARACTERS + 1)
MODELS = [attention_config(frame_stacking=2), attention_config(gru_reads="last context"), ctc_config()]
RUNS = [*map(spec, (*MODELS, joint_config(), lm_config()))]
RUNS += [spec(attention_config(), row) for row in ("DF0", "DF3", "CF2", "CF4")]
RUNS += [spec(attention_config(), "CF4", "fusion")]


def test_flops_of_every_architecture_are_compared():
    compared = {config.architecture for config in TEXT.values()} | {run.model.architecture for run in RUNS}
    assert compared == set(architectures()), "add a configuration to tests/models/small_models.py"


@pytest.mark.parametrize("run", RUNS)
def test_flops_of_speech_runs_are_those_counted(run):
    batch = speech([FRAMES] * ROWS, [CHARACTERS] * ROWS)
    assert counted(run, batch, VOCAB) == pytest.approx(run_flops(run, SHAPE), rel=0.03)


def test_joint_recogniser_without_targets_runs_no_decoder_layer():
    shape, config = SHAPE._replace(tgt_positions=0), joint_config()
    wider = config.model_copy(update={"d_ff": 2 * config.d_ff})
    assert wider.forward_macs(shape) == pytest.approx(config.forward_macs(shape), rel=1e-12)
    assert wider.forward_macs(SHAPE) > config.forward_macs(SHAPE)


def test_flops_of_a_fused_translation_model_are_those_counted():
    run = spec(transformer_config(tie_embeddings="none"), "CF4")
    ours = run_flops(run, BatchShape(40, 640, 768, 10, 12))
    assert counted(run, pairs([10] * 64, [12] * 64), 40) == pytest.approx(ours, rel=0.1)
