"""Environment variable that asks for Triton kernels; read without torch, because forecasts depend on it."""

import os
from functools import cache

from pipeline.core.errors import UserError

SWITCH = "REPRISE_GPU_KERNELS"


@cache
def asked_for() -> bool:
    """Return whether REPRISE_GPU_KERNELS asks for Triton kernels.

    Raises:
        UserError: It is neither 1 nor 0.
    """
    text = os.environ.get(SWITCH, "0")
    if text not in ("0", "1"):
        raise UserError(f"{SWITCH}={text}: set 1 to compute by Triton kernels on a GPU, or 0 to compute by torch's")
    return text == "1"
