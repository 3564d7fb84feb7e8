"""Beam search whose steps are replayed as CUDA graphs, one for each shape of the live hypotheses.

A graph holds a whole step: model, best continuations, and the reordered cache. It reads and writes tensors at
fixed addresses and of fixed shapes. Numbers of sentences, source positions and cache positions are rounded up to a few
sizes, so that batches share graphs. The host queues each step before it reads the previous one, and so never keeps the
device waiting. Sentences that have ended stay in their rows until half of the rows would do.

Dimensions: R rows, of which some hold the active sentences, K beam size, T positions of the cache.
"""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_structure, tree_unflatten

from pipeline.config import DecodingConfig
from pipeline.data.batches.parallel_batches import TextBatch
from pipeline.data.batches.speech_batches import SpeechBatch
from pipeline.models.kernels.autocast import casts_of
from pipeline.models.layers.positions import cached_indices
from pipeline.models.seq2seq import Seq2Seq, Tree
from pipeline.models.settings import BOS, EOS, PAD
from pipeline.search import interface
from pipeline.search.beam import Beam, EagerBeam, HostCandidates, best_continuations, live_candidates, pack, unpack
from pipeline.search.beam_search import Hypothesis, beam_search
from pipeline.training.graph_cache import GraphCache, Recorder, Replay, summary
from pipeline.training.guards import is_out_of_memory

log = logging.getLogger(__name__)
LEAST_ROWS, LEAST_SOURCE, LEAST_PLACES = 8, 8, 32
BeamState = dict[str, Tree]
"""`source` as `start` returned it, and everything that a step changes: `tokens` (R, K), `log_probs` (R, K), `cache`,
and `left` (R,), the number of symbols that may still be added to each output."""


def rounded_up(size: int, least: int) -> int:
    """Return the next of the sizes 2, 3, 4, 6, 8, 12, 16, … that is at least `size` and `least`."""
    power = 1 << (max(size, least) - 1).bit_length()
    return power // 4 * 3 if power // 4 * 3 >= max(size, least) else power


def at_most(size: int, most: int | None) -> int:
    """Return `size`, or `most` if that is smaller; None is no limit."""
    return size if most is None else min(size, most)


def described(tree: Tree) -> tuple[object, ...]:
    """Return structure, shapes and dtypes of a tree of tensors."""
    return tree_structure(tree), *((leaf.shape, leaf.dtype) for leaf in tree_leaves(tree))


@contextlib.contextmanager
def without_cached_casts(device_type: str) -> Iterator[None]:
    """Let autocast cast weights at each use inside the block.

    A graph would read casts that autocast frees at its end.
    """
    if not torch.is_autocast_enabled(device_type):
        yield
        return
    with torch.autocast(device_type, torch.get_autocast_dtype(device_type), cache_enabled=False):
        yield


@dataclass
class CapturedStep:
    """The graph of a step.

    Attributes:
        replay: Runs the graph.
        out: Its output, from `pack`, shape (R, 7K).
        alive: Tensors that the graph reads; the reference keeps their memory if the model replaces them.
    """

    replay: Replay
    out: Tensor
    alive: list[Tensor]


