"""A CUDA device that computes nothing, for a torch without CUDA: shapes, launches and waits are real, data is not.

`load` has to be called before torch is imported, so whatever counts runs in a process of its own (count.py).
"""

import ctypes
import importlib.util
import subprocess
from pathlib import Path
from types import SimpleNamespace

SOURCE = Path(__file__).with_name("fake_cuda.cpp")
RANKS = 8
MEMORY_BYTES = 80e9


def build(folder: Path) -> Path:
    """Compile the hooks and the device guard that do nothing."""
    torch = Path(importlib.util.find_spec("torch").origin).parent
    library, found = folder / "libfakecuda.so", torch / "lib"
    includes = [f"-isystem{torch / 'include' / path}" for path in ("", "torch/csrc/api/include")]
    links = [f"-L{found}", f"-Wl,-rpath,{found}", "-ltorch_cpu", "-lc10"]
    command = ["c++", "-shared", "-fPIC", "-O0", "-std=c++20", str(SOURCE), "-o", str(library), *includes, *links]
    subprocess.run(command, check=True)
    return library


def load(library: Path) -> None:
    """Have torch believe in a GPU and in eight processes, of which this is the first."""
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    import fused
    import torch.cuda.amp.common
    import torch.distributed
    from torch.testing._internal.distributed import fake_pg

    torch.cuda.is_bf16_supported = lambda *_, **__: True
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.cuda.get_device_properties = lambda _: SimpleNamespace(total_memory=MEMORY_BYTES)
    fused.install()
    torch.distributed.init_process_group("fake", store=fake_pg.FakeStore(), rank=0, world_size=RANKS)
