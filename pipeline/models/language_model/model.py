"""A GRU language model, frozen wherever it is fused with another model (Cold Fusion, Table 2).

Dimensions: B sentences, K hypotheses, T symbols, L layers, H hidden units, V vocabulary.
"""

from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models.language_model.settings import LanguageModelConfig
from pipeline.models.layers.loss import projected_loss
from pipeline.models.seq2seq import LossSums, Seq2Seq, Tree


class LanguageModel(Seq2Seq):
    """p(y_t | y_<t) = softmax(W h_t + b), h_t the top state of a GRU that has read BOS, y_1, …, y_{t-1}.

    It has the interface of a sequence-to-sequence model whose source says nothing but how many sentences there are.
    """

    def __init__(self, config: LanguageModelConfig, vocab: int):
        super().__init__()
        self.config, self.state_width = config, config.hidden_width
        self.embedding = nn.Embedding(vocab, config.embedding_width)
        between = config.dropout if config.num_layers > 1 else 0.0
        self.gru = nn.GRU(
            config.embedding_width, config.hidden_width, config.num_layers, batch_first=True, dropout=between
        )
        self.output = nn.Linear(config.hidden_width, vocab)

    def read(self, tgt_in: Tensor) -> Tensor:
        """tgt_in (B, T) -> states (B, T, H) that predict the symbols after them."""
        return self.gru(self.embedding(tgt_in))[0]

    def loss(self, batch, label_smoothing: float) -> LossSums:
        """Summed loss of a batch with `tgt_in` and `tgt_out` (B, T)."""
        features = F.dropout(self.read(batch.tgt_in), self.config.dropout, self.training)
        return projected_loss(features, self.output.weight, self.output.bias, batch, label_smoothing)

    def begin(self, sentences: int) -> Tree:
        """The cache of `sentences` hypotheses that have read nothing, (B, K = 1, L, H)."""
        weight = self.output.weight
        return weight.new_zeros(sentences, 1, self.config.num_layers, self.config.hidden_width)

    def start(self, batch) -> tuple[Tree, Tree]:
        return None, self.begin(len(batch.tgt_in))

    def advance(self, prev_tokens: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """prev_tokens (B, K), cache (B, K, L, H) -> (states (B, K, H), the cache)."""
        shape = prev_tokens.shape
        hidden = cache.flatten(0, 1).transpose(0, 1).contiguous()
        states, hidden = self.gru(self.embedding(prev_tokens.reshape(-1, 1)), hidden)
        return states.view(*shape, -1), hidden.transpose(0, 1).unflatten(0, shape)

    def logits(self, states: Tensor) -> Tensor:
        """(…, H) -> float32 (…, V)"""
        return self.output(states).float()

    def step(self, prev_tokens: Tensor, source: Tree, cache: Tensor) -> tuple[Tensor, Tensor]:
        states, cache = self.advance(prev_tokens, cache)
        return self.logits(states), cache


def build(config: LanguageModelConfig, vocab_sizes: tuple[int, int]) -> LanguageModel:
    return LanguageModel(config, vocab_sizes[1])
