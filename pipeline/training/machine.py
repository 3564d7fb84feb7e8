"""Device, threads, and the settings of torch and the C library that affect speed or final bits."""

import contextlib
import ctypes
import logging
import os
from typing import Any, Literal

import torch

from pipeline.config import RunSpec
from pipeline.core.cores import usable_cores
from pipeline.core.disk import cache_folder
from pipeline.core.errors import UserError
from pipeline.core.gpus import named_gpus
from pipeline.core.provenance import processor
from pipeline.core.records.training import Machine
from pipeline.models.kernels import triton_asked_for
from pipeline.models.kernels.gpu import triton_runs
from pipeline.training.matmul_backend import choose_backend, current_backend, use_backend

log = logging.getLogger(__name__)
DeviceChoice = Literal["auto", "cpu", "cuda"]
# mallopt's parameters (malloc.h)
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4
TOP_PAD_BYTES = 256 << 20
MOST_THREADS = 1024  # with some ten thousand threads OpenMP dies without a message
BUILDS = "docs/how-to/slurm-and-containers.md, Which PyTorch"


def choose_device(choice: DeviceChoice, local_rank: int) -> torch.device:
    """Return the device, made torch's current one; `auto` takes a GPU if there is one, or if the job was given one.

    Raises:
        UserError: There is no GPU, or this build of torch cannot use it.
    """
    visible = ",".join(named_gpus() or ())
    if choice == "cpu" or (choice == "auto" and not visible and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        driver = f"check the job's GPU request, and with nvidia-smi that the driver supports CUDA {torch.version.cuda}"
        remedy = driver if torch.version.cuda else "install a build for GPUs: this one has no CUDA"
        asked, otherwise = "--device cuda", "use --device cpu"
        if choice == "auto":
            asked, otherwise = f"CUDA_VISIBLE_DEVICES={visible}", "unset it to use the CPU"
        raise UserError(f"{asked}: torch {torch.__version__} finds no GPU here; {remedy} ({BUILDS}), or {otherwise}")
    if local_rank >= torch.cuda.device_count():
        raise UserError(
            f"process {local_rank} of this machine has no GPU of its own: {torch.cuda.device_count()} are visible; "
            "start one process per GPU"
        )
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    check_kernels(device)
    return device


def check_kernels(device: torch.device) -> None:
    """Check that this build of torch has kernels for a GPU.

    Raises:
        UserError: It has none.
    """
    major, minor = torch.cuda.get_device_capability(device)
    names = (name.split("_") for name in torch.cuda.get_arch_list())  # e.g. sm_90a
    built = [(kind, divmod(int(number.rstrip("af")), 10)) for kind, number in names]
    runs = [
        own <= (major, minor)
        and (kind == "compute" or own[0] == major)  # binary for the same major version, or PTX for any later one
        for kind, own in built
    ]
    if runs and not any(runs):
        raise UserError(
            f"torch {torch.__version__} has no kernels for {torch.cuda.get_device_name(device)} (sm_{major}{minor}), "
            f"only for {', '.join(torch.cuda.get_arch_list())}; install another build ({BUILDS})"
        )


def precision_on(device: torch.device, requested: str) -> str:
    """Return the precision of matmuls on a `device`, bf16 or fp32: `requested`, or fp32 on a CPU slow in bf16."""
    return current_backend().precision(requested) if device.type == "cpu" else requested


def check_precision(device: torch.device, precision: str) -> None:
    """Log if a CPU computes in another `precision` (bf16 or fp32) than `device` can; see `precision_on`."""
    if precision_on(device, precision) != precision:
        log.info("%s is faster in float32, which is used instead of bfloat16", processor())
    if precision == "bf16" and device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 0):
        raise UserError(
            f"{torch.cuda.get_device_name(device)} has no bfloat16; set training.precision to fp32 in the scale "
            "(workflow/scales), or train on an A100 or newer"
        )


def choose_threads(requested: int | None) -> int:
    """Return `requested`, else OMP_NUM_THREADS, else this process's share of the cores.

    Raises:
        UserError: `requested` is not positive, or more than any machine has.
    """
    if requested is not None:
        if not 1 <= requested <= MOST_THREADS:
            bound = "least 1" if requested < 1 else f"most {MOST_THREADS}"
            raise UserError(f"--threads must be at {bound}, got {requested}")
        return requested
    default = os.environ.get("OMP_NUM_THREADS", "")
    if default.isdecimal() and 1 <= int(default) <= MOST_THREADS:
        return int(default)
    return max(1, usable_cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def prepare_device(threads: int | None) -> torch.device:
    """Choose and prepare the device for reading a trained model; `threads` None chooses."""
    device = choose_device("auto", local_rank=0)
    prepare(device, choose_threads(threads))
    return device


def prepare(device: torch.device, threads: int, strict: bool = True) -> None:
    """Make results a function of seed, machine and threads; on a CPU, keep freed memory.

    Args:
        device: Where the process computes.
        threads: CPU threads.
        strict: On a GPU, refuse operators without a fixed order of sums. Speech models need some: their results
            depend on the seed only up to rounding.
    """
    torch.set_num_threads(threads)
    if device.type == "cpu":
        configure_malloc()
        return use_backend(choose_backend(cache_folder()))
    allow_tf32(False)
    torch.use_deterministic_algorithms(True, warn_only=not strict)
    settings: Any = torch.utils.deterministic  # its type stubs lack this attribute
    settings.fill_uninitialized_memory = False


def autocast(device: torch.device, spec: RunSpec) -> torch.autocast:
    """Return autocast in the run's precision; loops and recurrent layers then use TF32 on a GPU (kernels/loops.py)."""
    narrow = precision_on(device, spec.training.precision) == "bf16"
    allow_tf32(narrow)
    return torch.autocast(device.type, torch.bfloat16, enabled=narrow)


def allow_tf32(allowed: bool) -> None:
    """Choose whether a GPU may round float32 to TF32 in matmuls, convolutions and recurrent layers.

    torch's default allows it in cuDNN, which has the latter two, and forbids it in matmuls.
    """
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed


def configure_malloc() -> None:
    """Make glibc keep freed memory instead of returning it to the kernel.

    A step frees and allocates hundreds of megabytes, and the kernel zeroes every page it hands out again: without this
    a step takes 1.2 to 1.4 times as long. MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_ and MALLOC_TOP_PAD_ in the
    environment have the same effect, but need a new process.
    """
    with contextlib.suppress(AttributeError, OSError):  # another C library: slower, not wrong
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, -1)
        libc.mallopt(M_TOP_PAD, TOP_PAD_BYTES)


def describe_machine(device: torch.device, threads: int, processes: int) -> Machine:
    """Return the record of what final bits may depend on besides the run's key.

    This process trains on a `device` with CPU `threads`; `processes` train the model together.
    """
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor()
    backend = current_backend().model_dump(exclude={"format"})
    version, fused = str(torch.__version__), triton_asked_for() and device.type == "cuda" and triton_runs()
    kernels: Literal["torch", "triton"] = "triton" if fused else "torch"
    return Machine(device=name, threads=threads, processes=processes, torch=version, kernels=kernels, **backend)
