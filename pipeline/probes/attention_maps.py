"""Attention of single heads on a sentence that a rule chooses (Attention Is All You Need, Figures 3 to 5).

Dimensions: B sentences, H heads, S source positions, n positions of one sentence.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from pipeline.core.errors import UserError
from pipeline.core.records.outputs import AttentionMap
from pipeline.data.batches.corpus_batches import EvalBatches
from pipeline.data.batches.parallel_batches import ParallelSplit, TextBatch
from pipeline.data.text.vocabulary import Subwords
from pipeline.decoding.trained_model import TrainedModel
from pipeline.models.settings import EOS

log = logging.getLogger(__name__)

BATCH_TOKENS = 4096
"""Source subwords in a batch."""
SHORTEST, LONGEST = 8, 30
"""Subwords of a sentence that can be chosen."""
LAST = 2
"""Symbols at the end of a sentence that do not count in a choice."""
PRONOUNS = {"▁" + word for word in ("it", "its", "he", "him", "his", "she", "her", "hers", "they", "them", "their")}
PRONOUN_FIRST = 2.0
"""Bonus of a pronoun's score, more than any other word can reach."""
Rule = Literal["distant", "pronoun", "contrast"]


@runtime_checkable
class SelfAttentive(Protocol):
    """A model whose encoder is a stack of self-attentions."""

    @property
    def encoder_layers(self) -> int:
        """Number of encoder layers."""

    def encoder_attention(self, batch, layer: int) -> Tensor:
        """Compute the attention weights of one encoder layer.

        Args:
            batch: Source of B sentences.
            layer: Index of the layer, counted from 0.

        Returns:
            Shape (B, H, S, S).
        """


@dataclass(frozen=True)
class Candidate:
    """Word and heads of a sentence that could be drawn; the highest score wins."""

    score: float
    query: int | None
    heads: list[int]


def write_map(trained: TrainedModel, split: str, rule: Rule, out: Path) -> None:
    """Write the attention map that a rule chooses from a split.

    Write {rule, layer, layers, sentence, tokens, query (a position or null), pronoun (whether it is one), heads,
    weights: heads x n x n, weights_digest}. The layer is the second-to-last of the encoder, as in the paper (5 of 6).
    The rules consider sentences of 8 to 30 subwords:

        distant    the word from which all heads together look farthest: most weight at a third of the sentence or more
        pronoun    the pronoun from which two heads look most sharply at single words before it; any word if the split
                   has no pronoun with words before it
        contrast   the sentence in which two heads differ most, by total variation averaged over positions

    Attention from and to the last two symbols, a full stop and the end of the sentence, does not count in a choice.

    Args:
        trained: The model.
        split: Split to choose from.
        rule: Rule that chooses the sentence.
        out: JSON file to write.

    Raises:
        UserError: The model has no self-attention, or no sentence of the split fits the rule.
    """
    corpus = Path(trained.spec.corpus)
    subwords = Subwords(corpus.parent / "subwords.model")
    batches = EvalBatches[ParallelSplit, TextBatch](ParallelSplit(corpus, split), BATCH_TOKENS)
    found = best_map(trained, batches, subwords, rule, split)
    found.write(out)
    log.info("%s: %s", out, " ".join(found.tokens))


def best_map(
    trained: TrainedModel, batches: EvalBatches[ParallelSplit, TextBatch], subwords: Subwords, rule: Rule, split: str
) -> AttentionMap:
    """Return the attention map of the sentence of a split that fits a rule best.

    Raises:
        UserError: The model has no self-attention, or no sentence of the split fits the rule.
    """
    model = trained.model
    if not isinstance(model, SelfAttentive):
        raise UserError(f"{trained.spec.name}: has no self-attention to draw")
    layer = max(0, model.encoder_layers - 2)
    best: tuple[Candidate, int, list[str], Tensor] | None = None
    for sentence, symbols, maps in sentences(model, layer, trained, batches):
        tokens = [piece(subwords, token) for token in symbols]
        choice = choose(rule, tokens, maps)
        if choice and (best is None or choice.score > best[0].score):
            best = choice, sentence, tokens, maps
    if best is None:
        raise UserError(f"{batches.pairs.name}: no sentence of {SHORTEST} to {LONGEST} subwords fits the rule {rule}")
    choice, sentence, tokens, maps = best
    return AttentionMap(
        rule=rule,
        split=split,
        sentence=sentence,
        tokens=tokens,
        query=choice.query,
        pronoun=choice.query is not None and is_pronoun(tokens[choice.query]),
        layer=layer + 1,
        layers=model.encoder_layers,
        heads=choice.heads,
        weights=maps[choice.heads].tolist(),
        weights_digest=trained.weights_digest,
    )


