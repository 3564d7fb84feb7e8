import os
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch

from pipeline.core.errors import UserError
from pipeline.training import machine
from pipeline.training.machine import (
    autocast,
    check_kernels,
    check_precision,
    choose_device,
    choose_threads,
    configure_malloc,
    prepare,
)
from pipeline.training.matmul_backend import MatmulBackend


def test_gpu_is_chosen_if_available_unless_cpu_is_requested(monkeypatch):
    taken = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    assert choose_device("auto", 1) == torch.device("cuda", 1) == taken[0]
    assert choose_device("cpu", 1) == torch.device("cpu")
    with pytest.raises(UserError, match="process 2 of this machine has no GPU of its own: 2 are visible"):
        choose_device("auto", 2)


@pytest.mark.parametrize(
    ("card", "built", "runs"),
    [
        ((9, 0), ["sm_75", "sm_80", "sm_90a"], True),
        ((8, 9), ["sm_75", "sm_80", "sm_120"], True),
        ((7, 0), ["sm_75", "sm_80", "sm_90"], False),
        ((12, 1), ["sm_90", "compute_90"], True),
        ((10, 0), ["sm_80", "sm_90", "sm_120"], False),
    ],
)
def test_gpu_without_kernels_in_this_build_is_an_error(monkeypatch, card, built, runs):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: card)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Some Card")
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: built)
    if runs:
        return check_kernels(torch.device("cuda"))
    with pytest.raises(UserError, match=r"no kernels for Some Card \(sm_\d+\), only for sm_.*Which PyTorch"):
        check_kernels(torch.device("cuda"))


@pytest.mark.parametrize(
    ("cuda", "remedy"),
    [("12.8", "that the driver supports CUDA 12.8"), (None, "install a build for GPUs: this one has no CUDA")],
)
def test_allocated_gpu_that_torch_does_not_find_is_an_error(monkeypatch, cuda, remedy):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1f")
    with pytest.raises(UserError, match=f"CUDA_VISIBLE_DEVICES=GPU-1f: .* finds no GPU here.*{remedy}.*Which PyTorch"):
        choose_device("auto", 0)
    assert choose_device("cpu", 0) == torch.device("cpu")


@pytest.mark.parametrize("hidden", ["-1", "", "NoDevFiles"])
def test_job_without_a_gpu_computes_on_the_cpu(monkeypatch, hidden):
    """Slurm writes the last one on a node that has GPUs."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert choose_device("auto", 0) == torch.device("cpu")


def test_gpu_without_bfloat16_is_refused_only_for_it(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Some Card")
    check_precision(torch.device("cuda"), "fp32")
    check_precision(torch.device("cpu"), "bf16")
    with pytest.raises(UserError, match=r"Some Card has no bfloat16; set training.precision to fp32"):
        check_precision(torch.device("cuda"), "bf16")


@pytest.mark.parametrize(
    ("precision", "widened", "multiplied"),
    [("bf16", True, torch.float32), ("bf16", False, torch.bfloat16), ("fp32", True, torch.float32)],
)
def test_slow_bfloat16_processor_uses_float32_but_no_gpu_does(monkeypatch, caplog, precision, widened, multiplied):
    """The choice is logged if bfloat16 was asked for."""
    caplog.set_level("INFO")
    spec = SimpleNamespace(training=SimpleNamespace(precision=precision))
    monkeypatch.setattr(machine, "current_backend", lambda: MatmulBackend(widened=widened))
    check_precision(torch.device("cpu"), precision)
    assert len(caplog.records) == (precision == "bf16" and widened)
    with autocast(torch.device("cpu"), spec):
        assert torch.nn.Linear(2, 3)(torch.ones(1, 2)).dtype == multiplied
    assert machine.precision_on(torch.device("cuda"), precision) == precision


@pytest.mark.parametrize(("precision", "allowed"), [("fp32", False), ("bf16", True)])
def test_gpu_rounds_to_tf32_only_in_bfloat16_runs(monkeypatch, precision, allowed):
    switches = torch.backends.cuda.matmul, torch.backends.cudnn
    for switch in switches:
        switch.allow_tf32 = not allowed
    monkeypatch.setattr(torch, "autocast", Mock())
    autocast(torch.device("cuda"), SimpleNamespace(training=SimpleNamespace(precision=precision)))
    assert [switch.allow_tf32 for switch in switches] == [allowed, allowed]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_prepared_process_computes_with_its_threads(threads, threads_restored):
    prepare(torch.device("cpu"), threads)
    assert torch.get_num_threads() == threads


def test_threads_come_from_argument_environment_or_shared_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert choose_threads(None) == 8
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert choose_threads(None) == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert choose_threads(None) == 3
    assert choose_threads(5) == 5
    with pytest.raises(UserError, match="--threads must be at least 1, got 0"):
        choose_threads(0)
    with pytest.raises(UserError, match="--threads must be at most 1024, got 100000000"):
        choose_threads(100_000_000)
    monkeypatch.setenv("OMP_NUM_THREADS", "100000000")
    assert choose_threads(None) == 2


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="counts mappings of a Linux process")
def test_freed_memory_stays_with_the_process():
    configure_malloc()
    size = 400 << 20
    torch.ones(size, dtype=torch.uint8)

    def resident() -> int:
        with open("/proc/self/statm") as handle:
            return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    assert resident() > size


def test_gpu_is_deterministic_without_cublas_workspace_variable(monkeypatch):
    """Torch fixes the workspace of cuBLAS by itself; the variable costs 42 to 51 µs a product in 2.11."""
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    before = torch.are_deterministic_algorithms_enabled()
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    try:
        for options in ({"strict": False}, {}):
            prepare(torch.device("meta"), torch.get_num_threads(), **options)  # any that is no CPU
            assert torch.are_deterministic_algorithms_enabled()
            assert torch.is_deterministic_algorithms_warn_only_enabled() == bool(options)
        assert not torch.backends.cudnn.allow_tf32 and not torch.backends.cuda.matmul.allow_tf32
        assert not torch.utils.deterministic.fill_uninitialized_memory, "a kernel for each new tensor"
        assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ
    finally:
        torch.use_deterministic_algorithms(before)
