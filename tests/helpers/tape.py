"""A stand-in for CUDA graphs: operators recorded on their way to a CPU, and done again on the same memory."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pipeline.training.captured_steps import CapturedSteps
from pipeline.training.graph_cache import ShapeGrid

WAITING = ("_local_scalar_dense", "nonzero", "is_nonzero", "equal")
"""Operators in which the host reads what a device computed: no graph can hold them."""


def tensors(tree) -> list[torch.Tensor]:
    """Return the tensors of a tree of lists, tuples and dictionaries."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    leaves = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else ()
    return [tensor for leaf in leaves for tensor in tensors(leaf)]


def aliases(tree):
    """Views of all tensors of a tree, whose shapes an operator such as `unsqueeze_` can't change for others."""
    if isinstance(tree, torch.Tensor):
        return tree.detach()
    if isinstance(tree, dict):
        return {key: aliases(leaf) for key, leaf in tree.items()}
    return type(tree)(map(aliases, tree)) if isinstance(tree, list | tuple) else tree


class Step(NamedTuple):
    """An operator with its arguments and the memory that holds its results."""

    function: torch._ops.OpOverload
    args: tuple
    kwargs: dict
    results: list[tuple[int, torch.Tensor]]
    """New tensors by their number among all results; the others lie in memory of the arguments."""

    @torch.no_grad()
    def run(self) -> None:
        """Do the operator again; what it returned is overwritten, as the memory of a graph is."""
        found = tensors(self.function(*self.args, **self.kwargs))
        for number, old in self.results:
            old.copy_(found[number])


class Tape(TorchDispatchMode):
    """Runs operators and remembers them with their arguments and results, but not views, which compute nothing."""

    def __init__(self):
        super().__init__()
        self.steps: list[Step] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, or torch imports its compiler, which takes a second, only to keep it away from here."""
        return False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function.overloadpacket.__name__ in WAITING:
            raise RuntimeError(f"{function} can't be recorded")
        given = aliases((args, kwargs))
        out = function(*args, **kwargs)
        held = {tensor.untyped_storage()._cdata for tensor in tensors(given)}
        results = [
            (number, tensor.detach())
            for number, tensor in enumerate(tensors(out))
            if tensor.untyped_storage()._cdata not in held
        ]
        if results or not (function.is_view or torch.Tag.inplace_view in function.tags):
            self.steps.append(Step(function, *given, results))
        return out

    def replay(self) -> None:
        for step in self.steps:
            step.run()


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
