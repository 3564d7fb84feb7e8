"""A CUDA device that computes nothing, for a machine without one: shapes, launches and waits are real, data is not.

`load` has to be called before torch is imported, so whatever counts runs in a process of its own (count.py).
"""

import ctypes
import importlib.util
import subprocess
from pathlib import Path
from types import SimpleNamespace

SOURCE = Path(__file__).with_name("fake_cuda.cpp")
TORCH = Path(importlib.util.find_spec("torch").origin).parent
RANKS = 8
MEMORY_BYTES = 80e9


def build(folder: Path) -> Path:
    """Compile the hooks and the device guard that do nothing."""
    library, libraries = folder / "libfakecuda.so", TORCH / "lib"
    includes = [f"-isystem{TORCH / 'include' / path}" for path in ("", "torch/csrc/api/include")]
    links = [f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-ltorch_cpu", "-lc10"]
    command = ["c++", "-shared", "-fPIC", "-O0", "-std=c++20", str(SOURCE), "-o", str(library), *includes, *links]
    subprocess.run(command, check=True)
    return library


def load(library: Path) -> None:
    """Have torch believe in a GPU and in eight processes, of which this is the first."""
    for name in ("libtorch_global_deps.so", "libtorch_cuda.so"):  # a build for CUDA would register its own device later
        if (TORCH / "lib" / name).exists():
            ctypes.CDLL(str(TORCH / "lib" / name), mode=ctypes.RTLD_GLOBAL)
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    import fused
    import torch.cuda.amp.common
    import torch.distributed
    from torch.testing._internal.distributed import fake_pg

    torch.backends.cudnn.enabled = False  # of a build for CUDA, it would need a driver
    torch.compile = lambda function, **_: function  # it takes seconds to find that it can't compile for this device
    torch.cuda.is_bf16_supported = lambda *_, **__: True
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.cuda.get_device_properties = lambda _: SimpleNamespace(total_memory=MEMORY_BYTES)
    fused.install()
    torch.distributed.init_process_group("fake", store=fake_pg.FakeStore(), rank=0, world_size=RANKS)
