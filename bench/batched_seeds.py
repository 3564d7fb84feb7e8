"""Would it be faster to train all seeds of a system as one batched model? Plain PyTorch, at the shape of scale `demo`.

    python bench/batched_seeds.py
    python bench/batched_seeds.py --seeds 1 3 8 --rounds 20

Prints one JSON line per number of seeds: CPU milliseconds of a training step of all seeds on one thread, and per seed.
Weights of all seeds are stacked, so each matmul of torch's Transformer becomes a batched one (`torch.func`). Each seed
has its own dropout. Batched matmuls use MKL, because torch has no others. The last lines are the same Transformer and
ours with a single seed.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from train_step import ADAM, SHAPES, SMOOTHING, Plain, Shape, Step, measure, our_step, plain

from pipeline.data.batches.parallel_batches import TextBatch
from pipeline.models.settings import PAD
from pipeline.training.machine import prepare


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 3, 5])
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    prepare(torch.device("cpu"), 1)
    shape = SHAPES["demo"]
    systems = {f"stacked {seeds}": stacked(shape, seeds) for seeds in args.seeds}
    systems["plain 1"] = plain(shape, narrow=False)
    systems["ours 1"] = our_step(shape, shape.models()["transformer"], narrow=False)
    for name, times in measure(shape, systems, args.rounds).items():
        least, seeds = 1000 * min(times.cpu), int(name.split()[1])
        print(json.dumps({"system": name, "update_ms": round(least, 2), "of_one_seed_ms": round(least / seeds, 2)}))


def stacked(shape: Shape, seeds: int) -> Step:
    """Return the weights of several models with different initial values."""
    models = [Plain(shape) for _ in range(seeds)]
    own, buffers = stack_module_state(models)
    weights = {name: weight.detach().requires_grad_() for name, weight in own.items()}
    optimiser = torch.optim.Adam(weights.values(), **ADAM, fused=True)
    each: Callable[..., Tensor] = vmap(
        partial(loss, models[0]), in_dims=(0, 0, None, None, None), randomness="different"
    )

    def step(batch: TextBatch) -> float:
        total = each(weights, buffers, batch.src, batch.tgt_in, batch.tgt_out).sum()
        total.backward()
        optimiser.step()
        optimiser.zero_grad()
        return total.item()

    return step


def loss(model: nn.Module, weights: dict, buffers: dict, src: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Tensor:
    logits = functional_call(model, (weights, buffers), (src, tgt_in))
    return nn.functional.cross_entropy(
        logits.flatten(0, 1), tgt_out.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
    )


if __name__ == "__main__":
    main()
