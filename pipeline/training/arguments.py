"""Arguments of what trains; without torch, so that help and completion come at once."""

import argparse

SAVE_EVERY_S = 300.0


def add_machine_arguments(parser: argparse.ArgumentParser, threads: str = "OMP_NUM_THREADS or all cores") -> None:
    """threads: how many there are by default, in words."""
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: a GPU if there is")
    parser.add_argument("--threads", type=int, help=f"of this process; default: {threads}")
    parser.add_argument("--save-every", type=float, default=SAVE_EVERY_S, metavar="S", help="seconds, default 300")
