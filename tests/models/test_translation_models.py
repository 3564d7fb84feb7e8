"""Properties that hold for every model of a target given a source, whatever its architecture."""

import dataclasses

import pytest
import recurrent_models
import small_models
import torch
from small_models import VOCAB, pairs, rows

from pipeline.models.architectures import build_model

CONFIGS = small_models.STRUCTURES | recurrent_models.STRUCTURES
ROUNDING = 2e-5


@pytest.fixture(params=CONFIGS)
def model(request):
    return build_model(CONFIGS[request.param], (VOCAB, VOCAB)).eval()


def logits(model, batch):
    """Teacher-forced logits (B, T, V)."""
    return model.logits(model.states(batch))


@torch.no_grad()
def test_padding_changes_nothing(model):
    batch = pairs([9, 4, 6], [3, 8, 5])
    together = logits(model, batch)
    for row, (src_length, tgt_length) in enumerate([(9, 3), (4, 8), (6, 5)]):
        alone = logits(model, rows(batch, row, src_length, tgt_length))
        torch.testing.assert_close(together[row, :tgt_length], alone[0], rtol=0, atol=ROUNDING)


@torch.no_grad()
def test_later_targets_leave_earlier_logits_alone(model):
    """To the bit, where products are as long as before."""
    rounding = 0 if "transformer" in model.config.architecture else 1e-5
    batch = pairs([6, 6], [8, 8])
    before = logits(model, batch)
    for position in (2, 5):
        changed = batch.tgt_in.clone()
        changed[:, position] = (changed[:, position] + 1) % VOCAB
        after = logits(model, dataclasses.replace(batch, tgt_in=changed))
        torch.testing.assert_close(after[:, :position], before[:, :position], rtol=0, atol=rounding)
        assert not torch.allclose(after[:, position], before[:, position], atol=1e-7)


@torch.inference_mode()
def test_incremental_steps_equal_teacher_forcing(model):
    batch = pairs([9, 4, 6], [7, 7, 7])
    expected = logits(model, batch)
    source, cache = model.start(batch)
    for position in range(7):
        step_logits, cache = model.step(batch.tgt_in[:, position : position + 1], source, cache)
        assert step_logits.dtype == torch.float32
        torch.testing.assert_close(step_logits[:, 0], expected[:, position], rtol=0, atol=ROUNDING)


@torch.inference_mode()
def test_hypotheses_of_a_sentence_do_not_see_each_other(model):
    batch = pairs([9, 4], [6, 6])
    hypotheses = torch.randint(4, VOCAB, (2, 3, 6))
    source, cache = model.start(batch)
    cache = torch.utils._pytree.tree_map(lambda t: t.expand(-1, 3, *t.shape[2:]), cache)
    for position in range(6):
        step_logits, cache = model.step(hypotheses[..., position], source, cache)
    for k in range(3):
        expected = logits(model, dataclasses.replace(batch, tgt_in=hypotheses[:, k]))[:, -1]
        torch.testing.assert_close(step_logits[:, k], expected, rtol=0, atol=ROUNDING)
