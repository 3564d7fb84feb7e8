"""Work that is recorded once as a CUDA graph and then replayed, the most recently used of it kept."""

import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, Protocol, TypeVar

import torch

from pipeline.training.guards import is_out_of_memory

log = logging.getLogger(__name__)
MOST_GRAPHS = 96
"""Graphs kept: each takes some megabytes of a GPU besides the memory pool that all share."""

Replay = Callable[[], None]
Kept = TypeVar("Kept")


class Recorder(Protocol):
    """Records what work asks of a device, without doing it."""

    def record(self, work: Callable[[], None]) -> Replay:
        """Return what does the work, again and again, on the same memory.

        Raises:
            RuntimeError: The work can't be recorded. It may be done as usual all the same.
        """
        ...

    def release(self) -> None:
        """Give back the memory of graphs that are gone."""
        ...


class CudaRecorder:
    """Records CUDA graphs, all of which compute in one memory pool: only one runs at a time."""

    def __init__(self, device: torch.device):
        self.device = device
        self.pool, self.stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream(device)

    def record(self, work: Callable[[], None]) -> Replay:
        graph = torch.cuda.CUDAGraph()
        self.release()
        with self.beside():
            # Other threads may pin memory meanwhile, as the one that composes batches does.
            graph.capture_begin(pool=self.pool, capture_error_mode="thread_local")
            try:
                work()
            except BaseException:
                self.abandon(graph)
                raise
            try:
                graph.capture_end()
            except RuntimeError:
                self.recover()
                raise
        return graph.replay

    def release(self) -> None:
        torch.cuda.synchronize(self.device)
        torch.cuda.empty_cache()

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        """Work on the recorder's own stream, which waits for the current one, as that does for it afterwards."""
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(current)
        try:
            with torch.cuda.stream(self.stream):
                yield
        finally:
            current.wait_stream(self.stream)

    def abandon(self, graph: torch.cuda.CUDAGraph) -> None:
        """End a recording that failed."""
        try:
            graph.capture_end()
        except RuntimeError:
            self.recover()

    def recover(self) -> None:
        """Undo what a recording that CUDA itself broke off leaves behind in torch.

        The allocator goes on to serve the pool, and the random number generator refuses to draw. Later recordings get
        a pool and a stream of their own.
        """
        index = self.device.index or 0
        with contextlib.suppress(RuntimeError):
            torch._C._cuda_endAllocateToPool(index, self.pool)
        generator = torch.cuda.default_generators[index]
        fresh = torch.Generator(self.device)
        fresh.manual_seed(generator.initial_seed())
        generator.graphsafe_set_state(fresh.graphsafe_get_state())
        self.pool, self.stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream(self.device)


class GraphCache(Generic[Kept]):
    """Recorded work by key. The least recently used is dropped when there is too much, all when memory is short."""

    def __init__(self, recorder: Recorder, most: int = MOST_GRAPHS):
        self.recorder, self.most = recorder, most
        self.graphs: OrderedDict[Hashable, Kept] = OrderedDict()
        self.refused: set[Hashable] = set()
        """Keys of work for whose graph there is no memory."""
        self.failure: str | None = None
        """Why nothing is recorded any more."""

    def get(self, key: Hashable, record: Callable[[], Kept]) -> Kept | None:
        """Return the graph of `key`, recorded by `record` if it is new; None if it can't be recorded."""
        if self.failure or key in self.refused:
            return None
        found = self.graphs.pop(key, None) or self._recorded(key, record)
        if found is not None:
            self.graphs[key] = found  # the most recently used is the last
            if len(self.graphs) > self.most:
                self.graphs.popitem(last=False)
        return found

    def clear(self) -> None:
        """Drop all graphs and their memory."""
        self.graphs.clear()
        self.recorder.release()

    def _recorded(self, key: Hashable, record: Callable[[], Kept]) -> Kept | None:
        try:
            return record()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                self.failure = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                log.warning("steps can't be captured as CUDA graphs, training goes on eagerly: %s", self.failure)
                return None
        log.info("no memory for another CUDA graph: %d graphs are dropped", len(self.graphs))
        self.clear()
        try:
            return record()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        log.warning("no memory for the CUDA graph of a batch of shape %s, it is trained on eagerly", key)
        self.refused.add(key)
        self.recorder.release()
        return None
