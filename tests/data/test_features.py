"""Features are normalised by speaker and computed at each speed."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import soundfile
from own_speech import RATE, own, write_manifests
from shifted_seeds import SHIFT

from pipeline.core.errors import UserError
from pipeline.core.records.corpus import SpeechCorpus, Statistics
from pipeline.data.batches.speech_batches import SpeechSplit
from pipeline.data.sequence_store import FRAME_DTYPE, FrameStore
from pipeline.data.speech.audio import at_speed
from pipeline.data.speech.features import compute_features
from pipeline.data.speech.frontend import (
    LEAST_DEVIATION,
    MelFilters,
    Moments,
    babble,
    coloured_noises,
    normalised,
)
from pipeline.data.speech.manifest import Utterance, read_manifest, write_manifest
from reprise.model_input import features, normalise_speaker

SPEAKERS = {"train": ("near", "far", "shrill"), "dev": ("near",), "test": ("stranger",)}
SPEEDS = [1.0, 0.5]


def said(speaker: str, number: int) -> np.ndarray:
    """Write the same swelling noise for all speakers; `far` is quieter, `shrill` and `stranger` are filtered."""
    rng = np.random.default_rng(number)
    samples = rng.normal(0, 0.2, RATE // 2) * np.linspace(0.3, 1, RATE // 2)
    if speaker in ("shrill", "stranger"):
        samples = np.convolve(samples, [1, -0.7] if speaker == "shrill" else [1, 0.9], "same")
    return samples * (0.3 if speaker == "far" else 1.0)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    manifests = {split: folder / f"{split}.tsv" for split in SPEAKERS}
    for split, speakers in SPEAKERS.items():
        utterances = []
        for speaker, number in product(speakers, range(6)):
            path = folder / f"{split}-{speaker}-{number}.wav"
            soundfile.write(path, said(speaker, number), RATE, subtype="FLOAT")
            utterances.append(Utterance(path, "yes", speaker, "x", 0.5))
        write_manifest(manifests[split], utterances)
    return manifests


@pytest.fixture(scope="module")
def corpora(recordings, tmp_path_factory):
    """Encode the corpora without and with CMVN."""
    folders = [tmp_path_factory.mktemp(name) for name in ("plain", "alike")]
    for folder, asked in zip(folders, (False, True), strict=True):
        compute_features(own(speaker_cmvn=asked, speeds=SPEEDS), recordings, folder, 1)
    return [folder / "encoded" for folder in folders]


def frames(encoded, split: str) -> dict[tuple[str, int], list[np.ndarray]]:
    """Group frames by speaker and by index of the speed."""
    store, speeds = FrameStore(encoded / split, 40), len(SPEEDS) if split == "train" else 1
    found: dict[tuple[str, int], list[np.ndarray]] = {}
    for place in range(len(store)):
        speaker = SPEAKERS[split][place // (6 * speeds)]
        found.setdefault((speaker, place % speeds), []).append(store[place].astype(np.float64))
    return found


def test_a_quiet_microphone_is_heard_as_a_loud_one(corpora):
    plain, alike = (frames(encoded, "train") for encoded in corpora)
    for number in range(6):
        louder = plain["near", 0][number] - plain["far", 0][number]
        np.testing.assert_allclose(louder, -2 * np.log(0.3), atol=0.05)  # of powers
        np.testing.assert_allclose(alike["near", 0][number], alike["far", 0][number], atol=0.05)


def test_each_speaker_and_speed_gets_the_training_statistics(corpora):
    everything = np.concatenate([rows for several in frames(corpora[0], "train").values() for rows in several])
    mean, deviation = everything.mean(0), everything.std(0)
    for split in SPEAKERS:
        plain, alike = (frames(encoded, split) for encoded in corpora)
        for voice, utterances in alike.items():
            heard = np.concatenate(utterances)
            own_deviation = np.concatenate(plain[voice]).std(0)
            wanted = np.minimum(1, own_deviation / (LEAST_DEVIATION * deviation)) * deviation
            np.testing.assert_allclose(heard.mean(0), mean, atol=0.02)
            assert (np.abs(heard.std(0) - wanted) <= 0.02 * wanted + (rounding(heard) if SHIFT else 0)).all()


def rounding(heard: np.ndarray) -> np.ndarray:
    """Return the deviation that storing as float16 adds to each band: its errors are uniform within a step."""
    return np.spacing(np.abs(heard).max(0).astype(np.float16)) / 12**0.5


def test_storing_frames_loses_under_a_hundredth_of_a_band():
    """The largest error of float16 is compared with a band's deviation, over sound of a varying loudness."""
    rng = np.random.default_rng(11)
    samples = rng.normal(0, 0.1, 160_000) * np.repeat(10 ** rng.uniform(-2, 0, 100), 1600)
    frames = MelFilters(16_000, 7600.0)(samples.astype(np.float32)).astype(np.float64)
    errors = np.abs(frames.astype(FRAME_DTYPE).astype(np.float64) - frames)
    assert len(frames) > 900 and (errors.max(0) < 0.01 * frames.std(0)).all() and errors.max() > 0


def test_a_band_that_stands_still_stays_still():
    """Empty bands are not amplified to the deviation of speech."""
    heard, wanted = Moments(), Statistics(mean=[1.0] * 40, deviation=[2.0] * 40)
    frames = np.random.default_rng(3).normal(-9, 2, (50, 40))
    frames[:, 7] = -15 + 1e-3 * frames[:, 7]
    heard.add(frames)
    alike = normalised(frames, heard.statistics(), wanted)
    assert alike[:, 7].std() == pytest.approx(frames[:, 7].std() / LEAST_DEVIATION, rel=1e-3)
    np.testing.assert_allclose(np.delete(alike, 7, 1).std(0), 2.0)
    np.testing.assert_allclose(alike.mean(0), 1.0)


