"""CUDA graphs: the few shapes that batches are padded to, recording, and a cache of the most recently used graphs.

The shapes come from a sample of the run's own batches: the two shapes whose union adds least padding are merged until
few are left. They depend on the corpus and the settings alone, so a resumed run pads as before.
"""

import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar
from weakref import WeakSet

import numpy as np
import torch

from pipeline.core.errors import count_of
from pipeline.training.guards import is_out_of_memory

log = logging.getLogger(__name__)
Shape = tuple[int, int, int]
"""Sequences, source positions, target positions."""

MOST_SHAPES = 48
FINENESS = 16
"""Steps between a length and its double, to which shapes are rounded up before they are merged."""


class ShapeGrid:
    """Grid of no more than `most` shapes that cover `shapes`.

    Attributes:
        shapes: Sequences, source and target positions of each shape, (shapes, 3).
    """

    def __init__(self, shapes: Iterable[Shape], most: int = MOST_SHAPES):
        exact = np.unique(np.array([*shapes], dtype=np.int64).reshape(-1, 3), axis=0, return_counts=True)
        self.shapes = exact[0] if len(exact[0]) <= most else merged(*rounded_up(*exact), most)

    def fit(self, shape: Shape) -> Shape:
        """Return the covering shape with the fewest positions; if none covers `shape`, `shape` rounded up."""
        holds = self.shapes[(self.shapes >= shape).all(axis=1)]
        found = holds[np.argmin(positions(holds))] if len(holds) else round_up(np.array(shape))
        rows, source, target = found.tolist()
        return rows, source, target


def positions(shapes: np.ndarray) -> np.ndarray:
    """Count the positions of both sides: (…, 3) -> (…)."""
    return shapes[..., 0] * (shapes[..., 1] + shapes[..., 2])


