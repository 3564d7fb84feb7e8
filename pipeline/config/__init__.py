"""Settings of a run, its training and its decodings. Each model's settings are in its folder of pipeline/models.

Never change a default: a run's key leaves out settings at their defaults (pipeline/training/specification.py).
Add a key instead.
The JSON schemas under `workflow/schemas/` are generated from these classes (`python -m pipeline schemas`).
"""

from pipeline.config.run import LanguageModelRun, ModelConfig, RunSpec, load_run, run_folder_above, sibling_runs
from pipeline.config.training import DecodingConfig, DecodingSettings, TrainingConfig
