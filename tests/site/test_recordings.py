"""Recordings of the results site are the samples of their utterances."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from pipeline.data.speech.manifest import Utterance, manifest_path, write_manifest
from pipeline.report.site import outputs

RATE = 8000


@pytest.mark.parametrize(("most", "heard"), [(200.0, [0, 3]), (0.9, [0])])
def test_recordings_hold_the_sound_of_their_utterances(tmp_path, monkeypatch, most, heard):
    """The second utterance is not asked for, and the audio of the third is missing."""
    sound = np.random.default_rng(1).integers(-(2**15), 2**15, 2 * RATE).astype(np.int16)
    soundfile.write(tmp_path / "a.wav", sound, RATE)
    parts = [("a.wav", 0.25, 0.5), ("a.wav", 0.0, 1.0), ("missing.wav", 0.0, 1.0), ("a.wav", 1.0, 0.5)]
    utterances = [Utterance(tmp_path / name, "x", "x", "x", seconds, start) for name, start, seconds in parts]
    write_manifest(manifest_path(tmp_path / "toy", "test"), utterances)
    layout, written = SimpleNamespace(corpus=lambda name: tmp_path / name), {}
    site = SimpleNamespace(project=SimpleNamespace(layout=layout))
    monkeypatch.setattr(outputs, "MOST_SECONDS", most)
    found = outputs.recordings(SimpleNamespace(site=site, write=written.__setitem__), "toy", "test", [0, 2, 3])
    assert found == {number: f"audio/toy-test-{number + 1}.flac" for number in heard}
    assert [*found.values()] == [*written]
    for number, name in found.items():
        start = round(parts[number][1] * RATE)
        samples, rate = soundfile.read(io.BytesIO(written[name]), dtype="int16")
        np.testing.assert_array_equal(samples, sound[start : start + RATE // 2])
        assert rate == RATE
