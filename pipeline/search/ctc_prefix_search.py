"""Beam search over the texts that CTC's paths stand for, with a language model (Hannun et al. 2014).

It looks for the text y of the largest

    Q(y) = log P_CTC(y | x) + λ log P_LM(y) + β wordcount(y)      (Deep Speech 2, eq. 12; Cold Fusion, eq. 2, without β)

P_CTC adds up all paths, one symbol a frame, that collapse to y: each prefix kept carries the probability of its paths
that end in a blank and of those that do not. The language model's state goes along with each prefix; the end of the
sentence is scored when all frames are read. Prefixes are pruned by Q of what has been read.

B: utterances, K: prefixes kept, V: vocabulary, L: longest text.
"""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from pipeline.core.symbols import BOS, EOS, PAD, UNK
from pipeline.models.layers.reading import numbers_on
from pipeline.search.beam_search import Hypothesis
from pipeline.search.interface import select_hypotheses
from pipeline.search.scorers import Prior

BLANK = PAD
NEVER_WRITTEN = [PAD, UNK, BOS, EOS]
NAME_FACTOR = 6364136223846793005
"""A prefix' name is a polynomial of its symbols modulo 2^64: that two in one beam share one has a chance of 1e-16."""


@dataclass
class Beam:
    """Prefixes of all utterances, (B, K) tensors unless said otherwise; those not yet there have probability 0."""

    blank: Tensor
    """log p of the paths that end in a blank."""
    symbol: Tensor
    """log p of the paths that end in the prefix' last symbol."""
    prior: Tensor
    """λ log P_LM + β wordcount."""
    name: Tensor
    parent: Tensor
    """Name of the prefix without its last symbol."""
    last: Tensor
    """Last symbol, BOS of the empty prefix."""
    text: Tensor
    """(B, K, L) symbols, PAD behind the end."""
    length: Tensor
    next_prior: Tensor
    """(B, K, V): what each next symbol adds to `prior`."""
    state: Tensor
    """(B, K, …) of the language model; (B, K, 0) without one."""

    @property
    def log_probs(self) -> Tensor:
        return torch.logaddexp(self.blank, self.symbol)

    def select(self, parents: Tensor) -> "Beam":
        """The prefixes `parents` (B, K), numbers in the flattened B * K."""
        return Beam(*(select_hypotheses(getattr(self, field.name), parents) for field in fields(self)))

    def where(self, rows: Tensor, other: "Beam") -> "Beam":
        """This beam in the utterances `rows` (B,) bool, `other` in the rest."""
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return Beam(*(torch.where(rows.view(-1, *[1] * (ours.dim() - 1)), ours, theirs) for ours, theirs in pairs))


