"""How fast is beam search? Ours against a plain cached one in PyTorch, with the same weights.

    python bench/decode.py

One JSON line a search: sentences/s (median and best of the rounds), and its ratio to the plain search, taken in each
round (`ratio`, their median) and of the best rounds (`ratio_of_best`).

The shape is that of a small Transformer (3 + 3 layers, width 256, feed-forward 1024, 4 heads, 8000 subwords); 200
sentences are decoded to 25 subwords with a beam of 4 on 2 threads. Weights are random: no search can stop early. The
plain search is what one writes first: key/value caches that grow by `cat`, hypotheses folded into the batch, one
log-softmax and one top-k over all continuations, `index_select` to reorder; each search runs with the number of
sentences at once that suits it best. In float32 both must find hypotheses of the same score.
"""

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from pipeline.config import DecodingConfig
from pipeline.data.batches import TextBatch
from pipeline.models.build import build_model
from pipeline.models.transformer.model import Transformer
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.search.beam_search import beam_search
from pipeline.symbols import BOS, EOS, PAD
from pipeline.training.machine import prepare

SHAPE = TransformerConfig(architecture="transformer", num_layers=3, d_model=256, d_ff=1024, num_heads=4)
VOCABULARY, SENTENCES, LENGTH, BEAM, ALPHA = 8000, 200, 25, 4, 0.6
CONFIG = DecodingConfig(beam_size=BEAM, length_penalty=ALPHA, max_extra_length=1)
SIZES = (25, 50, 100, 200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    prepare(torch.device("cpu"), args.threads)
    torch.manual_seed(1)
    model = build_model(SHAPE, (VOCABULARY, VOCABULARY)).eval()
    src = torch.randint(EOS + 1, VOCABULARY, (SENTENCES, LENGTH))
    src[:, -1] = EOS
    searches = {"plain fp32": (plain, False), "ours fp32": (ours, False), "ours bf16": (ours, True)}
    check_equal(model, src)
    chosen = {name: fastest_size(model, src, *search) for name, search in searches.items()}
    rates: dict[str, list[float]] = {name: [] for name in searches}
    for _ in range(args.rounds):
        for name, (search, narrow) in searches.items():
            rates[name].append(SENTENCES / seconds(model, src, search, narrow, chosen[name]))
    for name, values in rates.items():
        report = {
            "search": name,
            "sentences_per_second": rounded(statistics.median(values)),
            "best": rounded(max(values)),
        }
        ratios = [own / plain_rate for own, plain_rate in zip(values, rates["plain fp32"], strict=True)]
        report |= {"ratio": rounded(statistics.median(ratios))}
        report |= {"ratio_of_best": rounded(max(values) / max(rates["plain fp32"])), "sentences_at_once": chosen[name]}
        print(json.dumps(report | {"threads": args.threads, "beam": BEAM, "torch": torch.__version__}), flush=True)


def rounded(value: float) -> float:
    return float(f"{value:.3g}")


def parts(src: Tensor, size: int) -> Iterator[TextBatch]:
    for part in src.split(size):
        yield TextBatch(part, part, part)


def seconds(model: Transformer, src: Tensor, search: Callable, narrow: bool, size: int) -> float:
    started = time.perf_counter()
    with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        for batch in parts(src, size):
            search(model, batch)
    return time.perf_counter() - started


def fastest_size(model: Transformer, src: Tensor, search: Callable, narrow: bool) -> int:
    """Sentences at once that this search is fastest with; also its warm-up."""
    return min(SIZES, key=lambda size: seconds(model, src, search, narrow, size))


def check_equal(model: Transformer, src: Tensor) -> None:
    """Both searches find hypotheses of the same score, in float32, on a few sentences."""
    batch = next(parts(src, 16))
    for theirs, found in zip(plain(model, batch), ours(model, batch), strict=True):
        if not math.isclose(theirs, found, rel_tol=1e-4):
            raise SystemExit(f"the searches differ: plain finds {theirs:.6f}, ours {found:.6f}")


def ours(model: Transformer, batch: TextBatch) -> list[float]:
    return [found[0].score for found in beam_search(model, batch, CONFIG)]


@torch.inference_mode()
def plain(model: Transformer, batch: TextBatch) -> list[float]:
    """Scores of the best hypotheses (B,). Finished ones are kept aside; all sentences run to the last position."""
    sentences = len(batch.src)
    encoded = model.encode(batch.src, None)
    cross = [
        tuple(side.repeat_interleave(BEAM, dim=0) for side in layer.cross_attention.keys_values(encoded))
        for layer in model.decoder
    ]
    past: list[tuple[Tensor, Tensor] | None] = [None] * len(model.decoder)
    tokens = torch.full((sentences * BEAM,), BOS)
    log_probs = torch.full((sentences, BEAM), -torch.inf)
    log_probs[:, 0] = 0.0
    best = torch.full((sentences,), -torch.inf)
    first_row = torch.arange(sentences).unsqueeze(1) * BEAM
    for position in range(LENGTH + 1):
        features = plain_step(model, tokens, position, past, cross)
        candidates = F.linear(features, model.output_weight).log_softmax(-1)
        candidates[:, [PAD, BOS]] = -torch.inf
        if position == LENGTH:
            candidates[:, :EOS] = candidates[:, EOS + 1 :] = -torch.inf
        candidates = (candidates + log_probs.view(-1, 1)).view(sentences, BEAM * VOCABULARY)
        values, index = candidates.topk(2 * BEAM, dim=1)
        ends = index % VOCABULARY == EOS
        ended = values[:, :BEAM].masked_fill(~ends[:, :BEAM], -torch.inf).amax(1) / ((6 + position) / 6) ** ALPHA
        best = torch.maximum(best, ended)
        log_probs, kept = values.masked_fill(ends, -torch.inf).topk(BEAM, dim=1)
        index = index.gather(1, kept)
        tokens = (index % VOCABULARY).flatten()
        rows = (first_row + index // VOCABULARY).flatten()
        past = [tuple(side.index_select(0, rows) for side in layer) for layer in past]
    return best.tolist()


def plain_step(model: Transformer, tokens: Tensor, position: int, past: list, cross: list) -> Tensor:
    """tokens (B * K,) -> features (B * K, D); `past` grows in place."""
    heads = SHAPE.num_heads
    x = model.tgt_embedding(tokens) * SHAPE.d_model**0.5 + model.tgt_positions(position, position + 1)
    for number, layer in enumerate(model.decoder):
        queries, *new = (part.unflatten(-1, (heads, 1, -1)) for part in layer.self_attention.qkv(x).chunk(3, dim=-1))
        if past[number] is not None:
            new = [torch.cat(pair, dim=2) for pair in zip(past[number], new, strict=True)]
        past[number] = tuple(new)
        context = F.scaled_dot_product_attention(queries, *new).flatten(1)
        x = layer.self_norm.norm(x + layer.self_attention.mix.output(context))
        queries = layer.cross_attention.query(x).unflatten(-1, (heads, 1, -1))
        context = F.scaled_dot_product_attention(queries, *cross[number]).flatten(1)
        x = layer.cross_norm.norm(x + layer.cross_attention.mix.output(context))
        inner = layer.feed_forward.inner(x).relu()
        x = layer.feed_forward_norm.norm(x + layer.feed_forward.outer(inner))
    return x


if __name__ == "__main__":
    main()
