"""Batches of utterances hold each once an epoch; their noise is a function of seed and step."""

import shutil
from itertools import product

import numpy as np
import pytest
import torch
from made_records import speech_corpus, text_corpus, training_config
from random_speech import FEATURES, write_speech

from pipeline.config import RunSpec, TrainingConfig
from pipeline.core.errors import UserError
from pipeline.core.schema import validate
from pipeline.data.batches.corpus_batches import batch_size, evaluation_split, training_batches
from pipeline.data.batches.fixed_size_batches import TextOnlyBatches, TextOnlySplit, random_share
from pipeline.data.batches.speech_batches import SpeechBatches, SpeechSplit, select_utterances, with_noise
from pipeline.data.batches.steps import FixedSizeSteps
from pipeline.data.sequence_store import write_frames, write_tokens
from pipeline.data.text.vocabulary import FIRST, Alphabet, vocabularies
from pipeline.models.ctc.settings import CTCConfig
from pipeline.models.language_model.settings import LanguageModelConfig
from pipeline.models.settings import BOS, EOS, PAD

NOISE = {"noise_probability": 0.4}


def settings(**changes) -> TrainingConfig:
    own = {"micro_batch_frames": 200, "max_frames": 10_000, "max_length": 100, "sorted_first_epoch": True}
    return training_config(**own | {"sentences_per_update": 8} | changes)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech")
    return folder, write_speech(folder, 53, seed=11, shortest=2)


def normalised(frames, mean=2):
    return pytest.approx((frames.astype(np.float32) - mean) / 3, rel=1e-6, abs=1e-6)


def batches(folder, model=None, seed=5, **changes) -> SpeechBatches:
    return SpeechBatches(SpeechSplit(folder, "train"), settings(**changes), seed, model)


def same(one, other) -> bool:
    pairs = zip(one, other, strict=True)
    return all(torch.equal(a.frames, b.frames) and torch.equal(a.tgt_out, b.tgt_out) for a, b in pairs)


def test_a_batch_holds_normalised_frames_and_shifted_transcripts(corpus):
    folder, frames = corpus
    split = SpeechSplit(folder, "train")
    indices = np.array([7, 3, 20])
    batch = split.batch(indices)
    for row, index in enumerate(indices):
        length = len(frames["train"][index])
        assert batch.frames[row, :length].numpy() == normalised(frames["train"][index])
        assert not batch.frames[row, length:].any() and batch.frame_counts[row] == length
        text = split.tgt[index].tolist()
        assert batch.tgt_in[row, : len(text) + 1].tolist() == [BOS, *text]
        assert batch.tgt_out[row, : len(text) + 1].tolist() == [*text, EOS]
        assert (batch.tgt_out[row, len(text) + 1 :] == PAD).all()
    assert torch.equal(batch.src_mask.sum(1), batch.frame_counts)
    assert batch.num_tokens == sum(len(split.tgt[index]) + 1 for index in indices)


@pytest.mark.parametrize(("speaker_cmvn", "mean"), [(False, 4), (True, 2)])
def test_frames_are_normalised_as_another_corpus_on_request(tmp_path, speaker_cmvn, mean):
    """If speakers were normalised one by one, all corpora have the same levels, and each its own statistics."""
    for name, own in (("here", 2.0), ("other", 4.0)):
        frames = write_speech(tmp_path / name, 4, seed=1)
        speech_corpus(own, 3.0, FEATURES, speaker_cmvn=speaker_cmvn).write(tmp_path / name / "corpus.json")
    batch = SpeechSplit(tmp_path / "here", "dev", normalisation_corpus=tmp_path / "other").batch(np.array([0]))
    assert batch.frames[0].numpy() == normalised(frames["dev"][0], mean)


@pytest.mark.parametrize("epoch", [0, 1, 4])
def test_epoch_holds_each_utterance_once_in_even_steps(corpus, epoch):
    data = batches(corpus[0])
    updates = [data.sequences_of(step) for step in range(epoch * len(data), (epoch + 1) * len(data))]
    assert sorted(np.concatenate(updates).tolist()) == list(range(53))
    assert {len(update) for update in updates} <= {7, 8}


def test_only_the_first_epoch_is_sorted_by_length(corpus):
    data = batches(corpus[0])
    first, second = (
        [data.pairs.src_lengths[data.sequences_of(epoch * len(data) + step)] for step in range(len(data))]
        for epoch in (0, 1)
    )
    assert np.all(np.diff(np.concatenate(first)) >= 0)
    means = [update.mean() for update in second]
    assert np.any(np.diff(means) < 0) and all(np.all(np.diff(update) >= 0) for update in second)


def test_steps_are_of_like_length_and_differ_by_epoch_and_seed():
    lengths, orders, met = np.random.default_rng(0).integers(100, 400, 5000), [], set()
    for seed in (2, 3):
        updates = FixedSizeSteps(np.arange(5000), lengths, 16, seed=seed, sorted_first=False)
        assert updates.padding < 0.06
        steps = [updates.sequences_of(step) for step in range(3 * len(updates))]
        orders += np.split(np.array([lengths[step].mean() for step in steps]), 3)
        met |= {tuple(sorted(step)) for step in steps}
    assert len(met) == 6 * len(updates)
    assert np.abs(np.corrcoef(orders)[~np.eye(6, dtype=bool)]).max() < 0.4