class CapturedSearch:
    """Beam search whose steps are graphs. It is eager once a graph could not be recorded.

    Args:
        model: In evaluation mode.
        config: Settings of the search.
        recorder: Records the graphs.
        external_lm: Language model whose log-probabilities are added.
    """

    def __init__(
        self,
        model: Seq2Seq,
        config: DecodingConfig,
        recorder: Recorder,
        external_lm: interface.ExternalLM | None = None,
    ):
        self.model, self.config, self.external_lm = model, config, external_lm
        self.beam_size, self.scorer = config.beam_size, interface.scorer_of(model, external_lm)
        self.modules = [model, *([external_lm.model] if external_lm else [])]
        self.graphs = GraphCache[CapturedStep](recorder)
        self.static: WeakValueDictionary[tuple[int, torch.Size, torch.dtype], Tensor] = WeakValueDictionary()
        """Memory of the graphs: tensors by number in the state, shape and dtype. Graphs and beams keep them alive."""
        self.versions: list[int] = []

    def search(self, batch: TextBatch | SpeechBatch, n_best: int = 1) -> list[list[Hypothesis]]:
        """Decode a batch; after any error by graphs, decode it again by eager steps. See `beam_search`.

        Returns:
            For each sentence its `n_best` hypotheses, best first; fewer if the search found fewer.
        """
        if not self.graphs.failure:
            try:
                return beam_search(self.model, batch, self.config, n_best, self.external_lm, self.start)
            except Exception as error:  # the eager search raises it again if graphs are not its cause
                self._log_error(error, batch.src_shape)
        if self.graphs.graphs:
            self.graphs.clear()
        return beam_search(self.model, batch, self.config, n_best, self.external_lm)

    def _log_error(self, error: Exception, shape: tuple[int, int]) -> None:
        """Log why a batch is searched eagerly; after an error other than lack of memory, all later ones are too."""
        if is_out_of_memory(error):
            log.warning("no memory to search a batch of shape %s by CUDA graphs, its search is eager", shape)
            return
        self.graphs.failure = summary(error)
        log.warning("cannot search by CUDA graphs, searches are eager from now on: %s", self.graphs.failure)

    def start(self, batch: TextBatch | SpeechBatch, limits: np.ndarray) -> Beam:
        """Start the beam of a batch; see `BeamStart`.

        Args:
            batch: On its device.
            limits: Largest number of symbols of each output without EOS, shape (B,).

        Returns:
            The beam; an eager one if graphs cannot be recorded.
        """
        if self.graphs.failure:
            return EagerBeam(self.scorer, batch, limits, self.beam_size)
        self._forget_changed_weights()
        rows, source = batch.src_shape
        padded = max(source, at_most(rounded_up(source, LEAST_SOURCE), self.model.max_positions))
        fitted = batch.fitted_to(rounded_up(rows, LEAST_ROWS), padded, batch.tgt_out.shape[1])
        return CapturedBeam(self, fitted, limits)

    def load(self, state: BeamState) -> BeamState:
        """Copy a `state` anywhere on the device into the static memory (…) of the graphs."""
        leaves, structure = tree_flatten(state)
        static = []
        for number, leaf in enumerate(leaves):
            key = number, leaf.shape, leaf.dtype
            place = self.static.get(key)
            if place is None:
                place = self.static[key] = torch.empty_like(leaf, memory_format=torch.contiguous_format)
            static.append(place.copy_(leaf))
        return tree_unflatten(static, structure)

    def run(self, state: BeamState) -> tuple[Tensor, BeamState]:
        """Run a step by its graph, or by the same operators if there is none.

        Args:
            state: In static memory; a graph changes it in place.

        Returns:
            The candidates, from `pack`, shape (R, 7K), which the next step overwrites; and the state after the step.
        """
        captured = self.graphs.get(described(state)[1:], lambda: self._record(state))
        if captured is None:
            return self._step(state)
        captured.replay()
        return captured.out, state

    def _step(self, state: BeamState) -> tuple[Tensor, BeamState]:
        """Extend all hypotheses by one symbol; see `run`."""
        out, changed, cache, parents = self._extend(state)
        return out, state | changed | {"cache": interface.select_hypotheses(cache, parents)}

    def _step_in_place(self, state: BeamState) -> Tensor:
        """Extend all hypotheses by one symbol in static memory.

        Returns:
            The candidates, from `pack`, shape (R, 7K).

        Raises:
            RuntimeError: The step changes the shape, dtype or order of a tensor.
        """
        out, changed, cache, parents = self._extend(state)
        if described(cache) != described(state["cache"]):
            raise RuntimeError(f"a step of {type(self.model).__name__} changes the shapes or dtypes of its cache")
        for name, new in changed.items():
            state[name].copy_(new)
        for static, new in zip(tree_leaves(state["cache"]), tree_leaves(cache), strict=True):
            torch.index_select(new.flatten(0, 1), 0, parents.flatten(), out=static.flatten(0, 1))
        return out

    def _extend(self, state: BeamState) -> tuple[Tensor, dict[str, Tensor], Tree, Tensor]:
        """Score all continuations and choose the best.

        Returns:
            - The candidates, from `pack`, shape (R, 7K).
            - The new values of `tokens`, `log_probs` and `left`.
            - The cache of the hypotheses that were extended.
            - The hypotheses that the new ones continue, as indices into R * K, shape (R, K).
        """
        scores, cache = self.scorer.step(state["tokens"], state["source"], state["cache"])
        scores.index_fill_(-1, cached_indices(scores.device, PAD, BOS), -torch.inf)
        other = torch.arange(scores.shape[-1], device=scores.device) != EOS
        scores.masked_fill_((state["left"] == 0)[:, None, None] & other, -torch.inf)
        candidates = best_continuations(scores, state["log_probs"], 2 * self.beam_size)
        live, live_indices = live_candidates(candidates, self.beam_size)
        first = torch.arange(len(scores), device=scores.device).unsqueeze(1) * self.beam_size
        changed = {"tokens": live.tokens, "log_probs": live.log_probs, "left": state["left"] - 1}
        return pack(candidates, live_indices), changed, cache, first + live.parents

    def _record(self, state: BeamState) -> CapturedStep:
        """Record the graph of a step."""
        found: list[Tensor] = []
        with without_cached_casts(state["tokens"].device.type):
            self._warm_up(state)
            replay = self.graphs.recorder.record(lambda: found.append(self._step_in_place(state)))
        return CapturedStep(replay, found[0], [*tree_leaves(state), *self._tensors(), *casts_of(self._tensors())])

    def _warm_up(self, state: BeamState) -> None:
        """Run a step, which loads kernels, and undo its effect, also if it fails."""
        changed = tree_leaves({name: part for name, part in state.items() if name != "source"})
        before = [leaf.clone() for leaf in changed]
        try:
            self._step_in_place(state)
        finally:
            for leaf, value in zip(changed, before, strict=True):
                leaf.copy_(value)

    def _tensors(self) -> Iterator[Tensor]:
        return chain.from_iterable((*module.parameters(), *module.buffers()) for module in self.modules)

    def _forget_changed_weights(self) -> None:
        """Drop all graphs if a weight changed, because they may read casts of the old ones."""
        versions = [tensor._version for tensor in self._tensors()]
        if versions != self.versions:
            self.graphs.graphs.clear()
            self.versions = versions


