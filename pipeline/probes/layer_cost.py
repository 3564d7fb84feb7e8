"""Sizes of models and times of layers.

Parameter counts are of a paper's systems at the paper's own size, whatever the scale. Layer types are timed over
sequence lengths n and widths d (Attention Is All You Need, Table 1 and section 3.2).
"""

import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pipeline.analysis.cells.facts import SizeCell
from pipeline.core.provenance import provenance
from pipeline.core.records.outputs import TIMED_BESIDE, LayerCosts, LayerTime, ModelSize, PaperSizes
from pipeline.models.architectures import build_model
from pipeline.models.seq2seq import count_parameters_on_meta
from pipeline.models.transformer.multi_head_attention import OutputProjection, SelfAttention, attend
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.papers.project import Project, ProjectOptions
from pipeline.training.machine import DeviceChoice, choose_device, describe_machine, prepare

log = logging.getLogger(__name__)


def write_model_sizes(*, paper: str, out: Path, project: ProjectOptions) -> None:
    """Count the parameters of a paper's systems at the paper's own size.

        python -m pipeline model-sizes --paper weighted --set scale=demo --out work/demo/model_sizes/weighted.json

    Write {sizes: [{system, vocab, parameters}]}, one for each size that a table of the paper shows: the system as the
    paper names it, the rows of its embeddings, its trainable parameters. The models take no memory.

    Args:
        paper: Name of a paper in workflow/papers.
        out: JSON file to write.
        project: The project and its settings.
    """
    sizes = model_sizes(project.load([paper]), paper)
    listed = [ModelSize(system=system, vocab=vocab, parameters=size) for (system, vocab), size in sizes.items()]
    PaperSizes(sizes=listed).write(out)
    log.info("%s: %d sizes", out, len(sizes))


def model_sizes(project: Project, paper: str) -> dict[tuple[str, int], int]:
    """Count the trainable parameters of each system and vocabulary that a table of the paper shows."""
    found: dict[tuple[str, int], int] = {}
    for table, entry in project.papers[paper].tables.items():
        cells = [cell for cell in entry.cells.values() if isinstance(cell, SizeCell)]
        wanted = (cell.sized_model(row) for cell in cells for row in project.printed[paper][table])
        for system, vocab in dict.fromkeys(pair for pair in wanted if pair):
            config: Any = project.full_section(*project.locate(system, paper), "model")
            found[system, vocab] = count_parameters_on_meta(partial(build_model, config, (vocab, vocab)))
    return found


LENGTHS, WIDTHS = (128, 256, 512, 1024), (128, 256, 512, 1024)
"""Sequence lengths n and widths d."""
KERNEL, WINDOW, HEADS = 3, 32, 8
"""Positions that a convolution and restricted self-attention read; heads of the base model."""
LARGEST_BESIDE = 512
"""Largest n and d of the layers `TIMED_BESIDE`: additive attention takes a minute above it."""
REPEATS, SHORTEST_S = 5, 0.02
MATMUL_SIZE = 1024
"""Rows and columns of the matrices whose multiplication is timed."""
Layer = Callable[[Tensor], Tensor]


def time_layers(*, device: DeviceChoice = "auto", out: Path) -> None:
    """Time the layer types of Attention Is All You Need, Table 1.

        python -m pipeline layer-times --out work/demo/layer_times.json

    Write {times: [{layer, n, d, seconds: one per repeat}], matmul_flops_per_s, device, on_processor, threads, kernel,
    window, provenance}. Takes half a minute on one core. It times what the table counts: a forward pass of one
    sequence, without the projections before and after attention.

    Args:
        device: Where to measure. `auto` takes a GPU if there is one.
        out: JSON file to write.
    """
    chosen = choose_device(device, local_rank=0)
    prepare(chosen, threads=1)
    times = measure(chosen, LENGTHS, WIDTHS)
    result = LayerCosts(
        times=times,
        matmul_flops_per_s=matmul_rate(chosen),
        kernel=KERNEL,
        window=WINDOW,
        on_processor=chosen.type == "cpu",
        **dict(describe_machine(chosen, threads=1, processes=1)),
        provenance=provenance(),
    )
    result.write(out)
    log.info("%s: %d times on %s", out, len(times), result.device)


