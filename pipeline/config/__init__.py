"""Settings of a run, its training and its decodings; those of a model stand in its folder of pipeline/models.

A default may never change, for a run's key leaves out what is at its default (pipeline/training/key.py): add a key.
The JSON schemas under `workflow/schemas/` are generated from these classes (`python -m pipeline schemas`).
"""

from pipeline.config.decoding import DecodingConfig, DecodingSettings
from pipeline.config.run import LanguageModelRun, ModelConfig, RunSpec, load_run, neighbours, run_folder_above
from pipeline.config.training import TrainingConfig
