"""Deep Fusion and Cold Fusion: an output layer that reads the task state of a decoder and a language model.

Cold Fusion, sections 2.2 (eq. 3), 3 (eq. 4) and 4.4 (the rows between them). Decoder and language model read the same
symbol at each position. The language model is never trained here.

Dimensions: B sentences, K hypotheses, T symbols, D task state, H language model state, V vocabulary, W feature.
"""

from typing import cast

import torch
from torch import Tensor, nn

from pipeline.models.language_model.model import LanguageModel
from pipeline.models.language_model.settings import FusionConfig
from pipeline.models.layers.loss import masked_loss
from pipeline.models.layers.regularisation import DecoderInputs, unrolled_loss
from pipeline.models.seq2seq import LossSums, Seq2Seq, TaskModel, Tree


class FusionLayer(nn.Module):
    """Fused output layer: logits = DNN([s_t; g_t ∘ h_t]), g_t = σ(W [s_t; h_t] + b).

    h_t is the language model's state (Deep Fusion, and Cold Fusion before its last row), or an affine function of its
    logits minus their maximum (eq. 4a), which depends only on the distribution.

    Args:
        config: Form of gate, feature and output.
        state_width: D.
        lm_width: H.
        vocab: V.
    """

    def __init__(self, config: FusionConfig, state_width: int, lm_width: int, vocab: int):
        super().__init__()
        self.config = config
        literal = config.output == "relu logits"
        feature = lm_width if config.lm_feature == "state" else config.width
        self.project = None if config.lm_feature == "state" else nn.Linear(vocab, config.width, bias=not literal)
        gate_width = feature + (state_width if config.gate_reads == "task and lm" else 0)
        self.gate = nn.Linear(gate_width, 1 if config.gate == "scalar" else feature)
        nn.init.constant_(self.gate.bias, config.gate_bias)
        fused = state_width + feature
        self.hidden = nn.Linear(fused, config.width) if config.output == "hidden" else None
        self.output = nn.Linear(config.width if self.hidden else fused, vocab)

    @torch.no_grad()
    def initialise_output(self, weight: Tensor, bias: Tensor) -> None:
        """Start from the output layer of a finished task model; the weights of the language model start at zero.

        Args:
            weight: Weight of that layer, shape (V, D).
            bias: Bias of that layer, shape (V,).
        """
        self.output.weight.zero_()[:, : weight.shape[1]] = weight
        self.output.bias.copy_(bias)

    def feature(self, lm_state: Tensor, lm_logits: Tensor) -> Tensor:
        """Compute the feature h_t of the language model that is gated.

        Args:
            lm_state: Shape (…, H).
            lm_logits: Shape (…, V).

        Returns:
            h_t, shape (…, W).
        """
        if self.project is None:
            return lm_state
        projected = self.project(self.config.logit_scale * (lm_logits - lm_logits.amax(-1, keepdim=True)))
        return projected.relu() if self.config.output == "relu logits" else projected

    def forward(self, task_state: Tensor, lm_state: Tensor, lm_logits: Tensor) -> Tensor:
        """Return float32 logits of the vocabulary, shape (…, V).

        Args:
            task_state: s_t, shape (…, D).
            lm_state: Hidden state of the language model, shape (…, H).
            lm_logits: Logits of the language model, shape (…, V).
        """
        feature = self.feature(lm_state, lm_logits)
        gate_input = feature if self.config.gate_reads == "lm" else torch.cat((task_state, feature), dim=-1)
        fused = torch.cat((task_state, torch.sigmoid(self.gate(gate_input)) * feature), dim=-1)
        if self.hidden is not None:
            return self.output(self.hidden(fused).relu()).float()
        logits = self.output(fused).float()
        return logits.relu() if self.config.output == "relu logits" else logits