def sentences(
    model: SelfAttentive, layer: int, trained: TrainedModel, batches: EvalBatches[ParallelSplit, TextBatch]
) -> Iterator[tuple[int, list[int], Tensor]]:
    """Compute the attention maps of all sentences that are neither too short nor too long.

    Args:
        model: The model of `trained`.
        layer: Index of the encoder layer, counted from 0.
        trained: Gives device and precision.
        batches: Sentences of the split.

    Yields:
        Index of a sentence, its n symbols, and the maps of its heads (H, n, n).
    """
    for indices, batch in batches:
        batch = batch.to(trained.device)
        with trained.autocast():
            weights = model.encoder_attention(batch, layer).cpu()
        lengths = batch.src_mask.sum(1).tolist()
        for sentence, row, n, maps in zip(indices.tolist(), batch.src.tolist(), lengths, weights, strict=True):
            if SHORTEST <= n <= LONGEST:
                yield sentence, row[:n], maps[:, :n, :n]


def piece(subwords: Subwords, token: int) -> str:
    """Return the text of a subword."""
    return "</s>" if token == EOS else subwords.model.id_to_piece(token)


def choose(rule: Rule, tokens: list[str], maps: Tensor) -> Candidate | None:
    """Choose word and heads of a sentence of `tokens` from `maps` (H, n, n) by a `rule`; None if it does not fit."""
    inner = maps[:, :-LAST, :-LAST]
    match rule:
        case "distant":
            return farthest(inner)
        case "pronoun":
            return sharpest(tokens, inner)
        case "contrast":
            return most_different(inner)


def farthest(maps: Tensor) -> Candidate:
    """Return the query, with all heads of `maps` (H, n, n), that looks farthest.

    Its score is the mean weight on positions at least a third of the sentence away.
    """
    positions = torch.arange(maps.shape[1])
    far = (positions[:, None] - positions).abs() >= -(-maps.shape[1] // 3)
    scores = (maps * far).sum(-1).mean(0)
    return Candidate(float(scores.max()), int(scores.argmax()), list(range(len(maps))))


def sharpest(tokens: list[str], maps: Tensor) -> Candidate | None:
    """Choose the word, a pronoun if any, whose two sharpest heads of `maps` (H, n, n) see one of `tokens` before."""
    if len(maps) < 2:
        return None
    best = None
    for query in range(2, len(maps[0])):
        peaks, order = maps[:, query, : query - 1].amax(-1).sort(descending=True)
        score = float(peaks[:2].sum()) + PRONOUN_FIRST * is_pronoun(tokens[query])
        if best is None or score > best.score:
            best = Candidate(score, query, order[:2].tolist())
    return best


def is_pronoun(token: str) -> bool:
    """Return whether a subword is a whole pronoun."""
    return token.lower() in PRONOUNS


def most_different(maps: Tensor) -> Candidate | None:
    """Choose two heads of `maps` (H, n, n) of largest total variation, averaged over positions; None for one head."""
    pairs = combinations(range(len(maps)), 2)
    distances = {(i, j): float((maps[i] - maps[j]).abs().sum(-1).mean() / 2) for i, j in pairs}
    if not distances:
        return None
    pair = max(distances, key=distances.__getitem__)
    return Candidate(distances[pair], None, list(pair))
