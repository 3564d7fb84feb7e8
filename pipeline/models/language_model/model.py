"""A GRU language model, frozen when it is fused with another model (Cold Fusion, Table 2).

Dimensions: B sentences, K hypotheses, T symbols, L layers, H hidden units, V vocabulary.
"""

from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models.language_model.settings import LanguageModelConfig
from pipeline.models.layers.loss import projected_loss
from pipeline.models.seq2seq import LossSums, Seq2Seq, Tree


class LanguageModel(Seq2Seq):
    """Language model p(y_t | y_<t) = softmax(W h_t + b).

    h_t is the top state of a GRU that has read BOS, y_1, …, y_{t-1}. The interface is that of a sequence-to-sequence
    model without a source.
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

    def hidden_states(self, tgt_in: Tensor) -> Tensor:
        """Compute the states that predict the symbol after each input.

        Args:
            tgt_in: Symbols, BOS first, shape (B, T).

        Returns:
            Shape (B, T, H).
        """
        return self.gru(self.embedding(tgt_in))[0]

    def loss(self, batch, label_smoothing: float) -> LossSums:
        """Return the summed loss over all symbols of a batch, in nats.

        Args:
            batch: Texts: inputs `tgt_in` and targets `tgt_out`, both (B, T).
            label_smoothing: ε in [0, 1).
        """
        features = F.dropout(self.hidden_states(batch.tgt_in), self.config.dropout, self.training)
        return projected_loss(features, self.output.weight, self.output.bias, batch, label_smoothing)

    def initial_cache(self, sentences: int) -> Tree:
        """Return the cache (B, K = 1, L, H) of hypotheses that have read nothing."""
        weight = self.output.weight
        return weight.new_zeros(sentences, 1, self.config.num_layers, self.config.hidden_width)

    def start(self, batch) -> tuple[Tree, Tree]:
        """Create the cache; see `Seq2Seq.start`."""
        return None, self.initial_cache(len(batch.tgt_in))

    def advance(self, prev_tokens: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """Read one symbol per hypothesis.

        Args:
            prev_tokens: Newest symbol of each hypothesis, shape (B, K).
            cache: States of all layers before it, shape (B, K, L, H).

        Returns:
            Top states (B, K, H), and the states of all layers after it (B, K, L, H).
        """
        shape = prev_tokens.shape
        hidden = cache.flatten(0, 1).transpose(0, 1).contiguous()
        states, hidden = self.gru(self.embedding(prev_tokens.reshape(-1, 1)), hidden)
        return states.view(*shape, -1), hidden.transpose(0, 1).unflatten(0, shape)

    def logits(self, states: Tensor) -> Tensor:
        """Return float32 logits of the vocabulary, shape (…, V).

        Args:
            states: Top states of the GRU, shape (…, H).
        """
        return self.output(states).float()

    def step(self, prev_tokens: Tensor, source: Tree, cache: Tensor) -> tuple[Tensor, Tensor]:
        """Score the next symbol of each hypothesis; see `Seq2Seq.step`.

        Args:
            prev_tokens: Newest symbol of each hypothesis, shape (B, K).
            source: None; a language model has no source.
            cache: States of all layers, shape (B, K, L, H).

        Returns:
            Float32 logits (B, K, V), and the states of all layers after this symbol.
        """
        states, cache = self.advance(prev_tokens, cache)
        return self.logits(states), cache


def build(config: LanguageModelConfig, vocab_sizes: tuple[int, int]) -> LanguageModel:
    """Return a model with random weights.

    Args:
        config: Settings of the language model.
        vocab_sizes: Source and target vocabulary; only the second is used.
    """
    return LanguageModel(config, vocab_sizes[1])
