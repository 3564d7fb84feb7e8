"""Searches replayed from recordings find what eager ones find.

A tape of operators stands in for a CUDA graph (tape.py): it has fixed memory, and each replay overwrites all results.
Tolerance of scores: 1e-4 in float32, as padding changes the order of sums. Where only the recording differs, all bits
are equal.
"""

import itertools
import logging
from collections.abc import Callable
from weakref import ref

import numpy as np
import pytest
import recurrent_models
import small_models
import speech_batches
import torch
from small_models import pairs
from speech_batches import attention_config, fused_recogniser, lm_config, speech
from tape import TapeRecorder, refuse

from pipeline.config import DecodingConfig
from pipeline.data.batches.base import Batch
from pipeline.decoding import captured_search
from pipeline.decoding.captured_search import CapturedSearch, rounded_up
from pipeline.decoding.trained_model import build_decoder
from pipeline.models.architectures import build_model
from pipeline.models.kernels.autocast import cached_casts, forget_casts
from pipeline.models.language_model.model import LanguageModel, Ngram
from pipeline.models.seq2seq import Seq2Seq
from pipeline.search.beam_search import Hypothesis, beam_search
from pipeline.search.interface import AsyncCopy, ExternalLM

TEXT = small_models.CONFIGS | recurrent_models.CONFIGS
DECODERS = ["narrow keys, wide values", "learned positions", "self, network, source", "weighted", "weighted, literal"]
DECODERS += ["ntm-rnn-emb", "dl4mt", "convolutional"]
RECOGNISERS = {
    "this context": attention_config(),
    "last context": attention_config(gru_reads="last context", task_state="state"),
}
CONFIG = DecodingConfig(beam_size=4, max_extra_length=3)
LENGTHS = [6, 4, 5, 3, 6, 5, 4, 2, 6, 5, 3]
Search = Callable[[Batch], list[list[Hypothesis]]]


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch) -> None:
    """Let caches grow and rows be dropped within a few steps; the seed is one without equally likely continuations."""
    torch.manual_seed(1)
    for name in ("LEAST_ROWS", "LEAST_SOURCE", "LEAST_PLACES"):
        monkeypatch.setattr(captured_search, name, 2)


def captured(model: Seq2Seq, external_lm: ExternalLM | None = None, fail: Callable[[int], None] = lambda _: None):
    """The captured search of a model, and a function that searches by it."""
    search = CapturedSearch(model, CONFIG, TapeRecorder(lambda: [*search.static.values()], fail), external_lm)
    return search, lambda batch: search.search(batch, 2)


def eager(model: Seq2Seq, external_lm: ExternalLM | None = None) -> Search:
    return lambda batch: beam_search(model, batch, CONFIG, 2, external_lm)


def text_model(name: str = "transformer", layers: int = 1) -> Seq2Seq:
    """Return a model of sharp predictions, so that hardly two continuations are equally likely."""
    config = TEXT[name]
    if hasattr(config, "num_layers"):
        config = config.model_copy(update={"num_layers": layers})
    model = build_model(config, (small_models.VOCAB, small_models.VOCAB)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(std=1.5 * weight.shape[-1] ** -0.5)
    return model


def texts(lengths: list[int] = LENGTHS) -> Batch:
    return pairs(lengths, lengths)


def assert_alike(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], rel=1e-4)


def assert_captured_finds_the_same(model: Seq2Seq, batch: Batch, external_lm: ExternalLM | None = None) -> None:
    search, found = captured(model, external_lm)
    assert_alike(found(batch), eager(model, external_lm)(batch))
    assert not search.graphs.failure and search.graphs.recorder.replayed > search.graphs.recorder.recorded


@pytest.mark.parametrize("name", DECODERS)
def test_a_captured_search_of_text_finds_the_same(name):
    assert_captured_finds_the_same(text_model(name, layers=2), texts())


