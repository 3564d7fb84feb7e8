"""The real search with made-up device values, so that it continues for a few positions."""

import itertools
from collections.abc import Callable
from unittest import mock

import numpy as np
import torch
from cases import Decoding
from counting import ANSWER, Count, Counts
from torch._subclasses.fake_tensor import FakeTensorMode
from trainings import batches_of, spec_of, vocabulary

from pipeline.config import DecodingConfig
from pipeline.data.batches.base import Batch
from pipeline.decoding.captured_search import CapturedSearch
from pipeline.decoding.trained_model import build_decoder
from pipeline.models.joint_recogniser.model import JointRecogniser
from pipeline.models.language_model.model import LanguageModel
from pipeline.models.layers.positions import cached_indices
from pipeline.models.seq2seq import FrameModel, Seq2Seq
from pipeline.models.settings import EOS
from pipeline.search import beam
from pipeline.search.beam_search import beam_search
from pipeline.search.interface import ExternalLM
from pipeline.training.graph_cache import Recorder
from pipeline.training.run_model import build_run_model

POSITIONS = ANSWER + 1
CONFIG = DecodingConfig(beam_size=4, max_extra_length=ANSWER).model_copy(update={"lm_weight": 0.5})


def count(case: Decoding) -> Counts:
    """Measure all positions, or all frames of CTC. A step that no graph can hold is an error."""
    with FakeTensorMode(allow_non_fake_inputs=True), Count(yes_after=ANSWER) as counting:
        cached_indices.cache_clear()
        run = searching(case, torch.device("cuda"))
        counting.now = counts = Counts()
        with mock.patch.object(counting, "keep"):
            run()
            counting.now = Counts()
            searching(case, torch.device("cuda"), captured_step)()
    counts.without_cuda = sorted(counting.without_cuda)
    return counts


def search(case: Decoding, model: Seq2Seq, beside: LanguageModel | None, batch: Batch) -> None:
    if case.kind == "best path":
        model.best_path(batch)
    else:
        with mock.patch.object(beam, "unpack", made_up(beam.unpack)):
            build_decoder(model, CONFIG, beside)(batch)


def captured_step(case: Decoding, model: Seq2Seq, beside: LanguageModel | None, batch: Batch) -> None:
    """Run a step of a search as a graph would hold it, if the case is a beam search."""
    if case.kind == "beam" and not isinstance(model, FrameModel | JointRecogniser):
        captured = CapturedSearch(model, CONFIG, None, ExternalLM(beside, CONFIG.lm_weight) if beside else None)
        with torch.no_grad():
            captured._step_in_place(captured.start(batch, np.full(case.rows, POSITIONS)).state)


def searching(case: Decoding, device: torch.device, search: Callable[..., None] = search) -> Callable[[], None]:
    """Return a function that runs the case's search once."""
    spec = spec_of(case.system)
    vocab = vocabulary(spec)
    (batch,) = batches_of(spec, case).micro_batches()
    with device:
        model = build_run_model(spec, (vocab, vocab)).eval()
        beside = LanguageModel(spec_of("coldfusion/lm-source").model, vocab).eval() if case.language_model else None
    moved = batch.to(device)

    def run() -> None:
        with torch.autocast(device.type, torch.bfloat16):
            search(case, model, beside, moved)

    return run


def whole_search(
    case: Decoding, device: torch.device, recorder: Recorder | None
) -> Callable[[], dict[str, list[torch.Tensor]]]:
    """Return a function that searches a batch of the case to its end, by graphs if there is a recorder.

    It returns the scores of the best hypotheses.
    """
    spec = spec_of(case.system)
    vocab = vocabulary(spec)
    (batch,) = batches_of(spec, case).micro_batches()
    with device:
        model = build_run_model(spec, (vocab, vocab)).eval()
    moved = batch.to(device)
    config = DecodingConfig(beam_size=4, max_extra_length=1)
    captured = CapturedSearch(model, config, recorder) if recorder else None

    def run() -> dict[str, list[torch.Tensor]]:
        with torch.autocast(device.type, torch.bfloat16):
            found = beam_search(model, moved, config, start=captured.start if captured else None)
        if captured and captured.graphs.failure:
            raise RuntimeError(captured.graphs.failure)
        return {"scores": [torch.tensor([hypotheses[0].score for hypotheses in found])]}

    return run


def made_up(unpack):
    """Stand-in for the reading of beam search: all hypotheses live until `POSITIONS`, when all end."""
    positions = itertools.count(1)

    def read(packed, beam_size):
        found = unpack(packed, beam_size)
        found.tokens[:] = EOS if next(positions) == POSITIONS else EOS + 1
        found.live[:] = range(beam_size)
        return found

    return read
