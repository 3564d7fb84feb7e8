"""The toy."""

from torch import nn

from pipeline.models.layers.regularisation import unrolled_loss
from pipeline.models.seq2seq import Seq2Seq


class BagOfWords(Seq2Seq):
    def __init__(self, width: int, src_vocab: int, tgt_vocab: int):
        super().__init__()
        self.source, self.target = nn.EmbeddingBag(src_vocab, width, mode="sum"), nn.Embedding(tgt_vocab, width)
        self.output = nn.Linear(width, tgt_vocab)

    def start(self, batch):
        return self.source(batch.src), self.target.weight.new_zeros(len(batch.src), 1, 1)

    def step(self, prev_tokens, source, cache):
        return self.output(source.unsqueeze(1) + self.target(prev_tokens)).float(), cache

    def loss(self, batch, label_smoothing):
        return unrolled_loss(self, batch, label_smoothing, self.sampling_rate)


def build(config, vocab_sizes):
    return BagOfWords(config.width, *vocab_sizes)