class FusedModel(Seq2Seq):
    """A task model and a language model under one `FusionLayer`.

    The fusion layer replaces the output layer of the task model. Deep Fusion trains this layer alone on a finished task
    model; Cold Fusion trains the task model with it.

    Args:
        config: Settings of the fusion layer.
        task: Loses its own output layer.
        language_model: Is frozen.
        vocab: V.
    """

    def __init__(self, config: FusionConfig, task: TaskModel, language_model: LanguageModel, vocab: int):
        super().__init__()
        self.config, self.task, self.language_model = config, task, language_model
        self.task.output = None
        self.max_positions = task.max_positions
        self.fusion = FusionLayer(config, task.state_width, language_model.state_width, vocab)
        self.language_model.requires_grad_(False)
        if config.kind == "deep":
            self.freeze_task()

    def freeze_task(self) -> None:
        """Freeze the task model, for Deep Fusion and the fine-tuning of Cold Fusion (section 4.6)."""
        self.task.requires_grad_(False)

    def train(self, mode: bool = True) -> "FusedModel":
        """Set the training mode; frozen parts stay in evaluation mode, without dropout."""
        super().train(mode)
        for part in (self.task, self.language_model):
            if not any(parameter.requires_grad for parameter in part.parameters()):
                part.eval()
        return self

    def start(self, batch) -> tuple[Tree, Tree]:
        source, cache = self.task.start(batch)
        return source, {"task": cache, "lm": self.language_model.initial_cache(len(batch.tgt_in))}

    def step(self, prev_tokens: Tensor, source: Tree, cache: Tree) -> tuple[Tensor, Tree]:
        task_state, task_cache = self.task.advance(prev_tokens, source, cache["task"])
        lm_state, lm_cache = self.language_model.advance(prev_tokens, cache["lm"])
        logits = self.fusion(task_state, lm_state, self.language_model.logits(lm_state))
        return logits, {"task": task_cache, "lm": lm_cache}

    def fixed_cache(self, cache: Tree, places: int) -> Tree:
        return {"task": self.task.fixed_cache(cache["task"], places), "lm": cache["lm"]}

    def loss(self, batch, label_smoothing: float) -> LossSums:
        """Compute all positions together if the task model can do so, otherwise one by one; see `Seq2Seq.loss`."""
        sampling = self.training and self.sampling_rate > 0
        sampler = FusedSampler(self, batch.tgt_in) if sampling else None
        task_states = self.task.chosen_states(batch, sampler.choose) if sampler else self.task.states(batch)
        if task_states is None:
            return unrolled_loss(self, batch, label_smoothing, self.sampling_rate)
        lm_states = torch.cat(sampler.states, 1) if sampler else self.language_model.hidden_states(batch.tgt_in)
        logits = self.fusion(task_states, lm_states, self.language_model.logits(lm_states))
        return masked_loss(logits, batch, label_smoothing)

    def replace_language_model(self, language_model: nn.Module) -> None:
        """Replace the language model of a trained fusion (section 3).

        Args:
            language_model: A `LanguageModel`; in decoding also an `Ngram`, which has the same methods.

        Raises:
            ValueError: The fusion reads the language model's hidden state, not only its logits.
        """
        if self.config.lm_feature == "state":
            raise ValueError("a fusion of hidden states can't change its language model; only one of logits can")
        self.language_model = cast(LanguageModel, language_model.requires_grad_(False).eval())


class FusedSampler:
    """Scheduled sampling that runs the language model beside the task model.

    Args:
        model: The fused model in training.
        tgt_in: Teacher-forced decoder inputs, shape (B, T).
    """

    def __init__(self, model: FusedModel, tgt_in: Tensor):
        self.model, self.inputs = model, DecoderInputs(tgt_in, model.sampling_rate)
        self.cache = model.language_model.initial_cache(len(tgt_in))
        self.states: list[Tensor] = []
        """Language model states of the positions so far, (B, 1, H) each."""

    def choose(self, position: int, task_state: Tensor) -> Tensor:
        """Select the symbols that the decoder and the language model read at a position.

        Args:
            position: Index of the position, from 0 to T - 1.
            task_state: Task state before it, shape (B, D).

        Returns:
            Symbols (B,).
        """
        symbols = self.inputs.at(position, lambda: self.predict(task_state))
        state, self.cache = self.model.language_model.advance(symbols.unsqueeze(1), self.cache)
        self.states.append(state)
        return symbols

    def predict(self, task_state: Tensor) -> Tensor:
        """Return float32 logits (B, V) of the fused model for the next symbol after `task_state` (B, D)."""
        state = self.states[-1].squeeze(1)
        return self.model.fusion(task_state, state, self.model.language_model.logits(state))
