"""Benchmark beam search: ours, a plain cached one in PyTorch, and CTranslate2's, with the same weights.

    python bench/decode.py
    python bench/decode.py --shape base --sentences 50 --threads 1

Prints one JSON line per search: sentences/s (median and best of the rounds), and the ratio to the plain search.
`ratio` is the median over rounds, `ratio_of_best` compares the best rounds. If CTranslate2 is installed, `ratio_ct2`
is the ratio to its float32 search.

The model is a small Transformer (3 + 3 layers, width 256, feed-forward 1024, 4 heads, 8000 subwords) or the paper's
base model (6 + 6, 512, 2048, 8; 37000). It decodes 200 sentences to 25 subwords with beam 4. Weights are random, so no
search stops early. The plain search is a first implementation: key/value caches that grow by `cat`, hypotheses folded
into the batch, one log-softmax and top-k over all continuations, `index_select` to reorder. Each search uses its best
batch size. In float32 both must find hypotheses with the same score. With one thread, times are CPU time, so other
load on the machine matters little.
"""

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from pipeline.config import DecodingConfig
from pipeline.data.batches.parallel_batches import TextBatch
from pipeline.models.architectures import build_model
from pipeline.models.settings import BOS, EOS, PAD
from pipeline.models.transformer.model import Transformer
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.search.beam_search import beam_search
from pipeline.training.machine import prepare
from pipeline.training.matmul_backend import TORCH_DEFAULT, current_backend, use_backend
from reprise.ctranslate2 import write

SHAPES = {
    "small": (TransformerConfig(architecture="transformer", num_layers=3, d_model=256, d_ff=1024, num_heads=4), 8000),
    "base": (TransformerConfig(architecture="transformer", num_layers=6, d_model=512, d_ff=2048, num_heads=8), 37000),
}
LENGTH, BEAM, ALPHA = 25, 4, 0.6
CONFIG = DecodingConfig(beam_size=BEAM, length_penalty=ALPHA, max_extra_length=1)
SIZES = (25, 50, 100, 200)