class CapturedBeam:
    """Live hypotheses of a batch in static memory, one step ahead of what the host has read; see `Beam`.

    Args:
        search: Runs the steps.
        batch: Source sentences, padded to R rows.
        limits: Largest number of symbols of each output without EOS, shape (B,).
    """

    def __init__(self, search: CapturedSearch, batch: TextBatch | SpeechBatch, limits: np.ndarray):
        self.search, self.last = search, int(limits.max(initial=0))
        self.places = at_most(LEAST_PLACES, search.model.max_positions)
        self.rows, self.launched = np.arange(len(limits)), 0
        """Rows of the active sentences, and number of steps that were started."""
        self.queue: list[tuple[interface.AsyncCopy, np.ndarray]] = []
        """Candidates of the steps that the host has not read, with the rows of the active sentences in them."""
        source, cache = search.scorer.start(batch)
        cache = interface.tree_map(lambda tensor: tensor.expand(-1, search.beam_size, *tensor.shape[2:]), cache)
        total, device = batch.src_shape[0], batch.src_mask.device
        log_probs = torch.zeros(total, search.beam_size, device=device)
        log_probs[:, 1:] = -torch.inf  # one hypothesis in K copies
        left = np.full(total, -1)
        left[: len(limits)] = limits
        self.state = search.load(
            {
                "source": source,
                "tokens": torch.full((total, search.beam_size), BOS, device=device),
                "log_probs": log_probs,
                "left": interface.to_device_async(device, left),
                "cache": search.scorer.fixed_cache(cache, self.places),
            }
        )

    def advance(self) -> HostCandidates:
        """Start the next step, and read the candidates of this one; see `Beam`."""
        while len(self.queue) < 2 and self.launched <= self.last:
            self._launch()
        copy, rows = self.queue.pop(0)
        return unpack(copy.wait()[torch.from_numpy(rows)], self.search.beam_size)

    def keep(self, remaining: np.ndarray) -> None:
        """Ignore the rows of all other sentences; see `Beam`."""
        self.rows = self.rows[remaining]
        self.queue = [(copy, rows[remaining]) for copy, rows in self.queue]

    def _launch(self) -> None:
        self._drop_rows()
        if self.launched == self.places:
            self.places = at_most(2 * self.places, self.search.model.max_positions)
            cache = self.search.scorer.fixed_cache(self.state["cache"], self.places)
            self.state = self.search.load(self.state | {"cache": cache})
        out, self.state = self.search.run(self.state)
        self.queue.append((interface.AsyncCopy(out), self.rows))
        self.launched += 1

    def _drop_rows(self) -> None:
        """Move the active sentences together if half of the rows or fewer hold them."""
        rows = rounded_up(len(self.rows), LEAST_ROWS)
        if rows > len(self.state["left"]) // 2:
            return
        kept = interface.to_device_async(self.state["left"].device, np.resize(self.rows, rows))
        self.state = self.search.load(interface.select_sentences(self.state, kept))
        self.rows = np.arange(len(self.rows))
