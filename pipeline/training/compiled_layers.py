"""Layers of a Transformer that torch compiles for training: one kernel in place of many between two matmuls.

Dropout, residual connection and layer normalisation become one kernel each way, as do bias, ReLU and dropout. The same
compiled layer serves all shapes. Evaluation and decoding use the layers as they are written.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import nn

from pipeline.models.transformer.model import Layer


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
