"""From what somebody names to a model that is ready: a run, or a packed model."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.papers.arguments import add_settings_argument
from pipeline.papers.settings import parse_settings
from reprise.named_run import PACKED_FILE, find_run

if TYPE_CHECKING:
    from reprise.model import Model


def open_model(name: str | Path, decoding: str, settings: Mapping[str, Any], threads: int | None) -> "Model":
    """The model of a run, by its folder or as `paper/system/dataset/seed`, or in a folder that `reprise pack` wrote.

    Args:
        decoding: `NAME` of the run's paper, `KEY=VALUE,…` that differ, or both; "" = as the paper's table has it.
        settings: keys in the place of config.yaml's.
        threads: of the CPU; None = the cores this process may use.

    Raises:
        UserError: there is no such model, or it is damaged.
    """
    from reprise.model import Model  # brings torch, as `portable` does
    from reprise.portable import open_packed

    if (Path(name) / PACKED_FILE).exists():
        return open_packed(Path(name), decoding, threads)
    return Model.of_run(find_run(str(name), dict(settings)), decoding, threads)


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """What every command that opens a model is told."""
    parser.add_argument("model", metavar="RUN", help="paper/system/dataset/seed, a run's folder, or a packed model's")
    add_decoding_arguments(parser)
    add_threads_argument(parser)


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    """What every command that needs a run's own project is told."""
    parser.add_argument("model", metavar="RUN", help="paper/system/dataset/seed, or a run's folder; no packed model")
    add_decoding_arguments(parser)


def add_decoding_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--decoding", default="", metavar="NAME,KEY=VALUE,…", help="e.g. averaged, or beam=8,alpha=1.0")
    add_settings_argument(parser)


def add_threads_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, help="CPU threads; default: all")


def opened(args: argparse.Namespace) -> "Model":
    return open_model(args.model, args.decoding, parse_settings(args.set), args.threads)
