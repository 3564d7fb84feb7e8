"""Measure training and decoding speed of this machine for models of the papers' shapes."""

import logging
import statistics
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import TypeVar

import torch

from pipeline.config import DecodingConfig, RunSpec
from pipeline.core.errors import count_of
from pipeline.data.batches.corpus_batches import AnyBatch, batch_size, input_kind
from pipeline.data.batches.fixed_size_batches import TextOnlyBatch
from pipeline.data.batches.parallel_batches import TextBatch
from pipeline.data.batches.speech_batches import SpeechBatch
from pipeline.data.sequence_store import FEATURES
from pipeline.decoding.trained_model import build_decoder
from pipeline.models.seq2seq import Seq2Seq
from pipeline.models.settings import BACKWARD, BOS, EOS, PAD
from pipeline.papers.project import Project, ProjectOptions
from pipeline.planning.corpus_size import Corpus
from pipeline.planning.run_forecast import (
    MeasuredSpeed,
    Point,
    RunForecast,
    family_of,
    flops_of,
    forecast_run,
    shape_of,
)
from pipeline.probes.layer_cost import clock
from pipeline.training import guards, machine
from pipeline.training.captured_steps import CapturedSteps
from pipeline.training.distributed import Group
from pipeline.training.graph_cache import CudaRecorder, Recorder, ShapeGrid
from pipeline.training.optimiser import Optimiser, Schedule
from pipeline.training.run_model import build_run_model
from pipeline.workflow.graph import Graph, runs_in

log = logging.getLogger(__name__)
Item = TypeVar("Item")

PROBE_SENTENCES = 2
LONGEST_S = 2.0  # longest measured micro-batch; a longer one is cut
REPEATS = 3
DECODING = DecodingConfig(beam_size=4, max_extra_length=1)


def calibrate(
    *,
    device: machine.DeviceChoice = "auto",
    threads: int | None = None,
    seconds: float = 60,
    out: Path,
    project: ProjectOptions,
) -> None:
    """Measure how fast this machine trains and decodes.

        python -m pipeline calibrate --set scale=demo --threads 1 --out work/demo/calibration.json

    reads   only the sizes of the corpora
    writes  <out>, for `plan`: FLOPs and seconds of a training step and of a beam search, for each shape measured

    The widest and the narrowest shapes of each family of models come first. `plan` interpolates the shapes that are not
    reached in time. Run it on the machine that will train, with the same number of threads. Other load on a CPU does
    not matter, because only the CPU time used is counted. On a GPU, steps and searches replay CUDA graphs, as trainings
    and decodings do.

    Args:
        device: Device to measure. `auto` takes a GPU if there is one.
        threads: CPU threads; by default all cores.
        seconds: Seconds after which no further shape is begun.
        out: JSON file to write.
        project: The project and its settings.
    """
    loaded = project.load()
    chosen, used = machine.choose_device(device, 0), machine.choose_threads(threads)
    machine.prepare(chosen, used, strict=False)
    began = clock(chosen)
    points: list[Point] = []
    for forecast, corpus in interleaved(shapes(loaded)):
        if points and clock(chosen) - began > seconds:
            break
        points.append(measure(forecast, corpus, chosen))
        log.info(
            "%s of %s: %.3f s per step, %.1f GFLOP/s; decoding %.1f GFLOP/s",
            *(forecast.spec.system, forecast.spec.paper, points[-1].update_s),
            *(points[-1].training_rate / 1e9, points[-1].decoding_rate / 1e9),
        )
    description = machine.describe_machine(chosen, used, 1)
    MeasuredSpeed(device=description.device, threads=used, points=tuple(points)).write(out)


def shapes(project: Project) -> list[list[tuple[RunForecast, Corpus]]]:
    """Return a run of each distinct shape, by family, in order of FLOPs per step."""
    found: dict[str, dict[str, tuple[RunForecast, Corpus]]] = {}
    graph = Graph(project)
    for run_id in runs_in(graph.closure(graph.reports(project.papers))):
        dataset = project.dataset_records[run_id.dataset]
        corpus = Corpus.of(dataset, project.layout.corpus(run_id.dataset))
        spec = project.run_spec(run_id)
        by_shape = found.setdefault(family_of(spec), {})
        if (shape := shape_of(spec, (corpus.src_vocab, corpus.tgt_vocab))) not in by_shape:
            by_shape[shape] = forecast_run(spec, corpus), corpus
    return [sorted(by_shape.values(), key=lambda entry: entry[0].step_flops) for by_shape in found.values()]