Search = Callable[[TextBatch], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if args.sentences < min(SIZES):
        parser.error(f"--sentences: at least {min(SIZES)}, so many are searched at once")
    prepare(torch.device("cpu"), args.threads)
    torch.manual_seed(1)
    shape, vocabulary = SHAPES[args.shape]
    model = build_model(shape, (vocabulary, vocabulary)).eval()
    src = torch.randint(EOS + 1, vocabulary, (args.sentences, LENGTH))
    src[:, -1] = EOS
    check_equal(model, src)
    searches: dict[str, Search] = {"plain fp32": partial(plain, model)}
    searches |= {f"ours {name}": partial(ours, model, narrow=name == "bf16") for name in ("fp32", "bf16")}
    searches |= ctranslate2_searches(model, vocabulary, args.threads)
    sizes = [size for size in SIZES if size <= args.sentences]
    fastest = current_backend()
    chosen: dict[str, int] = {}
    rates: dict[str, list[float]] = {name: [] for name in searches}
    for name, search in searches.items():
        use_backend(TORCH_DEFAULT if name.startswith("plain") else fastest)  # the one that torch takes by itself
        chosen[name] = min(sizes, key=partial(seconds, src, search))  # its warm-up, too
    for _ in range(args.rounds):
        for name, search in searches.items():
            use_backend(TORCH_DEFAULT if name.startswith("plain") else fastest)
            rates[name].append(args.sentences / seconds(src, search, chosen[name]))
    for name, values in rates.items():
        report = {"shape": args.shape, "search": name, "sentences_per_second": rounded(statistics.median(values))}
        report |= {"best": rounded(max(values)), "ratio": ratio(values, rates["plain fp32"])}
        report |= {"ratio_of_best": rounded(max(values) / max(rates["plain fp32"])), "sentences_at_once": chosen[name]}
        if "ct2 fp32" in rates:
            report["ratio_ct2"] = ratio(values, rates["ct2 fp32"])
        print(json.dumps(report | {"threads": args.threads, "beam": BEAM, "torch": torch.__version__}), flush=True)


def ratio(own: list[float], others: list[float]) -> float:
    return rounded(statistics.median(a / b for a, b in zip(own, others, strict=True)))


def rounded(value: float) -> float:
    return float(f"{value:.3g}")


def parts(src: Tensor, size: int) -> Iterator[TextBatch]:
    for part in src.split(size):
        yield TextBatch(part, part, part)


def seconds(src: Tensor, search: Search, size: int) -> float:
    """To decode so many sentences at once."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    started = clock()
    for batch in parts(src, size):
        search(batch)
    return clock() - started


def ctranslate2_searches(model: Transformer, vocabulary: int, threads: int) -> dict[str, Search]:
    """Return searches by CTranslate2 with the same weights, in float32 and int8; none if it is not installed."""
    try:
        import ctranslate2
    except ImportError:
        return {}
    pieces = [f"piece {number}" for number in range(vocabulary)]
    with tempfile.TemporaryDirectory() as folder:
        write(model, pieces, pieces, Path(folder), None)
        found = {}
        for name, kind in {"ct2 fp32": "float32", "ct2 int8": "int8"}.items():
            opened = ctranslate2.Translator(folder, compute_type=kind, intra_threads=threads)
            found[name] = partial(by_ctranslate2, opened, pieces)
    return found


def by_ctranslate2(translator, pieces: list[str], batch: TextBatch) -> None:
    """It adds the end of a sentence itself."""
    sentences = [[pieces[number] for number in row] for row in batch.src[:, :-1].tolist()]
    translator.translate_batch(sentences, beam_size=BEAM, length_penalty=ALPHA, max_decoding_length=LENGTH)


def check_equal(model: Transformer, src: Tensor) -> None:
    """Both searches find hypotheses of the same score, in float32, on a few sentences."""
    batch = next(parts(src, 16))
    for theirs, found in zip(plain(model, batch), ours(model, batch), strict=True):
        if not math.isclose(theirs, found, rel_tol=1e-4):
            raise SystemExit(f"the searches differ: plain finds {theirs:.6f}, ours {found:.6f}")


def ours(model: Transformer, batch: TextBatch, narrow: bool = False) -> list[float]:
    with torch.autocast("cpu", torch.bfloat16, enabled=narrow and not current_backend().widened):
        return [found[0].score for found in beam_search(model, batch, CONFIG)]


@torch.inference_mode()
def plain(model: Transformer, batch: TextBatch) -> list[float]:
    """Scores of the best hypotheses (B,). Finished ones are kept aside; all sentences run to the last position."""
    sentences, vocabulary = len(batch.src), len(model.output_weight)
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
        candidates = (candidates + log_probs.view(-1, 1)).view(sentences, BEAM * vocabulary)
        values, index = candidates.topk(2 * BEAM, dim=1)
        ends = index % vocabulary == EOS
        ended = values[:, :BEAM].masked_fill(~ends[:, :BEAM], -torch.inf).amax(1) / ((6 + position) / 6) ** ALPHA
        best = torch.maximum(best, ended)
        log_probs, kept = values.masked_fill(ends, -torch.inf).topk(BEAM, dim=1)
        index = index.gather(1, kept)
        tokens = (index % vocabulary).flatten()
        rows = (first_row + index // vocabulary).flatten()
        past = [tuple(side.index_select(0, rows) for side in layer) for layer in past]
    return best.tolist()


def plain_step(model: Transformer, tokens: Tensor, position: int, past: list, cross: list) -> Tensor:
    """tokens (B * K,) -> features (B * K, D); `past` grows in place."""
    heads = model.config.num_heads
    x = model.tgt_embedding(tokens) * model.config.d_model**0.5 + model.tgt_positions(position, position + 1)
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
