"""Every setting of a run: its name, type, range, default and meaning. The only place where a key is spelled.

A default may never change, for a run's key leaves out what is at its default (pipeline/training/key.py): add a key.
The JSON schemas under `workflow/schemas/` are generated from these classes (`python -m pipeline schemas`).
"""

from pipeline.config.convolutional import ConvolutionalConfig
from pipeline.config.decoding import DecodingConfig
from pipeline.config.records import Closed, Count, Probability, load_yaml, validate
from pipeline.config.recurrent import RecurrentConfig
from pipeline.config.run import LanguageModelRun, ModelConfig, RunSpec, load_run
from pipeline.config.speech import AttentionConfig, CTCConfig, FusionConfig, LanguageModelConfig
from pipeline.config.training import TrainingConfig
from pipeline.config.transformer import TransformerConfig, WeightedTransformerConfig

__all__ = [
    "AttentionConfig",
    "CTCConfig",
    "Closed",
    "ConvolutionalConfig",
    "Count",
    "DecodingConfig",
    "FusionConfig",
    "LanguageModelConfig",
    "LanguageModelRun",
    "ModelConfig",
    "Probability",
    "RecurrentConfig",
    "RunSpec",
    "TrainingConfig",
    "TransformerConfig",
    "WeightedTransformerConfig",
    "load_run",
    "load_yaml",
    "validate",
]
