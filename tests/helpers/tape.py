"""A stand-in for CUDA graphs: operators recorded on their way to a CPU, and done again on the same memory."""

from collections.abc import Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from pipeline.training.captured_steps import CapturedSteps
from pipeline.training.graph_cache import ShapeGrid

WAITING = ("_local_scalar_dense", "nonzero", "is_nonzero", "equal")
"""Operators in which the host reads what a device computed: no graph can hold them."""


def tensors(tree) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def aliases(tree):
    """Views of all tensors of a tree, whose shapes an operator such as `unsqueeze_` can't change for others."""
    return tree_map(lambda leaf: leaf.detach() if isinstance(leaf, torch.Tensor) else leaf, tree)


class Tape(TorchDispatchMode):
    """Runs operators and remembers them with their arguments and results."""

    def __init__(self):
        super().__init__()
        self.entries = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function._schema.name.split("::")[1]
        if name in WAITING:
            raise RuntimeError(f"{name} can't be recorded")
        given = aliases((args, kwargs))
        out = function(*args, **kwargs)
        self.entries.append((function, *given, aliases(out)))
        return out

    @torch.no_grad()
    def replay(self) -> None:
        """Do all operators again; what they returned is overwritten, as the memory of a graph is."""
        for function, args, kwargs, out in self.entries:
            given = {tensor.untyped_storage()._cdata for tensor in tensors((args, kwargs))}
            found = function(*aliases(args), **aliases(kwargs))
            for old, new in zip(tensors(out), tensors(found), strict=True):
                if old.untyped_storage()._cdata not in given:
                    old.copy_(new)


class TapeRecorder:
    """Records tapes. Recording itself changes nothing, as nothing is computed while a graph is captured.

    Args:
        changed: Tensors that the recorded work may change.
        fail: Called with the number of the recording; may raise what a device would.
    """

    def __init__(self, changed: Callable[[], list[torch.Tensor]], fail: Callable[[int], None] = lambda _: None):
        self.changed, self.fail = changed, fail
        self.recorded = self.replayed = self.released = 0

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        self.recorded += 1
        self.fail(self.recorded)
        tape, changed = Tape(), self.changed()
        before = [tensor.detach().clone() for tensor in changed]
        with tape:
            work()
        with torch.no_grad():
            for tensor, value in zip(changed, before, strict=True):
                tensor.copy_(value)

        def replay() -> None:
            self.replayed += 1
            tape.replay()

        return replay

    def release(self) -> None:
        self.released += 1


def taped(fail: Callable[[int], None] = lambda _: None, most: int = 96) -> Callable[..., CapturedSteps]:
    """Return a function like `captured_steps` that records tapes."""

    def build(spec, model, optimiser, batches, group, device) -> CapturedSteps:
        def changed() -> list[torch.Tensor]:
            held = captured.held.values() if captured else ()
            state = [*model.parameters(), *model.buffers(), *optimiser.tensors().values()]
            return [*state, *held, *((captured.totals,) if captured else ())]

        captured = None
        grid = ShapeGrid(batches.sampled_shapes(256), most=4)
        captured = CapturedSteps(spec, model, optimiser, group, device, grid, TapeRecorder(changed, fail))
        captured.graphs.most = most
        return captured

    return build


def refuse(_: int) -> None:
    """Fail as a device that records no graph."""
    raise RuntimeError("operation not permitted when stream is capturing")