def test_an_update_is_a_function_of_seed_and_step(corpus):
    folder, _ = corpus
    one, other = batches(folder, **NOISE), batches(folder, **NOISE)
    for step in (17, 3, 30, 3):
        assert same(one.micro_batches(step), other.micro_batches(step))
    assert not same(one.micro_batches(17), batches(folder, **NOISE, seed=6).micro_batches(17))


def test_processes_share_the_micro_batches_of_an_update(corpus):
    data = batches(corpus[0], **NOISE)
    for step in (2, 9):
        whole = data.micro_batches(step)
        shared = [data.micro_batches(step, rank, 3) for rank in range(3)]
        assert same(whole, [shared[i % 3][i // 3] for i in range(len(whole))])
        assert all(batch.frames.shape[0] * batch.frames.shape[1] <= 200 for batch in whole)


def test_noise_comes_as_often_and_as_loud_as_asked_for(corpus):
    folder, frames = corpus
    data, louder = batches(folder, **NOISE, noise_snr_db=(4.0, 15.0)), []
    for step in range(150):
        for index in range(10):
            plain = frames["train"][index].astype(np.float64)
            heard = data.noise.mixed(frames["train"][index], step, index)
            if not np.array_equal(plain, heard):
                power = np.exp(plain).sum()
                louder.append(10 * np.log10(power / (np.exp(heard.astype(np.float64)).sum() - power)))
    assert 3.95 < min(louder) < 4.5 and 14.5 < max(louder) < 15.2
    assert abs(np.mean(louder) - 9.5) < 4 * (15 - 4) / np.sqrt(12 * len(louder))
    assert abs(len(louder) / 1500 - 0.4) < 4 * np.sqrt(0.4 * 0.6 / 1500)


def test_each_excerpt_of_a_noise_begins_anywhere(corpus):
    """There are three noises of 40 frames; at one ratio, equal excerpts give equal bytes."""
    folder, frames = corpus
    data = batches(folder, noise_probability=0.99, noise_snr_db=(5.0, 5.0))
    heard = {data.noise.mixed(frames["train"][0], step, 0).tobytes() for step in range(500)}
    assert 0.9 * 3 * 40 < len(heard) <= 3 * 40 + 1


def test_powers_add_up():
    rng = np.random.default_rng(3)
    speech, noise = rng.normal(0, 2, (30, 4)), rng.normal(1, 2, (30, 4))
    power, other = np.exp(speech), np.exp(noise)
    gain = power.sum() / other.sum() / 10**0.7
    np.testing.assert_allclose(with_noise(speech, noise, 7.0), np.log(power + gain * other), rtol=1e-5, atol=1e-5)


def test_smaller_draws_are_among_larger_ones():
    numbers = np.sort(np.random.default_rng(4).permutation(1000)[:600])
    small, large = random_share(numbers, 0.1, seed=9), random_share(numbers, 0.4, seed=9)
    assert len(small) == 60 and set(small) < set(large) < set(numbers)
    assert set(random_share(numbers, 0.1, seed=10)) != set(small)


def test_too_long_utterances_are_left_out_and_counted(corpus):
    folder, frames = corpus
    longer = sum(len(frame) > 30 for frame in frames["train"])
    data = batches(folder, max_frames=30)
    assert data.left_out == longer and data.sequences == 53 - longer
    with pytest.raises(UserError, match="micro_batch_frames is 20"):
        batches(folder, micro_batch_frames=20)
    with pytest.raises(UserError, match="raise `max_frames`"):
        batches(folder, max_frames=1)


def test_ctc_can_write_what_has_a_finite_loss(tmp_path):
    """Compute CTC losses of texts of two symbols with many repeats, from uniform output frames."""
    rng = np.random.default_rng(6)
    with write_frames(tmp_path / "x") as frames, write_tokens(tmp_path / "x.tgt", len(Alphabet())) as tokens:
        for _ in range(200):
            frames.append(np.zeros((rng.integers(1, 24), FEATURES)))
            tokens.append(rng.integers(FIRST, FIRST + 2, length := rng.integers(0, 10)), [length])
    speech_corpus(0.0, 1.0, FEATURES).write(tmp_path / "corpus.json")
    split, losses = SpeechSplit(tmp_path, "x"), []
    for index, count in enumerate(split.src_lengths.tolist()):
        uniform = torch.zeros(-(-count // 2), 1, len(Alphabet())).log_softmax(-1)
        target = torch.from_numpy(split.tgt[index].astype(np.int64))[None]
        sizes = torch.tensor([len(uniform)]), torch.tensor([target.shape[1]])
        losses.append(float(torch.nn.functional.ctc_loss(uniform, target, *sizes, blank=PAD, reduction="sum")))
    found = split.exceeds_output(CTCConfig(architecture="ctc"))
    np.testing.assert_array_equal(found, np.isinf(losses))
    assert 20 < found.sum() < 180
    chosen, left_out = select_utterances(split, settings(max_frames=100), CTCConfig(architecture="ctc"), seed=1)
    assert left_out == found.sum() and chosen.tolist() == np.flatnonzero(~found).tolist()


def test_text_without_a_source_is_batched_the_same_way(corpus):
    folder, _ = corpus
    own = settings(sentences_per_update=10, micro_batch_tokens=40, max_length=50, sorted_first_epoch=False)
    data = TextOnlyBatches(TextOnlySplit(folder, "train"), own, seed=1)
    rows = [row for step in range(len(data)) for batch in data.micro_batches(step) for row in batch.tgt_out.tolist()]
    expected = [[*data.pairs.tgt[i].tolist(), EOS] for i in range(53)]
    assert sorted([i for i in row if i != PAD] for row in rows) == sorted(expected)


def run(folder, **training) -> RunSpec:
    settings = {"max_steps": 1, "schedule": "constant", "lr": 1.0, "validate_every": 1, "checkpoint_every": 1}
    model = {"architecture": "ctc", "channels": 1, "num_layers": 1, "hidden_width": 2}
    names = {"paper": "p", "system": "s", "dataset": "d", "scale": "c", "seed": 5}
    settings |= {"sentences_per_update": 8, "label_smoothing": 0.0} | training
    return validate(RunSpec, {**names, "corpus": str(folder), "model": model, "training": settings}, "run")


def test_speech_of_a_run_is_batched_by_its_settings(corpus):
    folder, _ = corpus
    spec = run(folder, noise_probability=0.4, sorted_first_epoch=True, micro_batch_frames=200)
    data, expected = training_batches(spec), batches(folder, **NOISE, model=spec.model)
    assert isinstance(data, SpeechBatches) and same(data.micro_batches(3), expected.micro_batches(3))
    assert isinstance(evaluation_split(spec, folder, "dev"), SpeechSplit)
    assert batch_size(spec) == 200 and isinstance(vocabularies(folder)[1], Alphabet)
    with pytest.raises(UserError, match="count batches in sentences"):
        training_batches(run(folder, sentences_per_update=None, tokens_per_update=10))


def test_the_kind_of_a_corpus_decides_on_its_batches(corpus, tmp_path):
    folder, text = corpus[0], tmp_path / "text"
    shutil.copytree(folder, text)
    text_corpus().write(text / "corpus.json")
    with pytest.raises(UserError, match=r"ctc reads speech, but .* is text"):
        training_batches(run(text))
    lm = LanguageModelConfig(architecture="language_model", hidden_width=2)
    for place in (folder, text):
        on_text = run(folder).model_copy(update={"model": lm, "corpus": str(place)})
        assert isinstance(training_batches(on_text), TextOnlyBatches)
        assert isinstance(evaluation_split(on_text, place, "dev"), TextOnlySplit)
    (text / "corpus.json").write_text((text / "corpus.json").read_text().replace('"text"', '"smell"'))
    with pytest.raises(UserError, match="unknown kind 'smell'"):
        training_batches(run(text))


def test_every_update_utterance_and_seed_has_noise_of_its_own(corpus):
    frames = np.random.default_rng(1).normal(0, 1, (30, FEATURES)).astype(np.float16)
    noises = [batches(corpus[0], noise_probability=0.999, seed=seed).noise for seed in (5, 6)]
    asked = product(noises, (0, 1, 12), (0, 1))
    heard = {noise.mixed(frames, step, utterance).tobytes() for noise, step, utterance in asked}
    assert len(heard) == 2 * 3 * 2


def test_noise_differs_by_epoch_and_warm_up_has_none(corpus):
    folder, frames = corpus
    data = batches(folder, noise_probability=0.999, micro_batch_frames=10_000)
    heard = {index: [] for index in range(53)}
    for step in range(2 * len(data)):
        (batch,) = data.micro_batches(step)
        for row, index in enumerate(data.sequences_of(step).tolist()):
            heard[index].append(batch.frames[row, : len(frames["train"][index])])
    assert all(not torch.equal(*both) for both in heard.values())
    (batch,) = data.largest_micro_batches()
    assert same([batch], [data.pairs.batch(data.heaviest_step())])


def test_no_micro_batch_is_heavier_than_the_largest(corpus, seed):
    folder, frames = corpus
    generator = np.random.default_rng(seed)
    longest = max(map(len, frames["train"]))

    def weight(batch):
        return batch.frames.shape[0] * batch.frames.shape[1] ** 2

    for _ in range(20):
        sizes = {"sentences_per_update": int(generator.integers(1, 60))}
        data = batches(folder, **sizes, micro_batch_frames=longest * int(generator.integers(10, 80)) // 10)
        found = [weight(batch) for step in range(3 * len(data)) for batch in data.micro_batches(step)]
        assert max(found) <= max(map(weight, data.largest_micro_batches())) <= data.micro_batch_positions * longest