def test_a_model_that_heard_speakers_alike_is_not_given_others(corpora):
    plain, alike = corpora
    for given, learnt_on in ((plain, alike), (alike, plain)):
        with pytest.raises(UserError, match=f"speaker_cmvn of x is {given == alike}, but {learnt_on == alike} for x"):
            SpeechSplit(given, "test", learnt_on)
    assert len(SpeechSplit(alike, "test", alike).src) == 6


@pytest.mark.parametrize("speaker", ["", "unnamed"])
def test_speakers_without_a_name_are_refused(recordings, tmp_path, speaker):
    nameless = tmp_path / "train.tsv"
    write_manifest(nameless, [replace(utterance, speaker=speaker) for utterance in read_manifest(recordings["train"])])
    with pytest.raises(UserError, match=r"train-near-0\.wav: speaker_cmvn needs its speaker's name"):
        compute_features(own(speaker_cmvn=True), recordings | {"train": nameless}, tmp_path / "corpus", 1)


def test_own_recordings_are_normalised_as_a_corpus_speaker(corpora):
    wanted = SpeechCorpus.read(corpora[1] / "corpus.json").statistics
    given = [features("it", said("stranger", number), RATE, RATE, 3800) for number in range(6)]
    in_corpus = frames(corpora[1], "test")["stranger", 0]
    for ours, theirs in zip(normalise_speaker(given, wanted), in_corpus, strict=True):
        np.testing.assert_allclose(ours.astype(np.float64), theirs, atol=0.03)


SPEED_RATE = 16000


def tone(hertz: float, seconds: float) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(round(SPEED_RATE * seconds)) / SPEED_RATE).astype(np.float32)


@pytest.mark.parametrize("speed", [0.9, 1.1, 1.25])
def test_a_tone_is_heard_higher_and_shorter_by_the_speed(speed):
    heard = at_speed(tone(1000, 1.0), speed)
    assert len(heard) == round(SPEED_RATE / speed) and heard.dtype == np.float32
    expected = tone(1000 * SPEED_RATE / len(heard), len(heard) / SPEED_RATE)  # whole samples: not quite 1000 * speed
    inside = slice(500, -500)  # the spectrum takes the utterance for periodic: its ends meet
    assert np.abs(heard[inside] - expected[inside]).max() < 0.02


def test_resampling_filters_frequencies_above_nyquist():
    assert np.abs(at_speed(tone(7800, 1.0), 1.1)[500:-500]).max() < 0.02  # 8580 Hz


def test_speed_one_leaves_the_signal_unchanged():
    samples = tone(440, 0.3)
    assert at_speed(samples, 1.0) is samples


def test_only_training_utterances_are_kept_at_each_speed(tmp_path):
    dataset = own(speeds=[0.8, 1.0, 1.25], sample_rate=SPEED_RATE, high_hz=7600)
    utterances = {}
    for hertz, split in ((500, "train"), (600, "dev"), (700, "test")):
        soundfile.write(path := tmp_path / f"{split}-tone.wav", tone(hertz, 1.0), SPEED_RATE)
        utterances[split] = [Utterance(path, "yes", split, "census", 1.0)]
    record = compute_features(dataset, write_manifests(tmp_path, **utterances), tmp_path / "corpus", 1)
    frames = FrameStore(tmp_path / "corpus/encoded/train", 40).lengths().tolist()
    assert frames == [123, 98, 78]  # windows of 25 ms every 10 ms in 1.25, 1.0 and 0.8 s
    assert [record.splits[split].pairs for split in ("train", "dev", "test")] == [3, 1, 1] and record.speeds == 3
    assert record.splits["train"].seconds == pytest.approx(1.25 + 1 + 0.8)


def test_background_noises_are_equally_loud_and_silence_stays(seed):
    silence, voice = np.zeros(100, np.float32), np.sin(np.arange(2 * RATE, dtype=np.float32))
    assert not babble([silence, silence], RATE).any(), "neither noise nor NaN"
    for noise in (*coloured_noises(RATE, seed), babble([voice, silence], RATE)):
        assert noise.std() == pytest.approx(0.1, rel=0.05)


def test_manifest_behind_a_link_names_its_audio(tmp_path):
    for folder in ("audio", "disk/far/mine", "disk/far/sound"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "data").symlink_to("disk/far")
    audio = [tmp_path / "audio/a.wav", tmp_path / "data/sound/b.wav"]
    for path in audio:
        path.touch()
    write_manifest(tmp_path / "data/mine/train.tsv", [Utterance(path, "yes", "me", "x", 0.5) for path in audio])
    found = [utterance.audio for utterance in read_manifest(tmp_path / "data/mine/train.tsv")]
    assert all(one.samefile(other) for one, other in zip(found, audio, strict=True))
    assert found[1] == tmp_path / "data/mine/../sound/b.wav", "a relative path, as both may move"


def test_manifest_names_audio_that_is_above_a_linked_folder(tmp_path):
    """`..` of a link is the folder above its target."""
    (tmp_path / "disk/far").mkdir(parents=True)
    (tmp_path / "data").symlink_to("disk/far")
    audio = tmp_path / "data/../a.wav"
    audio.touch()
    write_manifest(tmp_path / "train.tsv", [Utterance(audio, "yes", "me", "x", 0.5)])
    (found,) = read_manifest(tmp_path / "train.tsv")
    assert found.audio.samefile(tmp_path / "disk/a.wav")
