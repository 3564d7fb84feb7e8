"""Bad samples and repeated utterances are left out of a corpus and reported."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile
from own_speech import RATE, own, write_manifests, write_noise

from pipeline.core.errors import UserError
from pipeline.core.records.corpus import Statistics
from pipeline.data.encoded_files import NOISE_STEM
from pipeline.data.sequence_store import FEATURES, FrameStore
from pipeline.data.speech.audio import RejectedError, fault_of, read_audio, seconds_of
from pipeline.data.speech.features import compute_features
from pipeline.data.speech.frontend import BABBLES, VOICES
from pipeline.data.speech.manifest import Utterance
from reprise.new_data.recordings import read_table


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (np.nan, "samples that are not finite"),
        (-np.inf, "samples that are not finite"),
        (1e300, "samples that are not finite"),  # beyond float32
        (1e30, "absurd samples"),  # its power is beyond float32
        (1e9, "absurd samples"),
    ],
)
def test_recording_with_a_bad_sample_is_left_out_alone(tmp_path, sample, reason):
    samples = np.random.default_rng(1).normal(0, 0.1, RATE)
    samples[RATE // 2] = sample
    soundfile.write(tmp_path / "bad.wav", samples, RATE, subtype="DOUBLE")
    bad = Utterance(tmp_path / "bad.wav", "spoilt", "me", "x", 1.0)
    good = Utterance(write_noise(tmp_path / "good.wav", 1.0), "good", "me", "x", 1.0)
    corpus = compute_features(own(), write_manifests(tmp_path, train=[bad, good]), tmp_path / "corpus", 1)
    assert np.isfinite([corpus.statistics.mean, corpus.statistics.deviation]).all()
    report = report_of(tmp_path)["splits"]["train"]
    assert report["rejected"] == {reason: 1} and report["kept"] == 1
    assert np.isfinite(FrameStore(tmp_path / "corpus/encoded" / NOISE_STEM, FEATURES).values).all()


def test_empty_recordings_are_no_voices_of_the_babble(tmp_path):
    """They come first, as many as all babble has voices."""
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), RATE)
    empty = Utterance(tmp_path / "empty.wav", "silent", "me", "x", 0.0)
    good = Utterance(write_noise(tmp_path / "good.wav", 1.0), "good", "me", "x", 1.0)
    noises = []
    for train in ([good], [empty] * BABBLES * VOICES + [good]):
        compute_features(own(), write_manifests(tmp_path, train=train), tmp_path / "corpus", 1)
        noises.append(FrameStore(tmp_path / "corpus/encoded" / NOISE_STEM, FEATURES).values.tobytes())
    assert noises[0] == noises[1]


def report_of(folder):
    return json.loads((folder / "corpus/prepared/report.json").read_text())


@pytest.mark.parametrize("name", ["a" * 300, "a\0b", "x/" * 3000 + "y", "", ".", "a.wav/b", "new\nline", "none.wav"])
def test_audio_with_an_impossible_name_is_missing(tmp_path, name):
    write_noise(tmp_path / "a.wav", 1.0)
    if name in ("", "."):
        with pytest.raises(UserError, match="Is a directory"):
            seconds_of(tmp_path / name)
        return
    assert seconds_of(tmp_path / name) == 0
    assert fault_of(tmp_path / name) == "missing audio"
    with pytest.raises(RejectedError, match="missing audio"):
        read_audio(Utterance(tmp_path / name, "word", "x", "y", 1.0, 0.0), 8000)


def listed(folder: Path, **splits: list[tuple[str, float]]) -> dict[str, Path]:
    """Write manifests of utterances of half a second, given as (file, start)."""

    def utterance(name, start):
        return Utterance(write_noise(folder / name, 1.0), "a", "me", "x", 0.5, start)

    return write_manifests(folder, **{split: [utterance(*row) for row in rows] for split, rows in splits.items()})


def test_flac_written_to_a_pipe_is_named(tmp_path):
    write_noise(tmp_path / "a.flac", 1.0)
    content = bytearray((tmp_path / "a.flac").read_bytes())
    content[21] &= 0xF0  # RFC 9639, 8.2: 36 bits up to byte 26 are the number of samples, 0 = unknown
    content[22:26] = bytes(4)
    (tmp_path / "a.flac").write_bytes(content)
    assert seconds_of(tmp_path / "a.flac") == 0
    assert fault_of(tmp_path / "a.flac") == "FLAC audio without its length, to be converted"
    (tmp_path / "t.tsv").write_text("audio\ttext\na.flac\thello\n")
    with pytest.raises(UserError, match=r"t\.tsv: line 2: .*a\.flac does not state its length"):
        read_table(tmp_path / "t.tsv", "mine")
    (tmp_path / "t.tsv").write_text("audio\ttext\tseconds\na.flac\thello\t0.5\n")
    (stated,) = read_table(tmp_path / "t.tsv", "mine")
    assert len(read_audio(stated, RATE)) == RATE / 2


@pytest.mark.parametrize("lost", [1, RATE // 100, RATE], ids=["byte", "5 ms", "half"])
def test_recording_that_is_cut_off_is_refused_by_its_line(tmp_path, lost):
    """A sample has two bytes. A length in the table says what the transcript covers."""
    write_noise(tmp_path / "a.wav", 1.0)
    content = (tmp_path / "a.wav").read_bytes()
    (tmp_path / "a.wav").write_bytes(content[:-lost])
    (tmp_path / "t.tsv").write_text("audio\ttext\na.wav\thello\n")
    if lost < RATE:
        assert len(read_table(tmp_path / "t.tsv", "mine")) == 1
        return
    with pytest.raises(UserError, match=r"t\.tsv: line 2: .*a\.wav has 0\.50 of the 1\.00 s that its header says"):
        read_table(tmp_path / "t.tsv", "mine")
    (tmp_path / "t.tsv").write_text("audio\ttext\tseconds\na.wav\thello\t0.5\n")
    assert [found.seconds for found in read_table(tmp_path / "t.tsv", "mine")] == [0.5]


def test_repeated_utterance_is_left_out_and_counted(tmp_path):
    train = [("a.wav", 0), ("b.wav", 0), ("a.wav", 0.5), ("a.wav", 0), ("sub/../a.wav", 0)]
    compute_features(own(), listed(tmp_path, train=train, dev=[("c.wav", 0)] * 2), tmp_path / "corpus", 1)
    report = report_of(tmp_path)["splits"]
    rejected = {split: (found["rejected"], found["kept"]) for split, found in report.items()}
    assert rejected == {"train": ({"listed twice": 2}, 3), "dev": ({"listed twice": 1}, 1), "test": ({}, 1)}
    assert len(FrameStore(tmp_path / "corpus/encoded/train", FEATURES)) == 3


def test_shared_utterances_are_reported_or_refused_in_train(tmp_path):
    splits = {"train": [("a.wav", 0)], "dev": [("b.wav", 0), ("c.wav", 0.25)], "test": [("c.wav", 0.25)]}
    compute_features(own(), listed(tmp_path, **splits), tmp_path / "corpus", 1)
    report = report_of(tmp_path)
    assert report["shared"] == 1 and report["shared_examples"] == ["c.wav at 0.25 s: dev, test"]
    for split in ("dev", "test"):
        manifests = listed(tmp_path, **splits | {split: [("x.wav", 0), ("./a.wav", 0)]})
        with pytest.raises(UserError, match=rf"1 utterance is in other splits too \(a.wav at 0 s: train, {split}"):
            compute_features(own(), manifests, tmp_path / "corpus", 1)
    other_start = listed(tmp_path, **splits | {"test": [("a.wav", 0.5)]})
    assert compute_features(own(), other_start, tmp_path / "corpus", 1).splits["train"].pairs == 1


@pytest.mark.parametrize(
    "fault", [{"high_hz": 3.8}, {"sample_rate": 8}, {"sample_rate": 10**12}, {"speeds": [1.0, 1e-6]}, {"speeds": [110]}]
)
def test_rates_that_no_recording_has_are_refused_by_key(fault):
    with pytest.raises(UserError, match=rf"{next(iter(fault))}.*: Input should be (greater|less) than or equal to"):
        own(**fault)


RAMP = np.linspace(-0.5, 0.5, RATE)


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (RAMP, ""),
        (RAMP * 2**15, "1 of 2 utterances are in 16-bit units and are divided by 32768"),
        (RAMP * 2**7, r"divided by 32768 \(none exceeds 64: if they are in 8-bit units, divide them by 128 first\)"),
        (np.full(RATE, 2 / 2**15), "1 of 2 utterances are silent"),
    ],
    ids=["usual", "16 bits", "8 bits", "silent"],
)
def test_utterances_of_odd_levels_are_counted_in_the_log(tmp_path, samples, said, caplog):
    soundfile.write(tmp_path / "odd.wav", samples, RATE, subtype="FLOAT")
    odd = Utterance(tmp_path / "odd.wav", "odd", "me", "x", 1.0)
    plain = Utterance(write_noise(tmp_path / "plain.wav", 1.0), "good", "me", "x", 1.0)
    compute_features(own(), write_manifests(tmp_path, dev=[odd, plain]), tmp_path / "corpus", 1)
    lines = [line for line in caplog.messages if "16-bit units" in line or "silent" in line]
    assert len(lines) == bool(said)
    assert all(re.search(rf"^x dev: .*{said}$", line) for line in lines)


def test_recordings_in_units_of_16_bits_are_scaled(tmp_path):
    samples = np.random.default_rng(1).normal(0, 0.1, RATE)
    found = []
    for name, scale in (("plain", 1.0), ("units", 2.0**15)):
        soundfile.write(tmp_path / f"{name}.wav", samples * scale, RATE, subtype="DOUBLE")
        found.append(read_audio(Utterance(tmp_path / f"{name}.wav", "a", "me", "x", 1.0), RATE))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_statistics_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="finite"):
        Statistics(mean=[float("nan")], deviation=[1.0])
