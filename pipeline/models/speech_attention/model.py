"""The attention recogniser: speech to characters (Cold Fusion, section 4.2, "plain Seq2Seq").

Dimensions: B utterances, K hypotheses, S encoder positions, T characters, D decoder width, E annotation width,
V vocabulary.
"""

import torch
from torch import Tensor, nn

from pipeline.models.layers.unrolling import unrolled_loss
from pipeline.models.seq2seq import LossSums, TaskModel, Tree
from pipeline.models.speech_attention.encoder import SpeechEncoder
from pipeline.models.speech_attention.hybrid_attention import Annotations, HybridAttention
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
        return torch.cat((state, context), -1) if self.config.task_state == "state and context" else state, grown

    def updated(self, prev_tokens: Tensor, context: Tensor, state: Tensor) -> Tensor:
        """GRU([Emb(y); c], d), (B, K, D)"""
        read = torch.cat((self.embedding(prev_tokens), context), dim=-1)
        return self.gru(read.flatten(0, 1), state.flatten(0, 1)).view_as(state)

    def logits(self, states: Tensor) -> Tensor:
        return self.output(states).float()

    def loss(self, batch, label_smoothing: float) -> LossSums:
        return unrolled_loss(self, batch, label_smoothing, self.sampling_rate)

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
