"""Run folders without a training: their settings, and weights that nothing has learnt."""

import json
from pathlib import Path
from typing import Any

import torch
import yaml

from pipeline.training.specification import run_key
from pipeline.training.tensor_file import tensors_of, write_tensor_file


def write_settings(folder: Path, corpus: Path | str, model: dict, training: dict | None = None, **changes: Any) -> Path:
    """Write `run.yaml` of a run of one step, named as its folder.

    Args:
        folder: Folder of the run.
        corpus: Folder of the encoded corpus.
        model: Settings of the model.
        training: Changed settings of the training.
        changes: Changed settings outside both.
    """
    steps = {"max_steps": 1, "warmup_steps": 1, "validate_every": 1, "checkpoint_every": 1}
    spec = dict.fromkeys(("paper", "system", "dataset", "scale"), folder.name) | {"seed": 1, "corpus": str(corpus)}
    spec |= {"model": model, "training": steps | (training or {})}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.yaml").write_text(yaml.safe_dump(spec | changes))
    return folder


def change_settings(folder: Path, training: dict | None = None, **changes: Any) -> None:
    """Rewrite `run.yaml` with some other settings."""
    spec = yaml.safe_load((folder / "run.yaml").read_text())
    (folder / "run.yaml").write_text(yaml.safe_dump(spec | changes | {"training": spec["training"] | (training or {})}))


def write_weights(folder: Path, model: torch.nn.Module, file: str = "model.safetensors", step: int = 1) -> None:
    """Write weights of the run of a folder, the final ones by default."""
    write_tensor_file(folder / file, tensors_of(model), {"key": run_key(folder), "step": step})


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [*map(json.loads, path.read_text().splitlines())]
