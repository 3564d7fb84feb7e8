"""From a model's configuration to the model."""

from pipeline.config import ModelConfig, TransformerConfig, WeightedTransformerConfig
from pipeline.errors import UserError
from pipeline.models.seq2seq import Seq2Seq
from pipeline.models.transformer import Transformer
from pipeline.models.weighted_transformer import WeightedTransformer


def build_model(config: ModelConfig, vocab_sizes: tuple[int, int]) -> Seq2Seq:
    """An initialised model; vocab_sizes = (source, target) rows. The draw is from torch's global generator.

    Raises:
        UserError: three-way tying asked for with two vocabularies of different size.
    """
    src_vocab, tgt_vocab = vocab_sizes
    if getattr(config, "tie_embeddings", None) == "three-way" and src_vocab != tgt_vocab:
        raise UserError(
            f"model.tie_embeddings: three-way needs one vocabulary for both sides, got {src_vocab} source and "
            f"{tgt_vocab} target subwords; set it to none or use a joint subword model"
        )
    match config:
        case WeightedTransformerConfig():
            return WeightedTransformer(config, src_vocab, tgt_vocab)
        case TransformerConfig():
            return Transformer(config, src_vocab, tgt_vocab)
    raise ValueError(f"no model for {type(config).__name__}")
