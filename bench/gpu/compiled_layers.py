"""Transformer layers compiled by torch, for training benchmarks: one kernel instead of several between two matmuls.

Dropout, residual connection and layer normalisation become one kernel each way, and so do bias, ReLU and dropout. The
same compiled layer serves all shapes.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from pipeline.data.batches.corpus_batches import AnyBatch
from pipeline.models.transformer.layers import Layer
from pipeline.training.captured_steps import CapturedSteps


class CompiledLayers:
    """The Transformer layers of a model, compiled when they are first used."""

    def __init__(self, model: nn.Module):
        # torch's compiler takes seconds to import, and only who compiles needs it.
        from torch._inductor import config

        # No choice of kernels by timing: sums keep their order from one process to the next.
        config.deterministic = True
        self.layers = [module for module in model.modules() if isinstance(module, Layer)]
        for layer in self.layers:
            layer.compile(dynamic=True)
        self.calls = [layer._compiled_call_impl for layer in self.layers]
        self._call([None] * len(self.layers))

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Call the compiled layers within."""
        self._call(self.calls)
        try:
            yield
        finally:
            self._call([None] * len(self.layers))

    def _call(self, calls: list[Any]) -> None:
        for layer, call in zip(self.layers, calls, strict=True):
            layer._compiled_call_impl = call


class CompiledSteps(CapturedSteps):
    """Captured steps of a model whose layers are compiled."""

    def __init__(self, *args):
        super().__init__(*args)
        self.layers = CompiledLayers(self.model)

    def _backward(self, batch: AnyBatch) -> Tensor:
        with self.layers.used():
            return super()._backward(batch)
