"""GPUs of this machine that several trainings share: places for Snakemake to count, and NVIDIA's MPS.

With `--resources gpus=2 trainings_per_gpu=3` six trainings run beside each other, three on each GPU.
"""

import atexit
import fcntl
import logging
import os
import shutil
import subprocess
import sys
from typing import Any, NamedTuple

from pipeline.cluster.local import driver_listing, visible_gpus
from pipeline.core.disk import own_folder
from pipeline.core.errors import UserError, count_of

log = logging.getLogger(__name__)
RESOURCE = "trainings_per_gpu"
MPS = "nvidia-cuda-mps-control"
MPS_VARIABLES = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY")
ANSWER_WITHIN_S = 30.0


class Sharing(NamedTuple):
    """Rules by which jobs of this machine share its GPUs.

    Attributes:
        gpus: Number of GPUs that `--resources gpus` names; the largest integer without it.
        trainings_per_gpu: Jobs that may share a GPU.
    """

    gpus: int = sys.maxsize
    trainings_per_gpu: int = 1


def uses_slurm(workflow: Any) -> bool:
    """Return whether trainings are jobs on Slurm, by the `set-resources` of a profile.

    Args:
        workflow: Snakemake's workflow.
    """
    changed = workflow.resource_settings.overwrite_resources.get("train", {})
    return "launcher" in changed and changed["launcher"].raw == "slurm"


def share_gpus(workflow: Any) -> Sharing:
    """Return the number of GPUs and of jobs that may share one, by `--resources trainings_per_gpu`.

    Snakemake lends whole units of a resource, so its limit of `gpus` becomes the number of places on all GPUs. With
    the profile `slurm` nothing changes, because Slurm lends GPUs by its own rules.

    Raises:
        UserError: The number is 0, or `gpus` is less than the number of visible GPUs: jobs would spread over all.
    """
    given = {name: workflow.global_resources[name].value for name in workflow.global_resources}
    number, gpus = given.get(RESOURCE, 1), given.get("gpus", sys.maxsize)
    if not number:
        raise UserError(f"--resources {RESOURCE}=0: must be at least 1")
    if uses_slurm(workflow):
        return Sharing(gpus)
    if number > 1 and gpus < (visible := len(visible_gpus())):
        raise UserError(
            f"--resources gpus={gpus} {RESOURCE}={number}: trainings would share all {visible} visible GPUs; set "
            f"gpus to {visible}, or name {gpus} of them in CUDA_VISIBLE_DEVICES"
        )
    if number > 1 and "gpus" in given:
        workflow.register_resource("gpus", gpus * number)
    return Sharing(gpus, number)


def require_gpus(wanted: int, scale: str) -> None:
    """Refuse to start if a job wants more GPUs than this machine has, before hours of other jobs.

    Args:
        wanted: GPUs of the job that wants the most.
        scale: Name of the scale, whose settings say so.

    Raises:
        UserError: There are fewer.
    """
    if not wanted or len(visible_gpus()) >= wanted or driver_listing() is None:  # a driver that hangs counts none
        return
    import torch  # imported late: jobs without GPUs do not need it; it also counts GPUs of other makers

    if (found := torch.cuda.device_count()) >= wanted:
        return
    gpus = count_of(found, "GPU") if found else "none"
    instead = "" if found else " to use the processor, which takes hours"
    raise UserError(
        f"scale {scale}: a job wants {count_of(wanted, 'GPU')}, but this machine has {gpus}; "
        f"add `--resources gpus={found}`{instead}, or `--profile slurm` to use a cluster"
    )


def start_mps() -> None:
    """Start NVIDIA's MPS until this process ends, so that the kernels of several jobs run at the same time.

    Jobs take turns instead if the program is missing, a GPU is divided (MIG), or the daemon does not start. A daemon
    that the environment already names is used and left running. All Snakemakes of this user use one daemon, in a
    Slurm job one of its own. The last of them stops it; if that one is killed, the next one does.
    """
    if not shutil.which(MPS) or not (gpus := visible_gpus()) or any(gpu.startswith("MIG") for gpu in gpus):
        return
    if mps_is_running():
        return
    folder = own_folder() / f"mps{os.environ.get('SLURM_JOB_ID', '')}"  # GPUs differ by Slurm job
    folder.mkdir(exist_ok=True)
    users = os.open(folder / "users.lock", os.O_CREAT | os.O_WRONLY, 0o600)
    fcntl.flock(users, fcntl.LOCK_SH)  # held until this process ends, even if it is killed
    os.environ |= dict.fromkeys(MPS_VARIABLES, str(folder))
    if not mps_is_running():
        # The daemon serves all GPUs, so that jobs can name any of them.
        environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        subprocess.run([MPS, "-d"], env=environment, check=False)
    if mps_is_running():
        atexit.register(stop_unused_mps, users)
        return
    for name in MPS_VARIABLES:
        del os.environ[name]
    log.warning("NVIDIA's MPS does not start; trainings that share a GPU take turns. Its log is in %s", folder)


def stop_unused_mps(users: int) -> None:
    """Stop the MPS daemon unless another Snakemake has locked the file with the descriptor `users`."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    send_to_mps("quit")


def mps_is_running() -> bool:
    """Return whether an MPS daemon answers."""
    return send_to_mps("get_server_list")


def send_to_mps(command: str) -> bool:
    """Send a command to the MPS daemon that this environment names, and return whether it succeeded in time."""
    try:
        sent = subprocess.run([MPS], input=f"{command}\n", capture_output=True, text=True, timeout=ANSWER_WITHIN_S)
    except subprocess.TimeoutExpired:
        return False
    return sent.returncode == 0
