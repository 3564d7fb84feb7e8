"""The joint recogniser: its decoder loop, its CTC lattice, and both losses together."""

import itertools

import pytest
import torch
from gradients import assert_close_by_name, loss_and_gradients, with_gradients
from speech_batches import FUSIONS, VOCAB, attention_config, fused_recogniser, joint_config, speech
from torch.nn import functional as F

from pipeline.models.ctc.lattice import ctc_lattice_loss
from pipeline.models.joint_recogniser.model import JointRecogniser
from pipeline.models.layers.regularisation import unrolled_loss
from pipeline.models.layers.speech_encoder import divide_by_deviation, random_spans, spec_augment, subtract_mean
from pipeline.models.seq2seq import Seq2Seq
from pipeline.models.settings import PAD
from pipeline.models.speech_attention.model import AttentionRecogniser


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


def test_a_joint_recogniser_has_no_table_of_learned_positions():
    """Frames would count against it, although the encoder reads no positions."""
    with pytest.raises(ValueError, match="positions: learned is for text"):
        joint_config(positions="learned")


@pytest.mark.parametrize("subsampling", [2, 4])
def test_joint_encoder_has_as_many_frames_as_its_settings_count(subsampling):
    joint, batch = model(subsampling=subsampling), speech([60, 41, 33], [4, 7, 2])
    _, real, _ = joint.encode_batch(batch)
    assert real.sum(1).tolist() == [joint.config.output_frames(int(count)) for count in batch.frame_counts]


def test_mean_and_deviation_are_over_an_utterances_own_frames():
    lengths, frames = torch.tensor([2, 3]), torch.tensor([[[1.0], [3.0], [99.0]], [[2.0], [4.0], [9.0]]])
    assert subtract_mean(frames, lengths).flatten().tolist() == [-1, 1, 0, -3, -1, 4]
    frames = torch.tensor([[[3.0], [-3.0], [0.0]], [[0.0], [0.0], [0.0]]])
    torch.testing.assert_close(divide_by_deviation(frames, lengths), frames / (9 + 1e-2) ** 0.5)


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


def compare(model: Seq2Seq, rate: float) -> None:
    """Compare loss and gradients with those of single steps; weights are as large as learnt ones."""
    torch.manual_seed(4)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    model.sampling_rate, batch = rate, speech([37, 21, 9], [6, 3, 1])
    ours, gradients = loss_and_gradients(model, lambda: model.loss(batch, 0.1))
    theirs, expected = loss_and_gradients(model, lambda: unrolled_loss(model, batch, 0.1, rate))
    torch.testing.assert_close(ours.loss, theirs.loss, rtol=1e-5, atol=0)
    assert_close_by_name(gradients, expected, rel=1e-4)


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize("task_state", ["state and context", "state"])
@pytest.mark.parametrize("gru_reads", ["this context", "last context"])
def test_loss_and_gradients_are_those_of_the_steps(gru_reads, task_state, rate):
    compare(AttentionRecogniser(attention_config(gru_reads=gru_reads, task_state=task_state), VOCAB), rate)


@pytest.mark.parametrize(("row", "rate"), [*zip(FUSIONS, itertools.cycle((0.0, 0.5))), ("CF4", 0.0)])
def test_loss_and_gradients_of_a_fusion_are_those_of_the_steps(row, rate):
    compare(fused_recogniser(row), rate)


@pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(),
    reason="this processor has no bfloat16, of which oneDNN's LSTM knows no detour; trainings take float32 here",
)
def test_bfloat16_products_change_the_loss_by_their_rounding():
    model, batch = AttentionRecogniser(attention_config(), VOCAB).train(), speech([37, 21], [6, 3])
    with torch.autocast("cpu", torch.bfloat16):
        narrow = model.loss(batch, 0.0).loss
    wide = model.loss(batch, 0.0).loss
    torch.testing.assert_close(narrow, wide, rtol=0.01, atol=0)
    narrow.backward()
    assert all(weight.grad.isfinite().all() and weight.grad.dtype == torch.float32 for weight in model.parameters())


def lattice_inputs():
    """Return logits, targets, and numbers of frames and characters; some utterances have few of either."""
    rows, frames, characters, symbols = 6, 17, 5, 9
    logits = torch.randn(rows, frames, symbols, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(PAD + 1, symbols, (rows, characters))
    frame_counts = torch.randint(2 * characters + 1, frames + 1, (rows,))
    return logits, targets, frame_counts, torch.randint(0, characters + 1, (rows,))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("is_repeated", [False, True], ids=["any characters", "one character repeated"])
def test_lattice_loss_and_gradient_equal_torchs_own(is_repeated, seed):
    """Between equal characters there has to be a blank."""
    torch.manual_seed(seed)
    logits, targets, *counts = lattice_inputs()
    if is_repeated:
        targets[:] = targets[:, :1]
    by_frame = logits.log_softmax(-1).transpose(0, 1)
    expected = F.ctc_loss(by_frame, targets, *counts, PAD, "none", zero_infinity=True)
    losses = ctc_lattice_loss(logits.log_softmax(-1), targets, *counts)
    torch.testing.assert_close(with_gradients([losses], [logits]), with_gradients([expected], [logits]))


def test_lattice_gradient_is_not_rounded_by_autocast():
    logits, targets, *counts = lattice_inputs()
    logits = logits.detach().float().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        losses = ctc_lattice_loss(logits.log_softmax(-1), targets, *counts)
    exact = ctc_lattice_loss(logits.double().log_softmax(-1), targets, *counts)
    found, expected = (torch.autograd.grad(each.nan_to_num(posinf=0).sum(), logits)[0] for each in (losses, exact))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_a_transcript_that_does_not_fit_has_no_gradient():
    logits, targets, frame_counts, lengths = lattice_inputs()
    frame_counts[0], lengths[0] = 2, targets.shape[1]
    losses = ctc_lattice_loss(logits.log_softmax(-1), targets, frame_counts, lengths)
    (gradient,) = torch.autograd.grad(losses[torch.isfinite(losses)].sum() + losses[0], logits)
    assert losses[0] == torch.inf
    assert not gradient[0].any() and gradient[1:].isfinite().all()