@pytest.mark.parametrize("name", [*RECOGNISERS, "DF0", "DF3", "CF2", "CF4"])  # R2's rectified logits are often equal
def test_a_captured_search_of_speech_finds_the_same(name):
    vocab = speech_batches.VOCAB
    model = build_model(RECOGNISERS[name], (vocab, vocab)) if name in RECOGNISERS else fused_recogniser(name)
    assert_captured_finds_the_same(model.eval(), speech([40, 31, 57, 12], [4, 3, 6, 2]))


def test_captured_search_with_a_language_model_finds_the_same():
    beside = ExternalLM(LanguageModel(lm_config(), small_models.VOCAB).eval(), 0.5)
    assert_captured_finds_the_same(text_model(), texts(), beside)


def test_a_search_with_ngrams_records_no_graphs():
    """A graph cannot hold their counts, which are on the host."""
    model, batch, recorder = text_model(), texts(), TapeRecorder(list)
    ngrams = Ngram(2, small_models.VOCAB, [np.array([7, 8, 9]), np.array([9, 9])])
    found = build_decoder(model, CONFIG.model_copy(update={"lm_weight": 0.5}), ngrams, recorder)(batch)
    assert found == [best for best, _ in eager(model, ExternalLM(ngrams, 0.5))(batch)]
    assert not recorder.recorded


@pytest.mark.parametrize("narrow", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["transformer", "weighted, literal", "convolutional"])
def test_a_replayed_step_has_the_bits_of_an_eager_one(name, narrow):
    model, batch = text_model(name), texts()
    search, found = captured(model)
    with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        assert found(batch) == captured(model, fail=refuse)[1](batch)
    assert not search.graphs.failure


def test_batches_of_like_shapes_share_graphs_and_stay_apart():
    model = text_model()
    search, found = captured(model)
    batches = [texts(LENGTHS), texts(LENGTHS[::-1]), texts(LENGTHS[1:])]
    first = found(batches[0])
    recorded = search.graphs.recorder.recorded
    results = [found(batch) for batch in batches]
    assert results[0] == first
    for batch, result in zip(batches, results, strict=True):
        assert_alike(result, eager(model)(batch))
    assert search.graphs.recorder.recorded <= recorded + 2


def test_dropped_graphs_are_recorded_again_to_the_same_bits():
    model, batch = text_model(), texts()
    few, all_kept = captured(model), captured(model)
    few[0].graphs.most = 1
    assert [few[1](batch), few[1](batch)] == [all_kept[1](batch)] * 2
    assert few[0].graphs.recorder.recorded > all_kept[0].graphs.recorder.recorded


def test_failed_recording_is_logged_and_later_batches_are_eager(caplog):
    model, batch = text_model(), texts()
    search, found = captured(model, fail=refuse)
    with caplog.at_level(logging.WARNING):
        assert_alike(found(batch), eager(model)(batch))
        assert found(batch) == eager(model)(batch)
    messages = [record.message for record in caplog.records if "CUDA graphs" in record.message]
    assert len(messages) == 1 and messages[0].endswith("operation not permitted when stream is capturing")
    assert search.graphs.recorder.recorded == 1


def test_a_cache_that_changes_its_shape_is_searched_eagerly():
    model, batch = text_model(), texts()
    model.fixed_cache = lambda cache, places: cache
    search, found = captured(model)
    assert_alike(found(batch), eager(model)(batch))
    assert "changes the shapes or dtypes" in search.graphs.failure


def test_changed_weights_drop_the_graphs():
    model, batch = text_model(), texts()
    _, found = captured(model)
    found(batch)
    with torch.no_grad():
        next(model.parameters()).mul_(-1)
    assert_alike(found(batch), eager(model)(batch))


def test_rows_of_finished_sentences_are_dropped_by_halves():
    batch = texts([2] * 8 + [12])
    outlast = (model for model in iter(text_model, None) if len(eager(model)(batch)[-1][0].tokens) > 2 + 2 * 3)
    search, found = captured(next(outlast))
    found(batch)
    rows = {shapes[0][0][0] for shapes in search.graphs.graphs}
    assert {12, 2} <= rows and len(rows) <= 4