@dataclass(frozen=True)
class TextScores:
    """λ log P_LM and β wordcount of prefixes.

    separator: the symbol between words; without one, words are not counted.
    """

    prior: Prior | None
    word_bonus: float
    separator: int | None

    def begin(self, rows: int, like: Tensor) -> Tensor:
        return self.prior.model.begin(rows) if self.prior else like.new_zeros(rows, 1, 0)

    def consult(self, beam: Beam, new: Tensor) -> None:
        """Set `state` and `next_prior` of the prefixes marked in `new` (B, K), whose states are their parents'."""
        if not self.prior and self.separator is None:
            return
        if new.is_cuda:  # of all: to know which are new, the host would have to wait
            found, state = self.after(beam.last.flatten(), beam.state.flatten(0, 1), beam.next_prior)
            beam.next_prior = torch.where(new.unsqueeze(2), found.view_as(beam.next_prior), beam.next_prior)
            marked = new.view(*new.shape, *[1] * (beam.state.dim() - 2))
            beam.state = torch.where(marked, state.view_as(beam.state), beam.state)
        elif bool(new.any()):
            beam.next_prior[new], beam.state[new] = self.after(beam.last[new], beam.state[new], beam.next_prior)

    def after(self, last: Tensor, state: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        """What each next symbol adds (N, V) after the symbols `last` (N,), and the states (N, …) that read them."""
        found = like.new_zeros(len(last), like.shape[-1])
        if self.prior:
            features, state = self.prior.model.advance(last.unsqueeze(1), state.unsqueeze(1))
            found += self.prior.weight * self.prior.model.logits(features).squeeze(1).log_softmax(-1)
            state = state.squeeze(1)
        if self.separator is not None:
            bonus = found.new_full(like.shape[-1:], self.word_bonus)
            bonus = bonus.index_fill(0, numbers_on(like.device, *NEVER_WRITTEN, self.separator), 0.0)
            found += bonus * ((last == BOS) | (last == self.separator)).unsqueeze(1)
        return found, state


@torch.no_grad()
def prefix_search(log_probs: Tensor, lengths: Tensor, beam_size: int, scores: TextScores) -> list[Hypothesis]:
    """The best text of each utterance; its `log_prob` is log P_CTC, its `score` Q.

    log_probs: (B, S, V) of the symbols per frame; lengths: (B,) frames.
    """
    beam = prefix_beam(log_probs, lengths, beam_size, scores)
    return best_texts(beam, beam.log_probs + beam.prior + beam.next_prior[..., EOS])


def prefix_beam(log_probs: Tensor, lengths: Tensor, beam_size: int, scores: TextScores) -> Beam:
    """The texts that the search ends with."""
    beam, counts = empty_beam(log_probs, beam_size, scores), lengths.tolist()
    for frame in range(max(counts)):
        after = after_frame(beam, log_probs[:, frame], scores)
        beam = after if frame < min(counts) else after.where(lengths > frame, beam)
    return beam


def best_texts(beam: Beam, total: Tensor) -> list[Hypothesis]:
    """Of each utterance that of the largest `total` (B, K), its score."""
    rows, best = torch.arange(len(total), device=total.device), total.argmax(1)
    read = [one[rows, best].tolist() for one in (beam.text, beam.length, beam.log_probs, total)]
    return [Hypothesis(text[:length], log_prob, score) for text, length, log_prob, score in zip(*read, strict=True)]


def empty_beam(log_probs: Tensor, beam_size: int, scores: TextScores) -> Beam:
    """The empty prefix in the first place."""
    rows, frames, vocabulary = log_probs.shape
    blank = log_probs.new_full((rows, beam_size), -torch.inf)
    blank[:, 0] = 0.0
    names = torch.arange(beam_size, device=log_probs.device).expand(rows, -1).contiguous()
    beam = Beam(
        blank=blank,
        symbol=torch.full_like(blank, -torch.inf),
        prior=torch.zeros_like(blank),
        name=-names,
        parent=names - (1 << 62),
        last=torch.full_like(names, BOS),
        text=names.new_full((rows, beam_size, frames), PAD),
        length=torch.zeros_like(names),
        next_prior=log_probs.new_zeros(rows, beam_size, vocabulary),
        state=scores.begin(rows, log_probs).repeat_interleave(beam_size, dim=1),
    )
    scores.consult(beam, names == 0)
    return beam


def after_frame(beam: Beam, log_probs: Tensor, scores: TextScores) -> Beam:
    """The `K` best prefixes after one more frame; log_probs (B, V)."""
    width, vocabulary = beam.blank.shape[1], log_probs.shape[-1]
    repeated = log_probs.gather(1, beam.last)
    stay_blank = beam.log_probs + log_probs[:, BLANK, None]
    stay_symbol = beam.symbol + repeated
    extended = beam.log_probs.unsqueeze(2) + log_probs.unsqueeze(1)
    # Only a blank in between makes the same symbol again a second one.
    extended.scatter_(2, beam.last.unsqueeze(2), (beam.blank + repeated).unsqueeze(2))
    extended.index_fill_(-1, numbers_on(extended.device, *NEVER_WRITTEN), -torch.inf)
    stay_symbol, extended = merged(beam, stay_symbol, extended)
    extended_prior = beam.prior.unsqueeze(2) + beam.next_prior
    values = torch.cat((torch.logaddexp(stay_blank, stay_symbol), extended.flatten(1)), dim=1)
    kept = (values + torch.cat((beam.prior, extended_prior.flatten(1)), dim=1)).topk(width, dim=1).indices
    stays, extension = kept < width, (kept - width).clamp_min(0)
    source = torch.where(stays, kept, extension // vocabulary)
    after = beam.select(torch.arange(len(kept), device=kept.device).unsqueeze(1) * width + source)
    symbol = extension % vocabulary
    mass, prior = extended.flatten(1).gather(1, extension), extended_prior.flatten(1).gather(1, extension)
    after.blank = torch.where(stays, stay_blank.gather(1, source), -torch.inf)
    after.symbol = torch.where(stays, stay_symbol.gather(1, source), mass)
    after.prior = torch.where(stays, after.prior, prior)
    after.parent = torch.where(stays, after.parent, after.name)
    after.name = torch.where(stays, after.name, after.name * NAME_FACTOR + symbol)
    after.last = torch.where(stays, after.last, symbol)
    place = after.length.clamp_max(after.text.shape[2] - 1).unsqueeze(2)
    written = torch.where(stays, after.text.gather(2, place).squeeze(2), symbol)
    after.text.scatter_(2, place, written.unsqueeze(2))
    after.length = after.length + ~stays
    scores.consult(after, ~stays & after.symbol.isfinite())
    return after


def merged(beam: Beam, stay_symbol: Tensor, extended: Tensor) -> tuple[Tensor, Tensor]:
    """A prefix extended to one that the beam holds already gives its probability to that one.

    stay_symbol (B, K), extended (B, K, V).
    """
    last = beam.last.unsqueeze(1).expand(-1, beam.last.shape[1], -1)
    child = beam.name.unsqueeze(2) == beam.parent.unsqueeze(1)
    moved = extended.gather(2, last).masked_fill(~child, -torch.inf).logsumexp(1)
    gone = torch.zeros_like(extended).scatter_add(2, last, child.to(extended)) > 0
    return torch.logaddexp(stay_symbol, moved), extended.masked_fill(gone, -torch.inf)
