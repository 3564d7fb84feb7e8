"""Preprocessing of frames in any recogniser."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from speech_batches import VOCAB, attention_config, ctc_config, joint_config, speech
from torch import Tensor

from pipeline.data.sequence_store import FEATURES
from pipeline.models.architectures import build_model

CONFIGS = {"attention": attention_config, "ctc": ctc_config, "joint": joint_config}


@pytest.fixture(params=CONFIGS)
def heard(request) -> Callable[..., Tensor]:
    """Return the output of a recogniser with the same weights for a batch, with some settings."""

    def of(batch, training=False, **changes) -> Tensor:
        torch.manual_seed(3)
        model = build_model(CONFIGS[request.param](**changes), (VOCAB, VOCAB)).train(training)
        if request.param == "ctc":
            return model.log_probs(batch)[0]
        encoder = model.encoder if request.param == "attention" else model.speech_encoder
        return encoder(batch.frames, batch.frame_counts)[0]

    return of


def test_utterance_mean_removal_cancels_a_constant_offset(heard):
    batch, colour = speech([60, 41], [4, 7]), torch.randn(40)
    coloured = replace(batch, frames=batch.frames + colour)
    for mean in ("removed", "kept"):
        same = torch.allclose(heard(batch, utterance_mean=mean), heard(coloured, utterance_mean=mean), atol=1e-4)
        assert same == (mean == "removed")


def test_utterance_deviation_scaling_cancels_a_gain(heard):
    """Frames are so loud that the floor of variances does not matter; without scaling, quiet ones are not saturated."""
    batch = speech([60, 41], [4, 7])
    for deviation, gain in ("one", 100), ("kept", 1):
        settings = {"utterance_mean": "removed", "utterance_deviation": deviation}
        first, louder = (heard(replace(batch, frames=factor * batch.frames), **settings) for factor in (gain, 2 * gain))
        assert torch.allclose(first, louder, atol=1e-4) == (deviation == "one")


def test_training_alone_is_masked(heard):
    batch, masks = speech([60, 41], [4, 7]), {"time_masks": 2, "frequency_masks": 2}
    assert torch.equal(heard(batch, **masks), heard(batch))
    assert not torch.equal(heard(batch, training=True, **masks), heard(batch, training=True))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_deviation_needs_a_mean_to_deviate_from(config):
    with pytest.raises(ValueError, match="needs utterance_mean: removed"):
        config(utterance_deviation="one")


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_recogniser_reads_the_features_that_corpora_have(config):
    assert config(features=FEATURES) == config()
    with pytest.raises(ValueError, match=f"should be less than or equal to {FEATURES}"):
        config(features=2 * FEATURES)
