"""CTC prefix beam search with a language model (Hannun et al. 2014), and its joint form with attention.

Prefix search looks for the text y with the largest

    Q(y) = log P_CTC(y | x) + λ log P_LM(y) + β wordcount(y)      (Deep Speech 2, eq. 12; Cold Fusion, eq. 2, without β)

P_CTC sums all paths of one symbol per frame that collapse to y. Each prefix in the beam carries the probability of its
paths that end in a blank and of those that do not, and the state of the language model. The end of the sentence is
scored after the last frame. Prefixes are pruned by Q of the frames read so far. Joint search ranks the texts of the
final beam by CTC and attention together (Watanabe et al. 2017, II-D):

    Q(y) = γ log P_CTC(y | x) + (1 - γ) log P_attention(y | x) + λ log P_LM(y) + β wordcount(y)

Dimensions: B utterances, K prefixes of the beam, S frames, V vocabulary, L longest text, N prefixes to score.
"""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from pipeline.models.ctc.lattice import BLANK
from pipeline.models.joint_recogniser.model import JointRecogniser
from pipeline.models.layers.positions import cached_indices
from pipeline.models.settings import BOS, EOS, PAD, UNK
from pipeline.search.beam_search import Hypothesis
from pipeline.search.interface import ExternalLM, select_hypotheses

NEVER_WRITTEN = [PAD, UNK, BOS, EOS]
NAME_FACTOR = 6364136223846793005
"""The name of a prefix is a polynomial of its symbols modulo 2^64; two in one beam collide with probability 1e-16."""


@dataclass
class Beam:
    """Prefixes of all utterances, in tensors (B, K) unless stated otherwise.

    Unused places have probability 0.
    """

    blank: Tensor
    """Log-probability of the paths that end in a blank."""
    symbol: Tensor
    """Log-probability of the paths that end in the last symbol of the prefix."""
    lm_score: Tensor
    """λ log P_LM + β wordcount."""
    name: Tensor
    """Hash of the prefix."""
    parent: Tensor
    """Name of the prefix without its last symbol."""
    last: Tensor
    """Last symbol; BOS if the prefix is empty."""
    text: Tensor
    """Symbols, PAD behind the end, (B, K, L)."""
    length: Tensor
    """Number of symbols."""
    next_lm_score: Tensor
    """Increment of `lm_score` for each next symbol, (B, K, V)."""
    state: Tensor
    """State of the language model, (B, K, …); (B, K, 0) without one."""

    @property
    def log_probs(self) -> Tensor:
        """Log-probability of each prefix, shape (B, K)."""
        return torch.logaddexp(self.blank, self.symbol)

    def select(self, parents: Tensor) -> "Beam":
        """Return a beam of K' selected prefixes.

        Args:
            parents: Indices into the flattened B * K, shape (B, K').
        """
        return Beam(*(select_hypotheses(getattr(self, field.name), parents) for field in fields(self)))

    def where(self, rows: Tensor, other: "Beam") -> "Beam":
        """Return two beams combined utterance by utterance.

        Args:
            rows: Shape (B,), True where this beam is taken.
            other: Beam of the same shapes, taken for the rest.
        """
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return Beam(*(torch.where(rows.view(-1, *[1] * (ours.dim() - 1)), ours, theirs) for ours, theirs in pairs))


