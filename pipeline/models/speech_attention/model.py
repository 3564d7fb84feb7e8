"""The attention recogniser: speech to characters (Cold Fusion, section 4.2, "plain Seq2Seq").

Dimensions: B utterances, K hypotheses, S encoder positions, T characters, D decoder width, E annotation width,
V vocabulary.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models.layers.gru_record import loop_type
from pipeline.models.layers.unrolling import Inputs, masked_loss
from pipeline.models.seq2seq import LossSums, TaskModel, Tree
from pipeline.models.speech_attention.encoder import SpeechEncoder
from pipeline.models.speech_attention.hybrid_attention import Annotations, HybridAttention
from pipeline.models.speech_attention.recurrence import Given, Unrolled
from pipeline.models.speech_attention.settings import AttentionRecogniserConfig


class AttentionRecogniser(TaskModel):
    """P(y_t) = softmax(W_o s_t + b_o), with one of two decoders (`gru_reads`, d being its state):

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
        """`batch` has frames (B, S, F) and frame_counts (B,)."""
        values, mask = self.encoder(batch.frames, batch.frame_counts)
        cache = {
            "state": values.new_zeros(len(values), 1, self.config.decoder_width),
            "alignment": self.attention.begin(values),
        }
        if self.config.gru_reads == "last context":
            cache["context"] = values.new_zeros(len(values), 1, values.shape[-1])
        return self.attention.prepare(values, mask), cache

    def advance(self, prev_tokens: Tensor, source: Annotations, cache: Tree) -> tuple[Tensor, Tree]:
        if self.config.gru_reads == "last context":
            state = self.updated(prev_tokens, cache["context"], cache["state"])
            context, alignment = self.attention(state, cache["alignment"], source)
            grown = {"state": state, "alignment": alignment, "context": context}
        else:
            context, alignment = self.attention(cache["state"], cache["alignment"], source)
            state = self.updated(prev_tokens, context, cache["state"])
            grown = {"state": state, "alignment": alignment}
        return self.task_state(state, context), grown

    def task_state(self, state: Tensor, context: Tensor) -> Tensor:
        return torch.cat((state, context), -1) if self.config.task_state == "state and context" else state

    def updated(self, prev_tokens: Tensor, context: Tensor, state: Tensor) -> Tensor:
        """GRU([Emb(y); c], d), (B, K, D)"""
        read = torch.cat((self.embedding(prev_tokens), context), dim=-1)
        return self.gru(read.flatten(0, 1), state.flatten(0, 1)).view_as(state)

    def logits(self, states: Tensor) -> Tensor:
        return self.output(states).float()

    def loss(self, batch, label_smoothing: float) -> LossSums:
        inputs = Inputs(batch.tgt_in, self.sampling_rate if self.training else 0.0)
        states = self.chosen_states(batch, lambda position, state: inputs.at(position, lambda: self.logits(state)))
        return masked_loss(self.logits(states), batch, label_smoothing)

    def states(self, batch) -> Tensor:
        return self.chosen_states(batch, lambda position, _: batch.tgt_in[:, position])

    def chosen_states(self, batch, choose: Callable[[int, Tensor], Tensor]) -> Tensor:
        values, mask = self.encoder(batch.frames, batch.frame_counts)
        source, own = self.attention.prepare(values, mask), self.gru
        of_symbol, of_context = own.weight_ih.split([self.config.embedding_width, values.shape[2]], dim=1)
        given = Given(
            values=values,
            keys=source["keys"],
            location=2 * (self.attention.of_location.weight @ self.attention.filters).t(),
            query=self.attention.of_state.weight,
            score=self.attention.score.weight.squeeze(0),
            table=F.linear(self.embedding.weight, of_symbol, own.bias_ih),
            read=of_context,
            recur=own.weight_hh,
            bias=own.bias_hh,
        )
        states, contexts = Unrolled.apply(
            loop_type(own.weight_hh),
            self.config.gru_reads == "last context",
            batch.tgt_in.shape[1],
            lambda position, state, context: choose(position, self.task_state(state, context)),
            mask,
            *(one.to(own.weight_hh.dtype) for one in given),
        )
        return self.task_state(states, contexts).transpose(0, 1)

    def alignments(self, batch) -> Tensor:
        """α of every target position, (B, T, S), teacher-forced."""
        source, cache = self.start(batch)
        found = []
        for position in range(batch.tgt_in.shape[1]):
            _, cache = self.advance(batch.tgt_in[:, position : position + 1], source, cache)
            found.append(cache["alignment"])
        return torch.cat(found, dim=1)


def build(config: AttentionRecogniserConfig, vocab_sizes: tuple[int, int]) -> AttentionRecogniser:
    return AttentionRecogniser(config, vocab_sizes[1])
