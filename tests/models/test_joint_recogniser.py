"""CTC and attention on one encoder: the sum of their losses, and the input of the encoder."""

import pytest
import torch
from speech_batches import VOCAB, joint_config, speech

from pipeline.models.joint_recogniser.model import JointRecogniser
from pipeline.models.layers.speech_encoder import divide_by_deviation, random_spans, spec_augment, subtract_mean
from pipeline.models.settings import PAD


@pytest.fixture(autouse=True)
def same_draws():
    torch.manual_seed(3)


def model(**changes) -> JointRecogniser:
    return JointRecogniser(joint_config(**changes), VOCAB).eval()


def test_the_loss_is_the_weighted_sum_of_both():
    joint, batch = model(), speech([60, 41, 52], [4, 7, 2])
    losses = []
    for share in (0.0, 1.0, 0.3):
        joint.config = joint_config(ctc_share=share)
        losses.append(joint.loss(batch, 0.1))
    attention, ctc, both = losses
    torch.testing.assert_close(both.loss, 0.7 * attention.loss + 0.3 * ctc.loss)
    torch.testing.assert_close(both.nll, 0.7 * attention.nll + 0.3 * ctc.nll)
    assert both.tokens == 4 + 7 + 2 + 3


def test_joint_decoder_loss_equals_its_steps_and_its_rescoring():
    joint, batch = model(ctc_share=0.0), speech([60, 41], [4, 7])
    source, cache = joint.start(batch)
    total = torch.zeros(2)
    for place in range(batch.tgt_in.shape[1]):
        logits, cache = joint.step(batch.tgt_in[:, place : place + 1], source, cache)
        symbols = batch.tgt_out[:, place]
        total += logits[:, 0].log_softmax(-1).gather(1, symbols.unsqueeze(1)).squeeze(1) * (symbols != PAD)
    torch.testing.assert_close(joint.loss(batch, 0.0).nll, -total.sum(), rtol=1e-4, atol=1e-4)
    both_ways = torch.stack((batch.tgt_in, batch.tgt_in), 1), torch.stack((batch.tgt_out, batch.tgt_out), 1)
    found = joint.text_log_probs(*joint.encode_batch(batch)[:2], *both_ways)
    torch.testing.assert_close(found, torch.stack((total, total), 1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "changes", [{}, {"utterance_mean": "removed", "utterance_deviation": "one"}, {"subsampling": 2}]
)
def test_padding_after_an_utterance_changes_nothing(changes):
    joint, batch = model(**changes), speech([60, 41, 33], [4, 7, 2])
    encoded, real, _ = joint.encode_batch(batch)
    for row in range(3):
        alone, *_ = joint.encode_batch(batch.row(row))
        torch.testing.assert_close(encoded[row, : alone.shape[1]], alone[0], rtol=1e-4, atol=1e-5)
        assert int(real[row].sum()) == alone.shape[1] == joint.config.output_frames(int(batch.frame_counts[row]))


def test_the_mean_is_over_an_utterances_own_frames():
    frames = torch.tensor([[[1.0], [3.0], [99.0]], [[2.0], [4.0], [9.0]]])
    assert subtract_mean(frames, torch.tensor([2, 3])).flatten().tolist() == [-1, 1, 0, -3, -1, 4]


def test_the_deviation_is_over_an_utterances_own_frames():
    frames = torch.tensor([[[3.0], [-3.0], [0.0]], [[0.0], [0.0], [0.0]]])
    found = divide_by_deviation(frames, torch.tensor([2, 3]))
    torch.testing.assert_close(found, frames / (9 + 1e-2) ** 0.5)


def test_random_spans_fit_and_reach_their_maximum_width():
    room, widest = torch.tensor([50.0, 9.0, 3.0]), torch.tensor([10.0, 9.0, 0.0])
    widths = torch.stack([random_spans(room, widest, 1, 50).sum(1) for _ in range(600)])
    assert widths.max(0).values.tolist() == [10, 9, 0] and widths.min() == 0
    struck = torch.stack([random_spans(room, widest, 1, 50) for _ in range(600)]).any(0)
    assert struck.sum(1).tolist() == [50, 9, 0]
    assert widths[:, 0].float().mean() == pytest.approx(5, abs=0.5)  # uniform in 0 … 10


def test_spec_augment_zeroes_spans_and_keeps_the_rest():
    frames = torch.randn(2, 80, 40)
    found = spec_augment(frames, torch.tensor([80, 40]), (2, 30, 0.25), (1, 8))
    gone = found == 0
    assert torch.equal(found[~gone], frames[~gone])
    whole = gone.all(2).sum(1)
    assert 0 < whole[0] <= 2 * 20 and whole[1] <= 2 * 10
    assert torch.equal(spec_augment(frames, torch.tensor([80, 40]), (0, 30, 0.25), (0, 8)), frames)
