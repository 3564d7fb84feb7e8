"""Features of recordings: damaged headers, channels, units and silence."""

import re
import resource
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile
from shifted_seeds import SHIFT

from pipeline.core.errors import UserError
from reprise.model_input import features, read_sound

RATE = 16_000
VOICE = np.random.default_rng(1).normal(0, 0.1, RATE)
AT_WAV_RATE, AT_FLAC_SAMPLES = 24, 21


@pytest.fixture
def little_memory():
    """Limit the address space to 16 GiB."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 34, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def recorded(path: Path, at: int, lie: bytes) -> Path:
    """Return a second of silence with a wrong header."""
    soundfile.write(path, np.zeros(RATE, np.float32), RATE)
    content = bytearray(path.read_bytes())
    content[at : at + len(lie)] = lie
    path.write_bytes(content)
    return path


@pytest.mark.usefixtures("little_memory")
def test_a_header_that_says_an_absurd_rate_is_refused(tmp_path):
    sound = read_sound(recorded(tmp_path / "a.wav", AT_WAV_RATE, struct.pack("<I", 2**31 - 1)))
    with pytest.raises(UserError, match=r"a\.wav: has a rate of 2,147,483,647 Hz"):
        features("a.wav", *sound, RATE, 7600.0)


def test_rate_may_be_a_whole_float_and_nothing_between():
    """Half the rate of the model, so that the recording is resampled."""
    heard = [
        features("a", VOICE[: RATE // 2], rate, RATE, 7600.0) for rate in (RATE // 2, RATE / 2, np.float32(RATE / 2))
    ]
    assert all(np.array_equal(heard[0], other) for other in heard[1:]) and len(heard[0]) == 98
    for rate in (22_050.5, float("nan"), 0.5, -8000):
        with pytest.raises(UserError, match=rf"a: samples of shape \(16000,\) at {rate} Hz; give .* at whole Hz"):
            features("a", VOICE, rate, RATE, 7600.0)


@pytest.mark.usefixtures("little_memory")
def test_a_header_that_says_an_absurd_length_is_refused(tmp_path):
    path = recorded(tmp_path / "a.flac", AT_FLAC_SAMPLES, b"\xff" * 5)
    with pytest.raises(UserError, match=r"a\.flac: no audio that can be read"):
        read_sound(path)


@pytest.mark.parametrize(
    ("name", "fault"), [("text.wav", "no audio that can"), ("none.wav", "no such file"), ("", "is a")]
)
def test_a_path_without_audio_is_refused_by_its_fault(tmp_path, name, fault):
    (tmp_path / "text.wav").write_text("hello\n")
    with pytest.raises(UserError, match=fault):
        read_sound(tmp_path / name)


def heard(samples: np.ndarray) -> np.ndarray:
    return features("a.wav", samples, RATE, RATE, 7600.0).astype(np.float64)


@pytest.mark.parametrize(("gain", "offset"), [(-1.0, 0.0), (-0.9, 0.0), (-0.5, 0.0), (-0.9, 0.4)])
def test_channels_that_cancel_out_leave_the_loudest(caplog, gain, offset):
    np.testing.assert_array_equal(heard(np.stack([VOICE, gain * VOICE], 1) + offset), heard(VOICE + offset))
    assert "a.wav: its channels cancel out; using channel 1 only" in caplog.text


@pytest.mark.parametrize("others", [[0.0], [0.005, 0.0, 0.0], [-0.005]])
def test_silent_channels_are_left_out(caplog, others):
    samples = np.stack([*(gain * VOICE for gain in others), VOICE], 1)
    np.testing.assert_array_equal(heard(samples), heard(VOICE))
    assert not caplog.text


@pytest.mark.parametrize("gain", [1.0, 0.5])
def test_channels_in_phase_are_mixed(caplog, gain):
    np.testing.assert_allclose(heard(np.stack([VOICE, gain * VOICE], 1)), heard(VOICE * (1 + gain) / 2), atol=0.02)
    assert not caplog.text


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_samples_in_units_of_16_bits_are_scaled(caplog, kind):
    voice = np.round(np.random.default_rng(1).uniform(-1, 1, RATE) * 2**15)
    np.testing.assert_allclose(heard(voice.clip(-(2**15), 2**15 - 1).astype(kind)), heard(voice / 2**15), atol=0.02)
    assert "a.wav: has samples of 16 bits" in caplog.text
    with pytest.raises(UserError, match="samples that are not finite or far beyond"):
        heard(voice * 256)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64])
@pytest.mark.parametrize("loudest", [1.0, 0.1])
def test_integers_are_scaled_by_their_type(caplog, kind, loudest):
    voice = np.random.default_rng(1).uniform(-loudest, loudest, RATE)
    bits = 8 * np.dtype(kind).itemsize
    middle = 2 ** (bits - 1) if np.issubdtype(kind, np.unsignedinteger) else 0
    whole = (np.floor(voice * (2 ** (bits - 1) - 1)) + middle).astype(kind)
    differences = np.abs(heard(whole) - heard(voice))
    share = 0.99 if bits == 8 and SHIFT else 1  # 8 bits are coarse for a quiet voice
    assert np.quantile(differences, share) <= (0.5 if bits == 8 else 0.01)
    assert not caplog.text


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_wide_integers_of_16_bits_are_scaled_as_such(caplog, kind):
    voice = np.random.default_rng(1).integers(-(2**15), 2**15, RATE)
    np.testing.assert_array_equal(heard(voice.astype(kind)), heard(voice.astype(np.int16)))
    assert f"a.wav: has samples of 16 bits in integers of {8 * np.dtype(kind).itemsize}" in caplog.text


@pytest.mark.parametrize("value", [2**15, -(2**15) - 1])
def test_integers_beyond_16_bits_are_scaled_by_their_type(caplog, value):
    voice = np.random.default_rng(1).integers(-(2**15), 2**15, RATE).astype(np.int32)
    voice[0] = value
    np.testing.assert_array_equal(heard(voice), heard(voice / 2**31))
    assert "16 bits" not in caplog.text


@pytest.mark.parametrize(
    ("kind", "subtype"), [("WAV", "PCM_16"), ("WAV", "PCM_24"), ("WAVEX", "FLOAT"), ("AU", "ULAW")]
)
def test_recording_that_is_cut_off_is_logged(tmp_path, caplog, kind, subtype):
    path = tmp_path / "a.wav"
    soundfile.write(path, VOICE, RATE, format=kind, subtype=subtype)
    whole, rate = read_sound(path)
    assert (len(whole), rate) == (RATE, RATE) and not caplog.text
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert 0 < len(read_sound(path)[0]) < RATE / 2
    assert f"{path}: its header says " in caplog.text and "is it cut off?" in caplog.text


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0xFFFFFFDB, 0x80000000, 0x7FFFFFFF, 0x7FFFEFDC])
def test_recording_of_a_stream_has_no_size_to_check(tmp_path, caplog, size):
    path = tmp_path / "a.wav"
    soundfile.write(path, np.zeros(RATE), RATE)
    content = path.read_bytes()
    path.write_bytes(content[:4] + b"\xff" * 4 + content[8:40] + struct.pack("<I", size) + content[44:])
    assert len(read_sound(path)[0]) == RATE and not caplog.text


@pytest.mark.parametrize(
    ("gain", "offset", "said"),
    [
        (1.0, 0.5, r"a\.wav: has a constant offset of 0\.(49\d|5|50\d), above its sound"),
        (1.0, -0.5, r"a\.wav: has a constant offset of 0\.(49\d|5|50\d), above its sound"),
        (1.0, 0.05, ""),
        (15.0, 0.0, "beyond ±1; if its samples have 16 bits, divide them by 32768"),
        (2e-4, 0.0, "a.wav: is silent"),
        (0.0, 0.0, "a.wav: is silent"),
        (1e-2, 0.0, ""),
    ],
)
def test_odd_levels_are_logged(caplog, gain, offset, said):
    heard(np.random.default_rng(1).uniform(-0.3, 0.3, RATE) * gain + offset)
    assert re.search(said, caplog.text) if said else not caplog.text