@torch.inference_mode()
def measure(device: torch.device, lengths: tuple[int, ...], widths: tuple[int, ...]) -> list[LayerTime]:
    """Time one forward pass of every layer type at every n and d, several times.

    A repeat goes through all sizes before the next one begins, so that a busy moment of the machine affects all sizes.

    Args:
        device: Where to measure.
        lengths: Sequence lengths n.
        widths: Widths d.

    Returns:
        One record per layer type and size at which it is timed, with the seconds of each repeat.
    """
    found: dict[tuple[str, int, int], list[float]] = {}
    for _ in range(REPEATS):
        for d in widths:
            for name, layer in layers(d, device).items():
                for n in lengths:
                    if name in TIMED_BESIDE and max(n, d) > LARGEST_BESIDE:
                        continue
                    work = partial(layer, torch.randn(1, n, d, device=device))
                    if (name, n, d) not in found:
                        work()  # allocates memory and chooses kernels
                    found.setdefault((name, n, d), []).append(seconds_of(work, device))
    return [LayerTime(layer=name, n=n, d=d, seconds=seconds) for (name, n, d), seconds in found.items()]


def layers(d: int, device: torch.device) -> dict[str, Layer]:
    """Build one layer of width `d` on a `device` of each type of Table 1 and of `TIMED_BESIDE`, on (1, n, d)."""
    recurrent = nn.RNN(d, d, batch_first=True).to(device)
    convolution = nn.Conv1d(d, d, KERNEL, padding=KERNEL // 2).to(device)
    return {
        "self-attention": lambda x: attend(x[None], x[None], x[None], None, False, 0.0)[0],
        "recurrent": lambda x: recurrent(x)[0],
        "convolutional": lambda x: convolution(x.transpose(1, 2)).transpose(1, 2),
        "restricted self-attention": restricted_self_attention,
        "additive attention": additive_attention,
        "attention of one head": multi_head_layer(d, 1, device),
        "attention of eight heads": multi_head_layer(d, HEADS, device),
    }


def multi_head_layer(d: int, heads: int, device: torch.device) -> Layer:
    """Build self-attention of `heads` of width `d` / `heads` on a `device`, with projections (section 3.2.2)."""
    config = TransformerConfig(architecture="transformer", num_layers=1, d_model=d, d_ff=d, num_heads=heads)
    attention = SelfAttention(config, OutputProjection(config)).to(device).eval()
    return lambda x: attention(x, None, False)


def additive_attention(x: Tensor) -> Tensor:
    """Return `x` (1, n, d) attended by a hidden layer in place of dot products: scores sum_k tanh(q_k + k_k).

    Projections and the weights of the sum are left out, as those of dot-product attention are. Queries are taken in
    blocks, because all of them would need n^2 d numbers.
    """
    block = max(1, 2**22 // x[0].numel())
    scores = [torch.tanh(queries.unsqueeze(1) + x).sum(dim=-1) for queries in x[0].split(block)]
    return torch.matmul(torch.cat(scores).softmax(dim=-1), x)


def restricted_self_attention(x: Tensor) -> Tensor:
    """Attend from every position of `x` (1, n, d) to the `WINDOW` positions around it."""
    before, after = WINDOW // 2, WINDOW - WINDOW // 2 - 1
    # shape (n, d, WINDOW), a view without a copy
    around = nn.functional.pad(x[0], (0, 0, before, after)).unfold(0, WINDOW, 1)
    weights = torch.matmul(x[0].unsqueeze(1) * x.shape[-1] ** -0.5, around).softmax(dim=-1)
    return torch.matmul(weights, around.transpose(1, 2)).transpose(0, 1)


def seconds_of(work: Callable[[], Tensor], device: torch.device) -> float:
    """Return the mean seconds of a call of `work` on a `device`, over at least `SHORTEST_S` seconds.

    A first call warms up; if it takes that long by itself, it is the measurement.
    """
    started = clock(device)
    work()
    if (first := clock(device) - started) >= SHORTEST_S:
        return first
    calls, started = 0, clock(device)
    while (passed := clock(device) - started) < SHORTEST_S or not calls:
        work()
        calls += 1
    return passed / calls


def clock(device: torch.device) -> float:
    """Return the seconds on a clock.

    On a CPU it counts the CPU time of this process per thread, so that other processes do not count.
    """
    if device.type == "cpu":
        return time.process_time() / torch.get_num_threads()
    torch.cuda.synchronize(device)
    return time.perf_counter()


@torch.inference_mode()
def matmul_rate(device: torch.device) -> float:
    """Measure the sustained float32 FLOP/s of multiplying two square matrices; a multiply-add has two FLOPs."""
    a, b = torch.randn(2, MATMUL_SIZE, MATMUL_SIZE, device=device)
    return 2 * MATMUL_SIZE**3 / min(seconds_of(lambda: a @ b, device) for _ in range(REPEATS))
