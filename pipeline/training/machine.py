"""Where a training runs: device, threads, and the settings of torch and of the C library that speed or fix results."""

import contextlib
import ctypes
import logging
import os
from typing import Any, Literal

import torch

from pipeline.config import RunSpec
from pipeline.core.disk import cache_folder
from pipeline.core.errors import UserError
from pipeline.core.provenance import processor
from pipeline.core.records.training import Machine
from pipeline.training.products import choose, in_use, multiply_by

log = logging.getLogger(__name__)
DeviceChoice = Literal["auto", "cpu", "cuda"]
# mallopt's parameters (malloc.h)
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4
TOP_PAD_BYTES = 256 << 20
MOST_THREADS = 1024  # of some ten thousands OpenMP dies without a word
BUILDS = "docs/how-to/slurm-and-containers.md, Which PyTorch"


def choose_device(choice: DeviceChoice, local_rank: int) -> torch.device:
    """`auto` takes a GPU where there is one, or should be, as in a job that was given one.

    Raises:
        UserError: there is none, or this build of torch can't use it.
    """
    given = os.environ.get("CUDA_VISIBLE_DEVICES", "").replace("-1", "")
    if choice == "cpu" or (choice == "auto" and not given and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        driver = f"check the job's GPU request, and by nvidia-smi whether the driver serves CUDA {torch.version.cuda}"
        remedy = driver if torch.version.cuda else "install a build for GPUs: this one has no CUDA"
        raise UserError(
            f"--device {choice}: torch {torch.__version__} finds no GPU here; {remedy} ({BUILDS}), or train with "
            "--device cpu"
        )
    if local_rank >= torch.cuda.device_count():
        raise UserError(
            f"process {local_rank} of this machine has no GPU of its own: {torch.cuda.device_count()} are visible; "
            "start one process a GPU"
        )
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    check_kernels(device)
    return device


def check_kernels(device: torch.device) -> None:
    """Raises UserError where this build of torch has none for a GPU."""
    major, minor = torch.cuda.get_device_capability(device)
    names = (name.split("_") for name in torch.cuda.get_arch_list())  # such as sm_90a
    built = [(kind, divmod(int(number.rstrip("af")), 10)) for kind, number in names]
    runs = [
        own <= (major, minor)
        and (kind == "compute" or own[0] == major)  # those of a card's family, or for any later one
        for kind, own in built
    ]
    if runs and not any(runs):
        raise UserError(
            f"torch {torch.__version__} has no kernels for {torch.cuda.get_device_name(device)} (sm_{major}{minor}), "
            f"only for {', '.join(torch.cuda.get_arch_list())}; install another build ({BUILDS})"
        )


def precision_on(device: torch.device, asked: str) -> str:
    """In which matrices are multiplied there: in float32, too, on a processor that is slower in bfloat16."""
    return in_use().precision(asked) if device.type == "cpu" else asked


def check_precision(device: torch.device, precision: str) -> None:
    """Says so where a processor computes in another. Raises UserError where a GPU lacks it."""
    if precision_on(device, precision) != precision:
        log.info("%s is faster in float32, which is taken in the place of bfloat16", processor())
    if precision == "bf16" and device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 0):
        raise UserError(
            f"{torch.cuda.get_device_name(device)} has no bfloat16; set training.precision to fp32 in the scale "
            "(workflow/scales), or train on an A100 or a later one"
        )


def choose_threads(asked: int | None) -> int:
    """`asked`, else OMP_NUM_THREADS, else the cores this process may use, shared among the processes of the machine.

    Raises:
        UserError: `asked` is not positive, or more than any machine has.
    """
    if asked is not None:
        if not 1 <= asked <= MOST_THREADS:
            raise UserError(f"--threads must be at {'least 1' if asked < 1 else f'most {MOST_THREADS}'}, got {asked}")
        return asked
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdecimal() and 1 <= int(given) <= MOST_THREADS:
        return int(given)
    return max(1, len(os.sched_getaffinity(0)) // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def ready(threads: int | None) -> torch.device:
    """The device that was found, prepared for what reads a trained model; threads: those asked for."""
    device = choose_device("auto", local_rank=0)
    prepare(device, choose_threads(threads))
    return device


def prepare(device: torch.device, threads: int, strict: bool = True) -> None:
    """Make results a function of seed, machine and threads, and keep freed memory on the CPU.

    strict: on a GPU, refuse operators without a fixed order of sums. What reads speech needs some: its results are
    there those of the seed within rounding.
    """
    torch.set_num_threads(threads)
    if device.type == "cpu":
        keep_heap()
        return multiply_by(choose(cache_folder()))
    torch.use_deterministic_algorithms(True, warn_only=not strict)
    settings: Any = torch.utils.deterministic  # its types lack this one
    settings.fill_uninitialized_memory = False


def autocast(device: torch.device, spec: RunSpec) -> torch.autocast:
    """Enter autocast in the run's precision; matmuls in loops then use TF32 on a GPU (kernels/matmul.py)."""
    narrow = precision_on(device, spec.training.precision) == "bf16"
    torch.backends.cuda.matmul.allow_tf32 = narrow
    return torch.autocast(device.type, torch.bfloat16, enabled=narrow)


def keep_heap() -> None:
    """Let glibc keep freed memory instead of returning it to the kernel.

    A step frees and takes back hundreds of megabytes, and the kernel zeroes every page it hands out anew: 1.2 to 1.4
    times the time of a step. Same effect as MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_ and MALLOC_TOP_PAD_ in the
    environment, but it needs no new process.
    """
    with contextlib.suppress(AttributeError, OSError):  # another C library: slower, not wrong
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, -1)
        libc.mallopt(M_TOP_PAD, TOP_PAD_BYTES)


def facts(device: torch.device, threads: int, processes: int) -> Machine:
    kind = torch.cuda.get_device_name(device) if device.type == "cuda" else processor()
    ways = in_use().model_dump(exclude={"format"})
    return Machine(device=kind, threads=threads, processes=processes, torch=str(torch.__version__), **ways)
