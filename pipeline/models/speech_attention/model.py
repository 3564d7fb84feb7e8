"""The attention recogniser: speech to characters (Cold Fusion, section 4.2, "plain Seq2Seq").

Dimensions: B utterances, K hypotheses, S encoder positions, T characters, D decoder width, E annotation width,
A attention width, k location filters of width r, V vocabulary.
"""

from collections.abc import Callable
from typing import TypedDict

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models import kernels
from pipeline.models.kernels.loops import run_recurrent
from pipeline.models.kernels.recogniser_loop import recogniser_states
from pipeline.models.layers.loss import masked_loss
from pipeline.models.layers.regularisation import DecoderInputs
from pipeline.models.layers.speech_encoder import SpeechEncoder
from pipeline.models.seq2seq import LossSums, TaskModel, Tree
from pipeline.models.speech_attention.settings import AttentionRecogniserConfig


class Annotations(TypedDict):
    """Encoder output of a batch as the attention reads it."""

    values: Tensor
    """h, shape (B, S, E)"""
    keys: Tensor
    """2 (V h + b), shape (B, S, A)"""
    mask: Tensor
    """Bool, shape (B, S), True within the utterance"""


class HybridAttention(nn.Module):
    """Attention over content and location (Chorowski et al. 2015, eq. 5 to 9).

        e_{t,j} = w^T tanh(W d_{t-1} + V h_j + U f_{t,j} + b), f_t = F * α_{t-1}
        α_t = softmax(e_t), c_t = α_t h

    There is no non-linearity between the filters F and the projection U, so they are applied as one matrix. w^T tanh(u)
    is computed as 2 w^T sigmoid(2 u). This is faster and differs by a constant, which the softmax ignores.

    Args:
        annotation_width: E.
        state_width: D.
        width: A.
        filters: k.
        filter_width: r; an even width is raised by one.
    """

    def __init__(self, annotation_width: int, state_width: int, width: int, filters: int, filter_width: int):
        super().__init__()
        self.reach = filter_width // 2
        self.of_state = nn.Linear(state_width, width, bias=False)
        self.of_annotation = nn.Linear(annotation_width, width)
        self.filters = nn.Parameter(torch.empty(filters, 2 * self.reach + 1))
        self.of_location = nn.Linear(filters, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)
        nn.init.normal_(self.filters, std=(2 * self.reach + 1) ** -0.5)

    def prepare(self, values: Tensor, mask: Tensor) -> Annotations:
        """Add keys (B, S, A) to annotations h, `values` (B, S, E), and `mask` (B, S), once per batch."""
        return {"values": values, "keys": 2 * self.of_annotation(values), "mask": mask}

    def initial_alignment(self, values: Tensor) -> Tensor:
        """Return α_0 (B, 1, S), float32, all weight on the first of the annotations `values` (B, S, E)."""
        alignment = values.new_zeros(len(values), 1, values.shape[1], dtype=torch.float32)
        alignment[..., 0] = 1.0
        return alignment

    def forward(self, state: Tensor, alignment: Tensor, source: Annotations) -> tuple[Tensor, Tensor]:
        """Attend once per hypothesis.

        Args:
            state: Query d, shape (B, K, D).
            alignment: α_{t-1}, shape (B, K, S).
            source: Result of `prepare`.

        Returns:
            Context c_t (B, K, E), and float32 alignment α_t (B, K, S).
        """
        window = F.pad(alignment, (self.reach, self.reach)).unfold(-1, 2 * self.reach + 1, 1)
        location = window @ (2 * self.of_location.weight @ self.filters).t()
        of_state = F.linear(state, 2 * self.of_state.weight)
        hidden = torch.sigmoid(location + source["keys"].unsqueeze(1) + of_state.unsqueeze(2))
        energies = 2 * self.score(hidden).squeeze(-1)
        energies = energies.masked_fill(~source["mask"].unsqueeze(1), -torch.inf)
        alignment = energies.float().softmax(-1)
        return alignment.to(source["values"].dtype) @ source["values"], alignment


