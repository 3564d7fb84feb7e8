"""Demands of a piece of work on a GPU: launches, waits of the host, bytes moved and kept, copies from the host."""

import collections
import dataclasses
import functools
import re
import traceback
from pathlib import Path

import fused
import torch
import torchgen
from roofline import CARDS, update_seconds
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

VIEWS = """
device view t transpose permute expand slice select split split_with_sizes unsqueeze squeeze detach alias _unsafe_view
as_strided unbind unfold empty empty_like empty_strided is_pinned new_empty _reshape_alias lift_fresh set_ resize_
""".split()  # noqa: SIM905  # a list of quoted names is harder to read
"""Operators that launch nothing."""
WAITING = ("_local_scalar_dense", "nonzero", "bincount", "masked_select", "_unique2", "unique_dim", "equal", "histc")
"""Operators in which the host waits for the device, whether one sees it or not."""
NO_FIXED_ORDER = {
    "_ctc_loss_backward",
    "cumsum",
    "max_pool2d_with_indices_backward",
    "put_",
    "histc",
    "kthvalue",
    "median",
    "scatter_reduce",
    "grid_sampler_2d_backward",
    "nll_loss2d_forward",
}
"""Operators that torch.use_deterministic_algorithms refuses on a GPU."""
INDEXING = ("index", "index_put", "index_put_", "_index_put_impl_")
ANSWER = 3


