"""Greedy search: the most probable symbol at each position. Same output as a beam of 1, in fewer operations."""

import numpy as np
import torch

from pipeline.models.layers.positions import cached_indices
from pipeline.models.seq2seq import Seq2Seq
from pipeline.models.settings import BOS, EOS, PAD
from pipeline.search.interface import SourceBatch, output_limits, select_hypotheses, select_sentences, to_device_async


@torch.no_grad()
def greedy(model: Seq2Seq, batch: SourceBatch, max_extra_length: int) -> list[list[int]]:
    """The symbols of each sentence, without BOS and EOS, at most `max_extra_length` more than its source has."""
    device = batch.src_mask.device
    limits = output_limits(model, batch, max_extra_length).tolist()
    outputs: list[list[int]] = [[] for _ in limits]
    active = list(range(len(limits)))
    source, cache = model.start(batch)
    tokens = torch.full((len(active), 1), BOS, device=device)
    while active:
        logits, cache = model.step(tokens, source, cache)
        tokens = logits.index_fill(-1, cached_indices(device, PAD, BOS), -torch.inf).argmax(-1)
        going_on = []
        for row, (sentence, token) in enumerate(zip(active, tokens[:, 0].tolist(), strict=True)):
            if token != EOS and len(outputs[sentence]) < limits[sentence]:
                outputs[sentence].append(token)
                going_on.append(row)
        if len(going_on) < len(active):
            rows = to_device_async(device, np.array(going_on, dtype=np.int64))
            tokens, source = tokens[rows], select_sentences(source, rows)
            cache = select_hypotheses(cache, rows.unsqueeze(1))
            active = [active[row] for row in going_on]
    return outputs
