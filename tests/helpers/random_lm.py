"""A language model with random weights, and its scores of a text, symbol by symbol."""

import torch

from pipeline.models.language_model.model import LanguageModel
from pipeline.models.language_model.settings import LanguageModelConfig
from pipeline.models.settings import BOS


def language_model(vocabulary: int, seed: int) -> LanguageModel:
    torch.manual_seed(seed)
    config = LanguageModelConfig(architecture="language_model", num_layers=2, embedding_width=4, hidden_width=6)
    model = LanguageModel(config, vocabulary).eval().requires_grad_(False)
    model.output.weight.mul_(8.0)
    return model


def log_prob(model: LanguageModel, symbols: list[int]) -> float:
    """Return the log-probability of `symbols`, all read at once; it counts EOS if they contain it."""
    log_probs = model.logits(model.hidden_states(torch.tensor([[BOS, *symbols[:-1]]]))).log_softmax(-1)
    return float(log_probs[0, range(len(symbols)), symbols].sum())