def interleaved(groups: Iterable[list[Item]]) -> Iterator[Item]:
    """Yield items of all groups in turn, each group in the order of `bisected`."""
    for item in chain.from_iterable(zip_longest(*map(bisected, groups))):
        if item is not None:
            yield item


def bisected(items: list[Item]) -> list[Item]:
    """Return items in the order first, last, middle, middles of the halves, and so on."""
    order = dict.fromkeys((0, len(items) - 1))
    spans = [(0, len(items) - 1)]
    while spans:
        low, high = spans.pop(0)
        middle = (low + high) // 2
        order[middle] = None
        if high - low > 1:
            spans += [(low, middle), (middle, high)]
    return [items[index] for index in order]


def measure(forecast: RunForecast, corpus: Corpus, device: torch.device) -> Point:
    """Time a training step and a decoding of one shape, with random weights and sequences.

    Args:
        forecast: Run of this shape, with the lengths of its mean step.
        corpus: Vocabulary sizes and kind of its corpus.
        device: Device to measure.

    Returns:
        FLOPs and seconds of both.
    """
    spec, step = forecast.spec, forecast.step
    torch.manual_seed(1)
    model = build_run_model(spec, (corpus.src_vocab, corpus.tgt_vocab)).to(device).train()
    src_length, tgt_length = max(1, round(step.src_length)), round(step.tgt_length)

    def sequences(count: int) -> AnyBatch:
        return random_batch(spec, corpus, count, src_length, tgt_length)

    step_s = step_seconds(model, forecast, corpus, sequences, device)
    decoding_flops, decoding_s = decoding_seconds(model.eval(), forecast, corpus, sequences, device)
    return Point(
        shape=forecast.shape,
        family=family_of(spec),
        update_flops=forecast.step_flops,
        update_s=step_s,
        decoding_flops=decoding_flops,
        decoding_s=decoding_s,
    )


def recorder_on(device: torch.device, spec: RunSpec) -> Recorder | None:
    """Return a recorder of CUDA graphs if trainings and searches of `spec` replay them on a `device`."""
    return CudaRecorder(device) if device.type == "cuda" and spec.training.cuda_graphs else None