@pytest.mark.parametrize("name", ["learned positions", "convolutional"])
def test_a_captured_search_uses_all_learned_positions(name):
    model = text_model(name)
    last = model.max_positions
    search, found = captured(model)
    for longest in (last - 3, last):
        batch = texts([longest, 4, longest - 1])
        assert_alike(found(batch), eager(model)(batch))
    assert not search.graphs.failure and search.graphs.recorder.replayed


def test_captured_search_follows_a_grown_table_of_sinusoids():
    model, long = text_model(), texts([300, 3])
    with torch.inference_mode():
        model.loss(long, 0.0)
    assert_captured_finds_the_same(model, texts())


MEMORY, REFUSED = torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("one\ntwo")


def failing(work: Callable, calls: int, error: Exception) -> Callable:
    """`work`, whose call of this number raises an error after its work is done."""
    numbers = itertools.count(1)

    def run(*args):
        result = work(*args)
        if next(numbers) == calls:
            raise type(error)(*error.args)  # a new one, which keeps no tensors of an earlier test
        return result

    return run


FAULTS = [("start", 1, MEMORY), ("load", 1, REFUSED), ("load", 2, MEMORY), ("run", 5, AssertionError())]
FAULTS += [("run", 5, MEMORY), ("drop", 2, MEMORY), ("drop", 1, REFUSED)]


@pytest.mark.parametrize(("place", "calls", "error"), FAULTS)
def test_an_error_in_a_captured_search_leads_to_an_eager_one(monkeypatch, caplog, place, calls, error):
    model, batch = text_model(), texts()
    search, found = captured(model)
    with monkeypatch.context() as patched:
        owner, name = (captured_search.CapturedBeam, "_drop_rows") if place == "drop" else (search, place)
        patched.setattr(owner, name, failing(getattr(owner, name), calls, error))
        assert found(batch) == eager(model)(batch)
    (message,) = [record.message for record in caplog.records if "CUDA graphs" in record.message]
    assert not search.graphs.graphs and not search.static
    assert message.startswith("no memory to search a batch" if error is MEMORY else "cannot search by CUDA graphs")
    recorded = search.graphs.recorder.recorded
    assert_alike(found(batch), eager(model)(batch))
    assert (search.graphs.recorder.recorded > recorded) == (error is MEMORY)


def test_a_failed_warm_up_leaves_the_state_as_it_was(monkeypatch):
    model, batch = text_model(), texts()
    search, found = captured(model)
    expected = found(batch)
    search.graphs.clear()
    monkeypatch.setattr(search, "_step_in_place", failing(search._step_in_place, 1, MEMORY))
    recorded = search.graphs.recorder.recorded
    assert found(batch) == expected
    assert search.graphs.recorder.recorded > recorded


def test_dropped_graphs_free_their_memory():
    search, found = captured(text_model())
    found(texts())
    places = [ref(tensor) for tensor in search.static.values()]
    assert places
    search.graphs.clear()
    assert not search.static and not any(place() is not None for place in places)


def test_graphs_keep_the_cached_casts_of_their_weights():
    model = text_model()
    search, found = captured(model)
    with torch.no_grad():
        casts = [ref(cast) for cast in cached_casts(torch.bfloat16, [*model.parameters()])]
    found(texts())
    forget_casts()
    assert all(cast() is not None for cast in casts)
    search.graphs.clear()
    assert not any(cast() is not None for cast in casts)


def test_a_step_is_queued_before_the_last_one_is_read(monkeypatch):
    events: list[str] = []
    search, found = captured(text_model())
    run, wait = search.run, AsyncCopy.wait
    monkeypatch.setattr(search, "run", lambda state: events.append("run") or run(state))
    monkeypatch.setattr(AsyncCopy, "wait", lambda copy: events.append("read") or wait(copy))
    found(texts([6, 6]))
    assert events[:4] == ["run", "run", "read", "run"]


@pytest.mark.parametrize("least", [1, 2, 8])
def test_sizes_are_rounded_up_to_few(least):
    sizes = {size: rounded_up(size, least) for size in range(1, 200)}
    assert all(size <= found <= max(least, 1.5 * size) for size, found in sizes.items())
    found = [*sizes.values()]
    assert found == sorted(found) and len(set(found)) <= 2 * np.log2(256)
