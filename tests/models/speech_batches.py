"""Random speech for tests of the models of Cold Fusion, and small settings of them."""

from dataclasses import replace

import torch
from torch import Tensor

from pipeline.data.batches.speech_batches import SpeechBatch
from pipeline.models.ctc.settings import CTCConfig
from pipeline.models.joint_recogniser.settings import JointRecogniserConfig
from pipeline.models.language_model.fusion import FusedModel
from pipeline.models.language_model.model import LanguageModel
from pipeline.models.language_model.settings import FusionConfig, LanguageModelConfig
from pipeline.models.settings import BOS, EOS, PAD
from pipeline.models.speech_attention.model import AttentionRecogniser
from pipeline.models.speech_attention.settings import AttentionRecogniserConfig

VOCAB, FEATURES = 12, 40


class Speech(SpeechBatch):
    """A batch of speech of which a test can take a row."""

    def row(self, row: int) -> "Speech":
        """One utterance without its padding."""
        frames, characters = int(self.frame_counts[row]), int((self.tgt_out[row] != PAD).sum())
        return Speech(
            self.frames[row : row + 1, :frames],
            self.frame_counts[row : row + 1],
            self.tgt_in[row : row + 1, :characters],
            self.tgt_out[row : row + 1, :characters],
        )

    def reading(self, tgt_in: Tensor) -> "Speech":
        return replace(self, tgt_in=tgt_in)


def speech(frame_counts: list[int], characters: list[int]) -> Speech:
    """Random utterances of these lengths; what lies behind the end is not zero."""
    text = torch.randint(EOS + 1, VOCAB, (len(characters), max(characters)))
    inside = torch.arange(max(characters)) < torch.tensor(characters).unsqueeze(1)
    text = text.masked_fill(~inside, PAD)
    tgt_in = torch.cat((torch.full((len(text), 1), BOS), text), dim=1)
    tgt_out = torch.cat((text, torch.full((len(text), 1), PAD)), dim=1)
    tgt_out[torch.arange(len(text)), torch.tensor(characters)] = EOS
    frames = torch.randn(len(frame_counts), max(frame_counts), FEATURES)
    return Speech(frames, torch.tensor(frame_counts), tgt_in, tgt_out)


def attention_config(**changes) -> AttentionRecogniserConfig:
    settings = {"encoder_layers": 3, "encoder_width": 6, "decoder_width": 10, "embedding_width": 5}
    settings |= {"attention_width": 7, "location_filters": 3, "location_width": 5}
    return AttentionRecogniserConfig(architecture="speech_attention", **(settings | changes))


def lm_config(**changes) -> LanguageModelConfig:
    settings = {"num_layers": 2, "embedding_width": 5, "hidden_width": 8}
    return LanguageModelConfig(architecture="language_model", **(settings | changes))


def ctc_config(**changes) -> CTCConfig:
    settings = {"channels": 2, "num_layers": 2, "hidden_width": 6}
    return CTCConfig(architecture="ctc", **(settings | changes))


def joint_config(**changes) -> JointRecogniserConfig:
    settings = {"num_layers": 2, "d_model": 12, "d_ff": 16, "num_heads": 2, "dropout": 0.0}
    settings |= {"channels": 3, "encoder_layers": 2, "encoder_dropout": 0.0}
    return JointRecogniserConfig(architecture="joint_recogniser", **(settings | changes))


DEEP = {"kind": "deep", "lm_feature": "state", "gate_bias": -1.0}
COLD = {"kind": "cold", "gate_reads": "task and lm"}
FUSIONS = {
    "DF0": DEEP | {"gate_reads": "lm", "gate": "scalar", "output": "affine"},
    "DF1": DEEP | {"gate": "scalar", "output": "affine"},
    "DF2": DEEP | {"output": "affine"},
    "DF3": DEEP | {"output": "hidden"},
    "CF1": COLD | {"lm_feature": "state", "gate": "scalar", "output": "affine"},
    "CF2": COLD | {"lm_feature": "state", "output": "affine"},
    "CF3": COLD | {"lm_feature": "state", "output": "hidden"},
    "CF4": COLD | {"lm_feature": "logits", "output": "hidden"},
    "R2": COLD | {"lm_feature": "logits", "output": "relu logits"},
}
"""Every row of Table 3, and the literal reading of section 3."""


def fusion_config(row: str) -> FusionConfig:
    return FusionConfig(width=6, **FUSIONS[row])


def fused_recogniser(row: str) -> FusedModel:
    """Return an attention recogniser with a language model, fused as a row of Table 3 says."""
    task, lm = AttentionRecogniser(attention_config(), VOCAB), LanguageModel(lm_config(), VOCAB)
    return FusedModel(fusion_config(row), task, lm, VOCAB)
