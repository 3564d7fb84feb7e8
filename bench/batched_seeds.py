"""Would all seeds of a system be trained faster as one batched model? Plain PyTorch, at the shape of the scale `demo`.

    python bench/batched_seeds.py
    python bench/batched_seeds.py --seeds 1 3 8 --rounds 20

One JSON line a number of seeds: processor milliseconds of an update of them all on one thread, and of one of them.
Their matrices are stacked, and every product of the library's Transformer is a batch of as many (`torch.func`); each
seed has dropout of its own. Products of stacked matrices are MKL's, as torch has no others. Last come the same
Transformer and ours, one seed alone.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from train_step import ADAM, SHAPES, SMOOTHING, Plain, Shape, Step, batches, our_step, plain

from pipeline.data.batches import TextBatch
from pipeline.records.training import Library
from pipeline.symbols import PAD
from pipeline.training.machine import prepare
from pipeline.training.products import installed, multiply_by

WARM_UP = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 3, 5])
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    prepare(torch.device("cpu"), 1)
    library: Library = "onednn" if installed else "mkl"
    shape = SHAPES["demo"]
    systems: dict[str, tuple[int, Step]] = {f"{n} stacked": (n, stacked(shape, n)) for n in args.seeds}
    systems["1 plain"] = (1, plain(shape, narrow=False))
    systems["1 ours"] = (1, our_step(shape, shape.models()["transformer"], narrow=False))
    spent: dict[str, list[float]] = {name: [] for name in systems}
    for batch in batches(shape, WARM_UP + args.rounds):
        for name, (_, step) in systems.items():
            multiply_by("mkl" if name == "1 plain" else library)
            began = time.process_time()
            step(batch)
            spent[name].append(1000 * (time.process_time() - began))
    for name, (seeds, _) in systems.items():
        least = min(spent[name][WARM_UP:])
        print(json.dumps({"system": name, "update_ms": round(least, 2), "of_one_seed_ms": round(least / seeds, 2)}))


def stacked(shape: Shape, seeds: int) -> Step:
    """Of so many models that begin differently."""
    models = [Plain(shape) for _ in range(seeds)]
    own, buffers = stack_module_state(models)
    weights = {name: one.detach().requires_grad_() for name, one in own.items()}
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
