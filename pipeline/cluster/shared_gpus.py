"""GPUs of this machine that several trainings share: places for Snakemake to count, and NVIDIA's MPS.

With `--resources gpus=2 trainings_per_gpu=3` six trainings run beside each other, three on each GPU.
"""

import atexit
import os
import shutil
import subprocess
import sys
from typing import Any, NamedTuple

from pipeline.cluster.local import visible_gpus
from pipeline.core.disk import own_folder
from pipeline.core.errors import UserError

RESOURCE = "trainings_per_gpu"
MPS = "nvidia-cuda-mps-control"


class Sharing(NamedTuple):
    """Rules by which jobs of this machine share its GPUs.

    Attributes:
        gpus: Number of GPUs that `--resources gpus` names; the largest integer without it.
        trainings_per_gpu: Jobs that may share a GPU.
    """

    gpus: int = sys.maxsize
    trainings_per_gpu: int = 1


def share_gpus(workflow: Any) -> Sharing:
    """Let Snakemake run as many trainings on each GPU as `--resources trainings_per_gpu` says.

    Snakemake lends whole units of a resource, so its limit of `gpus` becomes the number of places on all GPUs. With
    the profile `slurm` nothing changes, because Slurm lends GPUs by its own rules.

    Args:
        workflow: Snakemake's workflow, before its first rule.

    Returns:
        The number of GPUs, and how many jobs may share one.

    Raises:
        UserError: The number is 0.
    """
    given = {name: workflow.global_resources[name].value for name in workflow.global_resources}
    number, gpus = given.get(RESOURCE, 1), given.get("gpus", sys.maxsize)
    if not number:
        raise UserError(f"--resources {RESOURCE}=0: must be at least 1")
    changed = workflow.resource_settings.overwrite_resources.get("train", {})  # `set-resources` of a profile
    if "launcher" in changed and changed["launcher"].raw == "slurm":
        return Sharing(gpus)
    if number > 1 and "gpus" in given:
        workflow.register_resource("gpus", gpus * number)
    return Sharing(gpus, number)


def start_mps() -> None:
    """Start NVIDIA's MPS until this process ends, so that the kernels of several jobs run at the same time.

    Jobs take turns instead if the program is missing or a GPU is divided (MIG). A daemon that runs already is used, and
    left running.
    """
    if not shutil.which(MPS) or not (cards := visible_gpus()) or any(card.startswith("MIG") for card in cards):
        return
    if runs():
        return
    folder = own_folder() / "mps"
    folder.mkdir(exist_ok=True)
    os.environ |= {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
    if runs():  # for another Snakemake of this user
        return
    everywhere = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    subprocess.run([MPS, "-d"], env=everywhere, check=False)  # of all GPUs, so that jobs name them as before
    atexit.register(ask, "quit")


def runs() -> bool:
    """Return whether an MPS daemon answers."""
    return ask("get_server_list").returncode == 0


def ask(command: str) -> subprocess.CompletedProcess[str]:
    """Send a command to the MPS daemon that this environment names."""
    return subprocess.run([MPS], input=f"{command}\n", capture_output=True, text=True, check=False)