def step_seconds(
    model: Seq2Seq, forecast: RunForecast, corpus: Corpus, sequences: Callable[[int], AnyBatch], device: torch.device
) -> float:
    """Return the median seconds of a training step, which changes the weights of `model`.

    If memory runs out, micro-batches are halved and the step is measured again, as trainings do.

    Raises:
        OutOfMemory: Memory runs out with a single sequence.
    """
    spec, step, recorder = forecast.spec, forecast.step, recorder_on(device, forecast.spec)
    optimiser = Optimiser(model, Schedule(spec.model, spec.training), spec.training)
    sentences = step.tgt_positions / step.tgt_length

    def backward(batch: AnyBatch) -> None:
        with machine.autocast(device, spec):
            sums = model.loss(batch, spec.training.label_smoothing)
        (sums.loss / sums.tokens).backward()

    def eager(micro_batches: int) -> float:
        probe = sequences(PROBE_SENTENCES).to(device)
        backward(probe)
        probed = timed(lambda: backward(probe), device, 1)
        rows = rows_in_time(sentences / micro_batches, probed, device)
        batch = sequences(rows).to(device)
        backward(batch)
        backward_s = timed(lambda: backward(batch), device, REPEATS) * sentences / rows
        return backward_s + optimiser_seconds(optimiser, lambda: backward(probe), device)

    def replayed(micro_batches: int, recorder: Recorder) -> float:
        batch = sequences(max(1, round(sentences / micro_batches)))
        grid = ShapeGrid([(*batch.src_shape, batch.tgt_out.shape[1])])
        captured = CapturedSteps(spec, model, optimiser, Group(), device, grid, recorder)
        parts = [captured.fitted(batch)] * micro_batches
        work = partial(captured.run, 0, 0, parts, range(micro_batches), micro_batches * batch.num_tokens, ())
        work()  # records the graphs
        return timed(work, device, REPEATS)

    micro_batches = -(-round(max(step.src_positions, step.tgt_positions)) // batch_size(spec, corpus.kind))
    while True:
        try:
            with guards.out_of_memory_explained(guards.out_of_memory_with_one_sequence, spec, 0, "of mean length"):
                return replayed(micro_batches, recorder) if recorder else eager(micro_batches)
        except guards.OutOfMemory:
            if sentences <= micro_batches:
                raise
        tried = count_of(micro_batches, "micro-batch", "micro-batches")
        log.warning("%s: out of memory with %s a step; trying twice as many", spec.name, tried)
        micro_batches *= 2


def rows_in_time(wanted: float, probed: float, device: torch.device) -> int:
    """Return how many of the `wanted` rows take at most `LONGEST_S`, if PROBE_SENTENCES take `probed` seconds.

    On a GPU these are all: there, few rows take as long as many.
    """
    return max(1, round(wanted if device.type == "cuda" else min(wanted, PROBE_SENTENCES * LONGEST_S / probed)))


def optimiser_seconds(optimiser: Optimiser, backward: Callable[[], None], device: torch.device) -> float:
    """Return the median time of an `optimiser` step on a `device` in seconds, without the `backward` before it."""
    seconds = []
    for step in range(REPEATS):
        backward()
        seconds.append(timed(partial(optimiser.step, step), device, 1))
    return statistics.median(seconds)


@torch.no_grad()
def decoding_seconds(
    model: Seq2Seq, forecast: RunForecast, corpus: Corpus, sequences: Callable[[int], AnyBatch], device: torch.device
) -> tuple[float, float]:
    """Return FLOPs and seconds of a beam search over one batch.

    Untrained weights end no sequence before its limit. A language model decodes nothing, so its forward pass is timed.
    """
    step, recorder = forecast.step, recorder_on(device, forecast.spec)
    rows = max(1, DECODING.batch_tokens // max(1, round(step.src_length)))
    search = None if forecast.spec.model.reads == "text" else build_decoder(model, DECODING, recorder=recorder)

    def decode(batch: AnyBatch) -> object:
        with machine.autocast(device, forecast.spec):
            return model.loss(batch, 0.0) if search is None or isinstance(batch, TextOnlyBatch) else search(batch)

    def seconds_of(batch: AnyBatch) -> float:
        if recorder:
            decode(batch)  # records the graphs
        return timed(lambda: decode(batch), device, 1)

    probed = seconds_of(sequences(PROBE_SENTENCES).to(device))
    batch = sequences(rows_in_time(rows, probed, device)).to(device)
    seconds = seconds_of(batch)
    count, src_length = batch.src_shape
    if isinstance(batch, TextOnlyBatch):
        positions = batch.tgt_out.numel()
    else:
        limits = batch.expected_length + 1 + DECODING.max_extra_length
        positions = DECODING.beam_size * count * int(limits.max())
    return flops_of(forecast.spec, corpus, count * src_length, positions, step) / (1 + BACKWARD), seconds


def timed(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Return the median seconds of `repeats` of `work` on a `device`; on a CPU, CPU time per thread, not wall time.

    Under a limit of CPU time (`ulimit -t`) the clock counts ticks, so `work` is done until one passes.
    """
    seconds = []
    for _ in range(repeats):
        began, count, passed = clock(device), 0, 0.0
        while not passed:
            work()
            count, passed = count + 1, clock(device) - began
        seconds.append(passed / count)
    return statistics.median(seconds)


def random_batch(spec: RunSpec, corpus: Corpus, count: int, src_length: int, tgt_length: int) -> AnyBatch:
    """Return random sequences, every second one a position shorter, so that there is padding to mask.

    Args:
        spec: The run.
        corpus: Vocabulary sizes and kind.
        count: Number of sequences.
        src_length: Subwords with EOS, or frames; unused for text without a source.
        tgt_length: Symbols with EOS.
    """
    tgt = symbols(corpus.tgt_vocab, count, tgt_length)
    tgt_in = torch.cat((torch.full((count, 1), BOS), tgt[:, :-1]), 1)
    match input_kind(spec, corpus.kind):
        case "text":
            return TextOnlyBatch(tgt_in, tgt)
        case "speech":
            counts = torch.full((count,), src_length)
            counts[1::2] -= 1
            frames = torch.randn(count, src_length, FEATURES)
            frames[1::2, -1] = 0.0
            return SpeechBatch(frames, counts, tgt_in, tgt)
    return TextBatch(symbols(corpus.src_vocab, count, src_length), tgt_in, tgt)


def symbols(vocab: int, count: int, length: int) -> torch.Tensor:
    """Return random ids below `vocab`, shape (`count`, `length`) with EOS; every second row is one shorter, padded."""
    rows = torch.randint(EOS + 1, vocab, (count, length))
    rows[:, -1] = EOS
    rows[1::2, -1] = PAD
    return rows
