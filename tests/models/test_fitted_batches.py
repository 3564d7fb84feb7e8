"""Batches padded to a shape of the grid: the same loss and gradients as those of the batch itself.

Tolerance: 2e-5 of the loss, and of each gradient 1e-4 of its norm, in float32.
"""

import pytest
import recurrent_models
import small_models
import torch
from gradients import loss_and_gradients
from small_models import pairs, rows
from speech_batches import VOCAB, attention_config, ctc_config, fused_recogniser, joint_config, lm_config, speech

from pipeline.data.batches.fixed_size_batches import TextOnlyBatch
from pipeline.models.architectures import build_model
from pipeline.models.layers.regularisation import unrolled_logits

TEXT = small_models.STRUCTURES | recurrent_models.STRUCTURES
SPEECH = {
    "recogniser": attention_config(),
    "recogniser, stacked frames": attention_config(frame_stacking=2),
    "recogniser, last context": attention_config(gru_reads="last context", task_state="state"),
    "ctc": ctc_config(),
    "joint recogniser": joint_config(),
    "joint, normalised utterances": joint_config(utterance_mean="removed", utterance_deviation="one", subsampling=2),
    "ctc, normalised utterances": ctc_config(utterance_mean="removed", utterance_deviation="one"),
}
FUSIONS = ["DF0", "DF3", "CF2", "CF4"]


@pytest.mark.parametrize("name", [*TEXT, *SPEECH, *FUSIONS, "text alone"])
def test_padding_a_batch_changes_no_gradient(name):
    if name in FUSIONS:
        model = fused_recogniser(name)
    elif name in SPEECH:
        model = build_model(SPEECH[name], (VOCAB, VOCAB))
    else:
        model = build_model(TEXT.get(name, lm_config()), (small_models.VOCAB, small_models.VOCAB))
    batch = pairs([5, 8, 3, 8], [4, 7, 7, 2]) if name in TEXT else speech([40, 31, 57], [4, 3, 6])
    if name == "text alone":
        text = pairs([3, 3, 3], [4, 7, 2])
        batch = TextOnlyBatch(text.tgt_in, text.tgt_out)
    rows, source = batch.src_shape
    fitted = batch.fitted_to(rows + 3, source + 9, batch.tgt_out.shape[1] + 4)
    assert fitted.num_tokens == batch.num_tokens and fitted.tgt_out.shape[0] == rows + 3
    model.train()
    smoothing = 0.0 if "ctc" in name else 0.1
    expected, gradients = loss_and_gradients(model, lambda: model.loss(batch, smoothing))
    found, padded = loss_and_gradients(model, lambda: model.loss(fitted, smoothing))
    torch.testing.assert_close((found.loss, found.nll), (expected.loss, expected.nll), rtol=2e-5, atol=0)
    assert padded.keys() == gradients.keys()
    scale = max(float(gradient.norm()) for gradient in gradients.values())
    for weight, gradient in gradients.items():
        assert float((padded[weight] - gradient).norm()) < 1e-4 * max(float(gradient.norm()), 1e-2 * scale), weight


@pytest.mark.parametrize("name", [*TEXT, *SPEECH])
@torch.no_grad()
def test_a_decoded_sequence_is_not_changed_by_longer_ones(name):
    """Outside training, at every output frame of CTC and every symbol of the others."""
    sources, targets = [17, 8, 5] if name in TEXT else [37, 21, 9], [6, 3, 4]
    batch, vocab = (pairs(sources, targets), small_models.VOCAB) if name in TEXT else (speech(sources, targets), VOCAB)
    model = build_model((TEXT | SPEECH)[name], (vocab, vocab)).eval()

    def scores(batch):
        return model.log_probs(batch)[0] if "ctc" in name else unrolled_logits(model, batch, 0.0)

    for row, together in enumerate(scores(batch)):
        single = rows(batch, row, sources[row], targets[row]) if name in TEXT else batch.row(row)
        (alone,) = scores(single)
        torch.testing.assert_close(together[: len(alone)], alone, rtol=0, atol=1e-5)


def test_padded_utterances_leave_running_statistics_alone():
    model, batch = build_model(ctc_config(), (VOCAB, VOCAB)).train(), speech([40, 31, 57], [4, 3, 6])
    before = [buffer.clone() for buffer in model.buffers()]
    model.loss(batch, 0.0)
    expected = [buffer.clone() for buffer in model.buffers()]
    for buffer, value in zip(model.buffers(), before, strict=True):
        buffer.copy_(value)
    model.loss(batch.fitted_to(5, 64, 9), 0.0)
    torch.testing.assert_close([*model.buffers()], expected)


def test_a_fitted_batch_keeps_what_it_knows_when_moved():
    batch = speech([9, 7], [2, 3])
    moved = batch.fitted_to(4, 12, 6).packed(pin=False).to("cpu")
    assert moved.on_grid and moved.num_tokens == batch.num_tokens == 7
    assert moved.buffer is not None and moved.frames.shape == (4, 12, batch.frames.shape[2])
