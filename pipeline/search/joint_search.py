"""Texts that CTC's prefix search ends with, weighed by CTC and attention together (Watanabe et al. 2017, II-D).

Q(y) = γ log P_CTC(y | x) + (1 - γ) log P_attention(y | x) + λ log P_LM(y) + β wordcount(y)
"""

import torch

from pipeline.core.symbols import BOS, EOS, PAD
from pipeline.models.joint_recogniser.model import JointRecogniser
from pipeline.search.beam_search import Hypothesis
from pipeline.search.ctc_prefix_search import TextScores, best_texts, prefix_beam


@torch.no_grad()
def joint_search(
    model: JointRecogniser, batch, beam_size: int, ctc_weight: float, scores: TextScores
) -> list[Hypothesis]:
    """The best text of each utterance; its `log_prob` is log P_CTC, its `score` Q. ctc_weight: γ, in [0, 1]."""
    encoded, real, _ = model.read(batch)
    beam = prefix_beam(model.log_probs(encoded), real.sum(1), beam_size, scores)
    texts = beam.text[..., : int(beam.length.max())]
    edge = torch.full_like(texts[..., :1], PAD)
    tgt_in = torch.cat((edge + (BOS - PAD), texts), dim=-1)
    tgt_out = torch.cat((texts, edge), dim=-1).scatter(2, beam.length.unsqueeze(2), EOS)
    written = model.text_log_probs(encoded, real, tgt_in, tgt_out)
    acoustic = ctc_weight * beam.log_probs.clamp_min(torch.finfo().min) + (1 - ctc_weight) * written
    total = acoustic + beam.prior + beam.next_prior[..., EOS]
    return best_texts(beam, total.masked_fill(beam.log_probs.isinf(), -torch.inf))
