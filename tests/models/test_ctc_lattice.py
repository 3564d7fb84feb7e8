"""CTC's loss from device lengths against torch's own."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from pipeline.models.ctc.lattice import ctc_lattice_loss
from pipeline.models.settings import PAD

SYMBOLS = 9


def lattice_inputs(rng: np.random.Generator, rows: int = 6, frames: int = 17, characters: int = 5):
    logits = torch.from_numpy(rng.normal(size=(rows, frames, SYMBOLS))).requires_grad_()
    targets = torch.from_numpy(rng.integers(PAD + 1, SYMBOLS, (rows, characters)))
    frame_counts = torch.from_numpy(rng.integers(2 * characters + 1, frames + 1, rows))
    lengths = torch.from_numpy(rng.integers(0, characters + 1, rows))
    return logits, targets, frame_counts, lengths


def reference(logits, targets, frame_counts, lengths):
    by_frame = logits.log_softmax(-1).transpose(0, 1)
    return F.ctc_loss(by_frame, targets, frame_counts, lengths, BLANK, "none", zero_infinity=True)


BLANK = PAD


@pytest.mark.parametrize("_", range(5))
def test_lattice_loss_and_gradient_equal_torchs_own(_):
    logits, *rest = lattice_inputs(np.random.default_rng())
    weights = torch.rand(len(logits), dtype=torch.float64)
    expected = reference(logits, *rest)
    (by_reference,) = torch.autograd.grad(expected @ weights, logits)
    losses = ctc_lattice_loss(logits.log_softmax(-1), *rest)
    (by_lattice,) = torch.autograd.grad(losses @ weights, logits)
    torch.testing.assert_close(losses, expected)
    torch.testing.assert_close(by_lattice, by_reference)


def test_repeated_characters_need_a_blank_between_them():
    logits, targets, frame_counts, lengths = lattice_inputs(np.random.default_rng())
    targets[:] = targets[:, :1]
    expected = reference(logits, targets, frame_counts, lengths)
    torch.testing.assert_close(ctc_lattice_loss(logits.log_softmax(-1), targets, frame_counts, lengths), expected)


def test_a_transcript_that_does_not_fit_has_no_gradient():
    logits, targets, frame_counts, lengths = lattice_inputs(np.random.default_rng())
    frame_counts[0], lengths[0] = 2, targets.shape[1]
    losses = ctc_lattice_loss(logits.log_softmax(-1), targets, frame_counts, lengths)
    (gradient,) = torch.autograd.grad(losses[torch.isfinite(losses)].sum() + losses[0], logits)
    assert losses[0] == torch.inf
    assert not gradient[0].any() and gradient[1:].isfinite().all()