def round_up(sizes: np.ndarray) -> np.ndarray:
    """Round sizes up to multiples of at most a FINENESS-th of the size."""
    step = 2 ** np.maximum(0, np.floor(np.log2(np.maximum(sizes, 1) / FINENESS))).astype(np.int64)
    return -(-sizes // step) * step


def rounded_up(shapes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Round `shapes` (N, 3) up, and add the `counts` (N,) of those that become equal."""
    found, place = np.unique(round_up(shapes), axis=0, return_inverse=True)
    return found, np.bincount(place.ravel(), weights=counts)


def merged(shapes: np.ndarray, counts: np.ndarray, most: int) -> np.ndarray:
    """Merge `shapes` (N, 3) with `counts` (N,) until at most `most` are left, whose unions add least padding."""
    while len(shapes) > most:
        unions = np.maximum(shapes[:, None], shapes[None])
        cost = positions(shapes) * counts
        added = positions(unions) * (counts[:, None] + counts[None]) - cost[:, None] - cost[None]
        added[np.tril_indices(len(shapes))] = np.inf
        first, other = np.unravel_index(np.argmin(added), added.shape)
        shapes[first], counts[first] = unions[first, other], counts[first] + counts[other]
        shapes, counts = np.delete(shapes, other, 0), np.delete(counts, other)
    return shapes


MOST_GRAPHS = 96
"""Maximum number of graphs in the cache; each takes some megabytes besides the memory pool that all share."""

Replay = Callable[[], None]
Graph = TypeVar("Graph")


def summary(error: Exception) -> str:
    """Return class and first line of an error."""
    first, *_ = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {first}"


class Recorder(Protocol):
    """Recorder of the operations that a function starts on a device, without running them."""

    def record(self, work: Callable[[], None]) -> Replay:
        """Return a function that replays the work on the same memory.

        Raises:
            RuntimeError: The work cannot be recorded. It can still run eagerly.
        """
        ...

    def release(self) -> None:
        """Free the memory of dropped graphs."""
        ...


class CudaRecorder:
    """Recorder of CUDA graphs that share one memory pool: only one runs at a time."""

    def __init__(self, device: torch.device):
        self.device = device
        self.pool, self.stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream(device)
        self.recorded: WeakSet[torch.cuda.CUDAGraph] = WeakSet()
        """Graphs that are still in use."""

    def record(self, work: Callable[[], None]) -> Replay:
        """Capture `work` as a CUDA graph; see `Recorder`."""
        graph = torch.cuda.CUDAGraph()
        self.release()
        if not self.recorded:  # torch refuses a pool that all graphs have left while cuBLAS has its workspace there
            self.pool = torch.cuda.graph_pool_handle()
        with self.own_stream():
            # Other threads, such as that of the prefetcher, may pin memory at the same time.
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
        self.recorded.add(graph)
        return graph.replay

    def release(self) -> None:
        """Return cached memory to the device."""
        torch.cuda.synchronize(self.device)
        torch.cuda.empty_cache()

    @contextlib.contextmanager
    def own_stream(self) -> Iterator[None]:
        """Run the block on the recorder's own stream, ordered after and before work on the current one."""
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(current)
        try:
            with torch.cuda.stream(self.stream):
                yield
        finally:
            current.wait_stream(self.stream)

    def abandon(self, graph: torch.cuda.CUDAGraph) -> None:
        """End a capture that failed."""
        try:
            graph.capture_end()
        except RuntimeError:
            self.recover()

    def recover(self) -> None:
        """Reset torch after CUDA itself aborted a capture.

        The allocator would keep serving the pool, and the random number generator would refuse to draw. Later captures
        get a new pool and stream.
        """
        index = self.device.index or 0
        with contextlib.suppress(RuntimeError):  # the aborted capture may have ended it
            torch._C._cuda_endAllocateToPool(index, self.pool)
        generator = torch.cuda.default_generators[index]
        fresh = torch.Generator(self.device)
        fresh.manual_seed(generator.initial_seed())
        generator.graphsafe_set_state(fresh.graphsafe_get_state())
        self.pool, self.stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream(self.device)


class GraphCache(Generic[Graph]):
    """Recorded graphs by key; drops the least recently used when full, and all when memory is short."""

    def __init__(self, recorder: Recorder, most: int = MOST_GRAPHS):
        self.recorder, self.most = recorder, most
        self.graphs: OrderedDict[Hashable, Graph] = OrderedDict()
        self.refused: set[Hashable] = set()
        """Keys whose graph does not fit into memory."""
        self.failure: str | None = None
        """Error after which nothing is recorded any more."""

    def get(self, key: Hashable, record: Callable[[], Graph]) -> Graph | None:
        """Return the graph of `key`, recorded by `record` if it is new; None if it cannot be recorded.

        If the graph of `key` did not fit into memory, all others are dropped, because eager work cannot use theirs.
        """
        if key in self.refused and self.graphs:
            self.clear()
        if self.failure or key in self.refused:
            return None
        found = self.graphs.pop(key, None) or self._recorded(key, record)
        if found is not None:
            self.graphs[key] = found  # the most recently used is the last
            if len(self.graphs) > self.most:
                self.graphs.popitem(last=False)
        return found

    def clear(self) -> None:
        """Drop all graphs and free their memory."""
        self.graphs.clear()
        self.recorder.release()

    def _recorded(self, key: Hashable, record: Callable[[], Graph]) -> Graph | None:
        try:
            return record()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                self._fail(error)
                return None
        log.info("no memory for another CUDA graph: dropping %s", count_of(len(self.graphs), "graph"))
        self.clear()
        try:
            return record()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                self._fail(error)
                return None
        log.warning("no memory for the CUDA graph of a batch of shape %s, it runs eagerly", key)
        self.refused.add(key)
        self.recorder.release()
        return None

    def _fail(self, error: RuntimeError) -> None:
        """Stop recording, and leave the memory to eager work."""
        self.failure = summary(error)
        log.warning("cannot capture steps as CUDA graphs, they run eagerly: %s", self.failure)
        self.clear()
