"""Speech at another speed changes pitch and length, and training sets hold each utterance at each speed."""

import numpy as np
import pytest
import soundfile
from own_speech import own

from pipeline.data.sequence_store import FrameStore
from pipeline.data.speech.audio import at_speed
from pipeline.data.speech.features import compute_features
from pipeline.data.speech.manifest import Utterance, write_manifest

RATE = 16000


def tone(hertz: float, seconds: float) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(round(RATE * seconds)) / RATE).astype(np.float32)


@pytest.mark.parametrize("speed", [0.9, 1.1, 1.25])
def test_a_tone_is_heard_higher_and_shorter_by_the_speed(speed):
    heard = at_speed(tone(1000, 1.0), speed)
    assert len(heard) == round(RATE / speed) and heard.dtype == np.float32
    expected = tone(1000 * RATE / len(heard), len(heard) / RATE)  # whole samples: not quite 1000 * speed
    inside = slice(500, -500)  # the spectrum takes the utterance for periodic: its ends meet
    assert np.abs(heard[inside] - expected[inside]).max() < 0.02


def test_resampling_filters_frequencies_above_nyquist():
    assert np.abs(at_speed(tone(7800, 1.0), 1.1)[500:-500]).max() < 0.02  # 8580 Hz


def test_speed_one_leaves_the_signal_unchanged():
    samples = tone(440, 0.3)
    assert at_speed(samples, 1.0) is samples


def test_only_training_utterances_are_kept_at_each_speed(tmp_path):
    dataset = own(speeds=[0.8, 1.0, 1.25], sample_rate=RATE, high_hz=7600)
    manifests = {}
    for number, split in enumerate(("train", "dev", "test")):
        soundfile.write(tmp_path / f"{split}.wav", tone(500 + 100 * number, 1.0), RATE)
        manifests[split] = tmp_path / f"{split}.tsv"
        write_manifest(manifests[split], [Utterance(tmp_path / f"{split}.wav", "yes", split, "census", 1.0)])
    record = compute_features(dataset, manifests, tmp_path / "corpus", 1)
    frames = FrameStore(tmp_path / "corpus/encoded/train", 40).lengths().tolist()
    assert frames == [123, 98, 78]  # windows of 25 ms every 10 ms in 1.25, 1.0 and 0.8 s
    assert [record.splits[split].pairs for split in ("train", "dev", "test")] == [3, 1, 1]
    assert record.splits["train"].seconds == pytest.approx(1.25 + 1 + 0.8)
