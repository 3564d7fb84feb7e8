"""Shift the seeds of the random inputs of tests, so that a run of the suite draws other ones."""

import os
import random
import sys
from pathlib import Path

import numpy as np
import torch

SHIFT = int(os.environ.get("REPRISE_TEST_SEED", "0"))
"""Number that REPRISE_TEST_SEED adds to seeds. Bounds on random inputs may be wider if it is not 0."""
TESTS = f"{Path(__file__).resolve().parents[1]}{os.sep}"


def shift_seeds(shift: int) -> None:
    """Add `shift` to each whole number with which a test seeds `Random`, `default_rng` or `manual_seed`.

    Generators of the code under test keep their seeds.
    """

    def shifted(seed: object) -> object:
        caller = sys._getframe(2).f_code.co_filename
        return seed + shift if type(seed) is int and caller.startswith(TESTS) else seed

    def start(generator: random.Random, seed: object = None) -> None:
        generator.seed(shifted(seed))

    default_rng, manual_seed = np.random.default_rng, torch.manual_seed
    random.Random.__init__ = start
    np.random.default_rng = lambda seed=None: default_rng(shifted(seed))
    torch.manual_seed = lambda seed: manual_seed(shifted(seed))