@dataclass(frozen=True)
class TextScores:
    """Scores of prefixes that do not depend on the speech: λ log P_LM + β wordcount.

    Attributes:
        external_lm: Language model and λ, or None.
        word_bonus: β.
        separator: The symbol between words.
    """

    external_lm: ExternalLM | None
    word_bonus: float
    separator: int

    def initial_state(self, rows: int, like: Tensor) -> Tensor:
        """Return the language model's state before the first symbol.

        Args:
            rows: B.
            like: Tensor of any shape; gives dtype and device of the empty state of no language model.

        Returns:
            Shape (B, 1, …); (B, 1, 0) without a language model.
        """
        return self.external_lm.model.initial_cache(rows) if self.external_lm else like.new_zeros(rows, 1, 0)

    def update(self, beam: Beam, new: Tensor) -> None:
        """Set `state` and `next_lm_score` of new prefixes in place.

        Args:
            beam: Prefixes; the states of new ones are those of their parents.
            new: Shape (B, K), True at new prefixes.
        """
        if not (self.external_lm or self.word_bonus):
            return
        if new.is_cuda:  # for all prefixes: indexing by `new` would make the host wait
            found, state = self.next_scores(beam.last.flatten(), beam.state.flatten(0, 1), beam.next_lm_score)
            beam.next_lm_score = torch.where(new.unsqueeze(2), found.view_as(beam.next_lm_score), beam.next_lm_score)
            marked = new.view(*new.shape, *[1] * (beam.state.dim() - 2))
            beam.state = torch.where(marked, state.view_as(beam.state), beam.state)
        elif bool(new.any()):
            found, state = self.next_scores(beam.last[new], beam.state[new], beam.next_lm_score)
            beam.next_lm_score[new], beam.state[new] = found, state

    def next_scores(self, last: Tensor, state: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores (N, V) of each next symbol, and the states (N, …) after `last`.

        Args:
            last: Last symbol of each prefix, shape (N,).
            state: State of the language model before it, shape (N, …).
            like: Shape (…, V); gives dtype, device and vocabulary.
        """
        found = like.new_zeros(len(last), like.shape[-1])
        if self.external_lm:
            features, state = self.external_lm.model.advance(last.unsqueeze(1), state.unsqueeze(1))
            found += self.external_lm.weight * self.external_lm.model.logits(features).squeeze(1).log_softmax(-1)
            state = state.squeeze(1)
        if self.word_bonus:
            bonus = found.new_full(like.shape[-1:], self.word_bonus)
            bonus = bonus.index_fill(0, cached_indices(like.device, *NEVER_WRITTEN, self.separator), 0.0)
            found += bonus * ((last == BOS) | (last == self.separator)).unsqueeze(1)
        return found, state


@torch.no_grad()
def prefix_search(log_probs: Tensor, lengths: Tensor, beam_size: int, scores: TextScores) -> list[Hypothesis]:
    """Find the best text of each utterance by CTC, language model and word bonus.

    Args:
        log_probs: Log-probabilities of the symbols per frame, shape (B, S, V).
        lengths: Frames of each utterance, shape (B,).
        beam_size: K.
        scores: Language model and word bonus.

    Returns:
        One hypothesis per utterance; its `log_prob` is log P_CTC, its `score` Q.
    """
    beam = prefix_beam(log_probs, lengths, beam_size, scores)
    return best_texts(beam, beam.log_probs + beam.lm_score + beam.next_lm_score[..., EOS])


@torch.no_grad()
def joint_search(
    model: JointRecogniser, batch, beam_size: int, ctc_weight: float, scores: TextScores
) -> list[Hypothesis]:
    """Find the best text of each utterance by CTC and attention.

    Args:
        model: In evaluation mode.
        batch: Speech of B utterances.
        beam_size: K.
        ctc_weight: γ, in [0, 1].
        scores: Language model and word bonus.

    Returns:
        One hypothesis per utterance; its `log_prob` is log P_CTC, its `score` Q.
    """
    encoded, real, _ = model.encode_batch(batch)
    beam = prefix_beam(model.log_probs(encoded), real.sum(1), beam_size, scores)
    texts = beam.text[..., : int(beam.length.max())]
    edge = texts.new_full((*texts.shape[:2], 1), PAD)
    tgt_in = torch.cat((edge + (BOS - PAD), texts), dim=-1)
    tgt_out = torch.cat((texts, edge), dim=-1).scatter(2, beam.length.unsqueeze(2), EOS)
    attended = model.text_log_probs(encoded, real, tgt_in, tgt_out)
    acoustic = ctc_weight * beam.log_probs.clamp_min(torch.finfo().min) + (1 - ctc_weight) * attended
    total = acoustic + beam.lm_score + beam.next_lm_score[..., EOS]
    return best_texts(beam, total.masked_fill(beam.log_probs.isinf(), -torch.inf))


def prefix_beam(log_probs: Tensor, lengths: Tensor, beam_size: int, scores: TextScores) -> Beam:
    """Return the beam after the last frame of each utterance.

    Args:
        log_probs: Log-probabilities of the symbols per frame, shape (B, S, V).
        lengths: Frames of each utterance, shape (B,).
        beam_size: K.
        scores: Language model and word bonus.
    """
    beam, counts = initial_beam(log_probs, beam_size, scores), lengths.tolist()
    for frame in range(max(counts)):
        after = extend_by_frame(beam, log_probs[:, frame], scores)
        beam = after if frame < min(counts) else after.where(lengths > frame, beam)
    return beam


def best_texts(beam: Beam, total: Tensor) -> list[Hypothesis]:
    """Return one hypothesis per utterance, with the largest `total` as its score.

    Args:
        beam: Prefixes.
        total: Score of each prefix, shape (B, K).
    """
    rows, best = torch.arange(len(total), device=total.device), total.argmax(1)
    columns = [column[rows, best].tolist() for column in (beam.text, beam.length, beam.log_probs, total)]
    return [Hypothesis(text[:length], log_prob, score) for text, length, log_prob, score in zip(*columns, strict=True)]


def initial_beam(log_probs: Tensor, beam_size: int, scores: TextScores) -> Beam:
    """Return a beam of K places, the empty prefix in the first, the others unused.

    Args:
        log_probs: Shape (B, S, V); gives sizes, dtype and device.
        beam_size: K.
        scores: Language model and word bonus.
    """
    rows, frames, vocabulary = log_probs.shape
    blank = log_probs.new_full((rows, beam_size), -torch.inf)
    blank[:, 0] = 0.0
    names = torch.arange(beam_size, device=log_probs.device).expand(rows, -1).contiguous()
    beam = Beam(
        blank=blank,
        symbol=torch.full_like(blank, -torch.inf),
        lm_score=torch.zeros_like(blank),
        name=-names,
        parent=names - (1 << 62),
        last=torch.full_like(names, BOS),
        text=names.new_full((rows, beam_size, frames), PAD),
        length=torch.zeros_like(names),
        next_lm_score=log_probs.new_zeros(rows, beam_size, vocabulary),
        state=scores.initial_state(rows, log_probs).repeat_interleave(beam_size, dim=1),
    )
    scores.update(beam, names == 0)
    return beam


def extend_by_frame(beam: Beam, log_probs: Tensor, scores: TextScores) -> Beam:
    """Return the K best prefixes after one more frame.

    Args:
        beam: Prefixes before the frame.
        log_probs: Log-probabilities of the symbols at the frame, shape (B, V).
        scores: Language model and word bonus.
    """
    width, vocabulary = beam.blank.shape[1], log_probs.shape[-1]
    repeated = log_probs.gather(1, beam.last)
    stay_blank = beam.log_probs + log_probs[:, BLANK, None]
    stay_symbol = beam.symbol + repeated
    extended = beam.log_probs.unsqueeze(2) + log_probs.unsqueeze(1)
    # A repeated symbol counts as a second one only after a blank.
    extended.scatter_(2, beam.last.unsqueeze(2), (beam.blank + repeated).unsqueeze(2))
    extended.index_fill_(-1, cached_indices(extended.device, *NEVER_WRITTEN), -torch.inf)
    stay_symbol, extended = merge_duplicates(beam, stay_symbol, extended)
    extended_lm_score = beam.lm_score.unsqueeze(2) + beam.next_lm_score
    values = torch.cat((torch.logaddexp(stay_blank, stay_symbol), extended.flatten(1)), dim=1)
    chosen = (values + torch.cat((beam.lm_score, extended_lm_score.flatten(1)), dim=1)).topk(width, dim=1).indices
    stays, extension = chosen < width, (chosen - width).clamp_min(0)
    source = torch.where(stays, chosen, extension // vocabulary)
    after = beam.select(torch.arange(len(chosen), device=chosen.device).unsqueeze(1) * width + source)
    symbol = extension % vocabulary
    mass, lm_score = extended.flatten(1).gather(1, extension), extended_lm_score.flatten(1).gather(1, extension)
    after.blank = torch.where(stays, stay_blank.gather(1, source), -torch.inf)
    after.symbol = torch.where(stays, stay_symbol.gather(1, source), mass)
    after.lm_score = torch.where(stays, after.lm_score, lm_score)
    after.parent = torch.where(stays, after.parent, after.name)
    after.name = torch.where(stays, after.name, after.name * NAME_FACTOR + symbol)
    after.last = torch.where(stays, after.last, symbol)
    place = after.length.clamp_max(after.text.shape[2] - 1).unsqueeze(2)
    written = torch.where(stays, after.text.gather(2, place).squeeze(2), symbol)
    after.text.scatter_(2, place, written.unsqueeze(2))
    after.length = after.length + ~stays
    scores.update(after, ~stays & after.symbol.isfinite())
    return after


def merge_duplicates(beam: Beam, stay_symbol: Tensor, extended: Tensor) -> tuple[Tensor, Tensor]:
    """Move the probability of an extension to a prefix that the beam holds already.

    Args:
        beam: Prefixes before the frame.
        stay_symbol: Log-probability of staying in the last symbol, shape (B, K).
        extended: Log-probability of each extension, shape (B, K, V).

    Returns:
        Both log-probabilities after the move, shapes (B, K) and (B, K, V).
    """
    last = beam.last.unsqueeze(1).expand(-1, beam.last.shape[1], -1)
    child = beam.name.unsqueeze(2) == beam.parent.unsqueeze(1)
    moved = extended.gather(2, last).masked_fill(~child, -torch.inf).logsumexp(1)
    gone = torch.zeros_like(extended).scatter_add(2, last, child.to(extended)) > 0
    return torch.logaddexp(stay_symbol, moved), extended.masked_fill(gone, -torch.inf)