@functools.cache
def has_cuda_kernel() -> set[str]:
    """Names of the operators of ATen that run on CUDA, as torch's own list has them."""
    listed = (Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml").read_text()
    found = set()
    for entry in re.split(r"^- func: ", listed, flags=re.MULTILINE)[1:]:
        name, dispatch = entry.split("(", 1)[0], entry.partition("dispatch:")[2]
        keys = set(re.findall(r"\w+", " ".join(re.findall(r"^    ([\w, ]+):", dispatch, flags=re.MULTILINE))))
        delegated = "structured_delegate" in entry or not dispatch or "autogen" in entry
        if delegated or any(key == "CUDA" or key.startswith("Composite") for key in keys):
            found.add(name.split(".")[0])
    return found


@dataclasses.dataclass
class Counts:
    launches: int = 0
    waits: int = 0
    bytes: int = 0
    unpinned: int = 0
    operators: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    places: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    kernels: list = dataclasses.field(default_factory=list)
    """(bytes, FLOPs of a matmul) of each launch."""
    saved_bytes: int = 0
    queued: int = 0
    """Launches that were queued when the host began to wait for an event."""
    without_cuda: list = dataclasses.field(default_factory=list)

    def row(self) -> dict[str, object]:
        """Return the counts in the columns of budgets.csv."""
        return {
            "launches": self.launches,
            "waits": self.waits,
            "queued at the wait": self.queued,
            "unpinned copies": self.unpinned,
            "GB moved": round(self.bytes / 1e9, 2),
            "GiB saved": round(self.saved_bytes / 2**30, 2),
            "without CUDA": " ".join(self.without_cuda),
            "no fixed order": " ".join(sorted(NO_FIXED_ORDER & set(self.operators))),
            **{f"ms {name}": round(1e3 * update_seconds(self.kernels, card), 2) for name, card in CARDS.items()},
        }


def place() -> str:
    """Return the place in this project that called the current operator."""
    ours = [frame for frame in traceback.extract_stack() if "/pipeline/" in frame.filename]
    return f"{ours[-1].filename.split('/pipeline/')[1]}:{ours[-1].lineno}" if ours else "elsewhere"


class Event:
    """Stand-in for torch.Event."""

    def __init__(self, count: "Count"):
        self.count, self.recorded = count, 0

    def record(self) -> None:
        self.recorded = self.count.total

    def synchronize(self) -> None:
        self.count.wait("event")
        self.count.now.queued = self.count.total - self.recorded


class Count(TorchDispatchMode):
    """Counts operators on fake tensors; what the host reads is `ANSWER`, and False until `yes_after` questions."""

    def __init__(self, yes_after: int = 1 << 60):
        super().__init__()
        self.now, self.cuda, self.yes_after, self.asked = Counts(), has_cuda_kernel(), yes_after, 0
        self.pinned: set[int] = set()
        self.saved: dict[int, object] = {}
        self.without_cuda: set[str] = set()
        self.total = 0
        FakeTensor.tolist = lambda tensor: self.tolist(tensor)
        torch.Tensor.pin_memory = lambda tensor: self.pin(tensor)
        torch.Event = lambda device: Event(self)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, as no compiler has to be kept away from here."""
        return False

    def wait(self, why: str) -> None:
        self.now.waits += 1
        self.now.places[f"wait {place()} {why}"] += 1

    def told(self, dtype: torch.dtype) -> float:
        if dtype == torch.bool:
            self.asked += 1
            return self.asked > self.yes_after
        return 0.0 if dtype.is_floating_point else ANSWER

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.prim.device.default and not args[0].fake_mode.in_kernel_invocation:
            return args[0].fake_device  # asked as often as anything is launched
        kwargs = kwargs or {}
        space, name = function._schema.name.split("::")
        inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        on_gpu = any(map(is_cuda, inputs))
        if not any(isinstance(x, FakeTensor) for x in inputs) and "cuda" not in str(kwargs.get("device")):
            with unset_fake_temporarily():  # the host's own work
                out = function(*args, **{key: value for key, value in kwargs.items() if key != "pin_memory"})
                return self.pin(out) if kwargs.get("pin_memory") else out
        if on_gpu and name in WAITING:
            self.wait(name)
            if name == "_local_scalar_dense":
                return self.told(inputs[0].dtype)
            self.launched(name, inputs)
            if name == "nonzero":
                return torch.empty(inputs[0].numel(), inputs[0].dim(), dtype=torch.long, device="cuda")
            if name == "bincount":
                return torch.empty(args[2], dtype=torch.long, device="cuda")
        if on_gpu and name in INDEXING and any(x.dtype == torch.bool for x in args[1] if x is not None):
            self.wait("a mask as index")
            args = (args[0], [places for mask in args[1] for places in as_if_true(mask)], *args[2:])
        if name in ("_to_copy", "copy_") and (special := self.crossing(name, args, kwargs)) is not None:
            return special
        if name == "_ctc_loss" and any(map(is_cuda, inputs[2:])):
            self.wait("lengths")
        out = (fused.MADE_UP.get(name) or function)(*args, **kwargs)
        outputs = [x for x in tree_leaves(out) if isinstance(x, torch.Tensor)]
        if on_gpu or any(map(is_cuda, outputs)):
            if name not in self.cuda if space == "aten" else space not in ("c10d", "prim"):
                self.without_cuda.add(function._schema.name)
            if name not in VIEWS:
                self.launched(name, inputs + outputs, inputs)
        return out

    def crossing(self, name: str, args, kwargs):
        """A copy between host and device: what comes of one to the host, else None."""
        if name == "copy_":
            source, target, flags = args[1], args[0].device, args[2:]
        else:
            source, target, flags = args[0], torch.device(kwargs.get("device") or args[0].device), ()
        free = flags[0] if flags else kwargs.get("non_blocking", False)
        if target.type == "cuda" and source.device.type == "cpu" and not isinstance(source, FakeTensor):
            self.copied_from_host(source, free)
        if target.type == "cuda" or not is_cuda(source):
            return None
        self.launched("copy to the host", [source])
        if not free:
            self.wait("copy to the host")
        if name == "copy_":
            with unset_fake_temporarily():
                return args[0].fill_(self.told(source.dtype))
        with unset_fake_temporarily():
            return torch.full(source.shape, self.told(source.dtype), dtype=kwargs.get("dtype") or source.dtype)

    def copied_from_host(self, source, free: bool) -> None:
        if not free or source.untyped_storage()._cdata not in self.pinned:
            self.now.unpinned += 1
            self.now.places[f"unpinned {place()}"] += 1

    def launched(self, name: str, tensors, inputs=()) -> None:
        moved = sum(x.numel() * x.element_size() for x in tensors)
        self.now.launches += 1
        self.total += 1
        self.now.bytes += moved
        self.now.operators[name] += 1
        self.now.kernels.append((moved, products(name, inputs)))

    def pin(self, tensor):
        """Stand-in for Tensor.pin_memory."""
        self.pinned.add(tensor.untyped_storage()._cdata)
        return tensor

    def tolist(self, tensor):
        """Stand-in for FakeTensor.tolist: one copy, however many numbers."""
        if is_cuda(tensor):
            self.wait("tolist")
        with unset_fake_temporarily():
            return torch.full(tensor.shape, self.told(tensor.dtype), dtype=tensor.dtype).tolist()

    def keep(self, tensor):
        """Stand-in for tensors saved by autograd; weights exist anyway."""
        if is_cuda(tensor) and not isinstance(tensor, torch.nn.Parameter):
            storage = tensor.untyped_storage()
            if storage._cdata not in self.saved:
                self.saved[storage._cdata] = storage
                self.now.saved_bytes += storage.nbytes()
        return tensor


def is_cuda(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is on the fake device, without asking by an operator as `Tensor.is_cuda` does."""
    return (tensor.fake_device if isinstance(tensor, FakeTensor) else tensor.device).type == "cuda"


def as_if_true(mask):
    """Places of what a mask chooses when it chooses everything."""
    if mask is None or mask.dtype != torch.bool:
        return [mask]
    return [torch.empty(mask.numel(), dtype=torch.long, device="cuda") for _ in range(mask.dim())]


def products(name: str, inputs) -> float:
    """Return the FLOPs of a matmul, 0 for anything else."""
    match name:
        case "mm":
            return 2.0 * inputs[0].numel() * inputs[1].shape[1]
        case "addmm":
            return 2.0 * inputs[1].numel() * inputs[2].shape[1]
        case "bmm":
            return 2.0 * inputs[0].numel() * inputs[1].shape[2]
        case "baddbmm":
            return 2.0 * inputs[1].numel() * inputs[2].shape[2]
    return 0.0
