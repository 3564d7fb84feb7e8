"""From a model's configuration to the model."""

from pipeline.config import ModelConfig, RunSpec
from pipeline.errors import UserError
from pipeline.models.convolutional.model import Convolutional
from pipeline.models.convolutional.settings import ConvolutionalConfig
from pipeline.models.ctc.model import CTC
from pipeline.models.ctc.settings import CTCConfig
from pipeline.models.fusion.model import FusedModel
from pipeline.models.language_model.model import LanguageModel
from pipeline.models.language_model.settings import LanguageModelConfig
from pipeline.models.recurrent.model import RecurrentAttention
from pipeline.models.recurrent.settings import RecurrentConfig
from pipeline.models.seq2seq import Seq2Seq, TaskModel
from pipeline.models.speech_attention.model import SpeechAttention
from pipeline.models.speech_attention.settings import SpeechAttentionConfig
from pipeline.models.transformer.model import Transformer
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.models.weighted_transformer.model import WeightedTransformer
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig


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
        case RecurrentConfig():
            return RecurrentAttention(config, src_vocab, tgt_vocab)
        case ConvolutionalConfig():
            return Convolutional(config, src_vocab, tgt_vocab)
        case LanguageModelConfig():
            return LanguageModel(config, tgt_vocab)
        case SpeechAttentionConfig():
            return SpeechAttention(config, tgt_vocab)
        case CTCConfig():
            return CTC(config, tgt_vocab)
    raise ValueError(f"no model for {type(config).__name__}")


def build_run(spec: RunSpec, vocab_sizes: tuple[int, int]) -> Seq2Seq:
    """The model that a run trains, with its fusion; frozen parts hold no trained weights yet (training/parts.py).

    Raises:
        UserError: the model has no task state that a language model could be fused with.
    """
    model = build_model(spec.model, vocab_sizes)
    if spec.fusion is not None:
        model = fused(spec, model, vocab_sizes[1])
    model.sampling_rate = spec.training.scheduled_sampling
    return model


def fused(spec: RunSpec, model: Seq2Seq, vocab: int) -> FusedModel:
    if not isinstance(model, TaskModel):
        raise UserError(
            f"{spec.name}: fusion: a model of architecture {spec.model.architecture} has no decoder to fuse"
        )
    found = FusedModel(spec.fusion, model, LanguageModel(spec.language_model.model, vocab), vocab)
    if spec.training.trained_part == "fusion":
        found.freeze_task()
    return found