class AttentionRecogniser(TaskModel):
    """Attention recogniser P(y_t) = softmax(W_o s_t + b_o), with one of two decoders (`gru_reads`).

    The decoder's state is d.

    this context (Bahdanau et al. 2015): c_t by attention from d_{t-1}; d_t = GRU([Emb(y_{t-1}); c_t], d_{t-1})
    last context (the code of Bahdanau et al. 2016): d_t = GRU([Emb(y_{t-1}); c_{t-1}], d_{t-1}); c_t from d_t

    The task state s_t is [d_t; c_t] or d_t (`task_state`).
    """

    def __init__(self, config: AttentionRecogniserConfig, vocab: int):
        super().__init__()
        self.config = config
        self.encoder = SpeechEncoder(config)
        annotation = self.encoder.output_width
        self.attention = HybridAttention(
            annotation, config.decoder_width, config.attention_width, config.location_filters, config.location_width
        )
        self.embedding = nn.Embedding(vocab, config.embedding_width)
        self.gru = nn.GRUCell(config.embedding_width + annotation, config.decoder_width)
        self.state_width = config.state_width
        self.output = nn.Linear(self.state_width, vocab)

    def start(self, batch) -> tuple[Annotations, Tree]:
        values, mask = self.encoder(batch.frames, batch.frame_counts)
        cache = {
            "state": values.new_zeros(len(values), 1, self.config.decoder_width),
            "alignment": self.attention.initial_alignment(values),
        }
        if self.config.gru_reads == "last context":
            cache["context"] = values.new_zeros(len(values), 1, values.shape[-1])
        return self.attention.prepare(values, mask), cache

    def advance(self, prev_tokens: Tensor, source: Annotations, cache: Tree) -> tuple[Tensor, Tree]:
        if self.config.gru_reads == "last context":
            state = self.next_state(prev_tokens, cache["context"], cache["state"])
            context, alignment = self.attention(state, cache["alignment"], source)
            grown = {"state": state, "alignment": alignment, "context": context}
        else:
            context, alignment = self.attention(cache["state"], cache["alignment"], source)
            state = self.next_state(prev_tokens, context, cache["state"])
            grown = {"state": state, "alignment": alignment}
        return self.task_state(state, context), grown

    def task_state(self, state: Tensor, context: Tensor) -> Tensor:
        """Build the task state s_t (…, state_width) from `state` d_t (…, D) and `context` c_t (…, E)."""
        return torch.cat((state, context), -1) if self.config.task_state == "state and context" else state

    def next_state(self, prev_tokens: Tensor, context: Tensor, state: Tensor) -> Tensor:
        """Compute GRU([Emb(y); c], d).

        Args:
            prev_tokens: y, shape (B, K).
            context: c, shape (B, K, E).
            state: d, shape (B, K, D).

        Returns:
            Next state, shape (B, K, D).
        """
        inputs = torch.cat((self.embedding(prev_tokens), context), dim=-1)
        return run_recurrent(self.gru, inputs.flatten(0, 1), state.flatten(0, 1)).view_as(state)

    def logits(self, states: Tensor) -> Tensor:
        return self.output(states).float()

    def loss(self, batch, label_smoothing: float) -> LossSums:
        inputs = DecoderInputs(batch.tgt_in, self.sampling_rate if self.training else 0.0)
        states = self.chosen_states(batch, lambda position, state: inputs.at(position, lambda: self.logits(state)))
        return masked_loss(self.logits(states), batch, label_smoothing)

    def states(self, batch) -> Tensor:
        return self.chosen_states(batch, lambda position, _: batch.tgt_in[:, position])

    def chosen_states(self, batch, choose: Callable[[int, Tensor], Tensor]) -> Tensor:
        return recogniser_states(self, batch, choose) if kernels.enabled() else self.loop(batch, choose)

    def loop(self, batch, choose: Callable[[int, Tensor], Tensor]) -> Tensor:
        """Compute all task states step by step, as `chosen_states`."""
        source, cache = self.start(batch)
        state, states = source["values"].new_zeros(len(source["values"]), 1, self.state_width), []
        for position in range(batch.tgt_in.shape[1]):
            symbols = choose(position, state.squeeze(1))
            state, cache = self.advance(symbols.unsqueeze(1), source, cache)
            states.append(state)
        return torch.cat(states, dim=1)

    def alignments(self, batch) -> Tensor:
        """Return the alignment α (B, T, S) of every target position of a batch, teacher-forced."""
        source, cache = self.start(batch)
        found = []
        for position in range(batch.tgt_in.shape[1]):
            _, cache = self.advance(batch.tgt_in[:, position : position + 1], source, cache)
            found.append(cache["alignment"])
        return torch.cat(found, dim=1)


def build(config: AttentionRecogniserConfig, vocab_sizes: tuple[int, int]) -> AttentionRecogniser:
    """Return a model with random weights; see `build_model`. Only the target vocabulary is used."""
    return AttentionRecogniser(config, vocab_sizes[1])
