"""From text to features: speech is a function of the dataset file, and each fault of an utterance is counted."""

import json
import os
import zipfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import soundfile
from own_speech import RATE, own, record, write_manifests, write_noise

from pipeline.core.digests import sha256_file
from pipeline.core.errors import UserError
from pipeline.core.schema import validate
from pipeline.data.dataset import Dataset, ReadAloudDataset, TextPart
from pipeline.data.encoded_files import NOISE_STEM
from pipeline.data.fetch import download
from pipeline.data.sequence_store import FEATURES, FrameStore, TokenStore
from pipeline.data.speech.audio import RejectedError, read_audio
from pipeline.data.speech.collect_text import collect_text, part_lines
from pipeline.data.speech.encode_text import Sentence, encode_text, select
from pipeline.data.speech.features import SplitCounts, compute_features
from pipeline.data.speech.frontend import KeptUtterance, MelFilters
from pipeline.data.speech.manifest import Utterance, manifest_path, read_manifest
from pipeline.data.speech.speak import Reader, Task, in_fresh_process, reader_of, speak
from pipeline.data.text.vocabulary import Alphabet, to_alphabet


def grammar(domains=("search",), **sizes) -> dict:
    sizes = {"train": 12, "dev": 6, "test": 6} | sizes
    return {"kind": "grammar", "domains": list(domains), "sizes": sizes, "seed": 3}


def read_aloud(**changes) -> ReadAloudDataset:
    readers = {"voices": ["gmw/en", "gmw/en-US+f2"], "words_per_minute": [180, 230], "pitch": [40, 60], "seed": 1}
    settings = {"kind": "read-aloud", "text": grammar(), "utterances": {"train": 5, "dev": 2, "test": 2}}
    settings |= {"readers": readers, "high_hz": 7600, "max_seconds": 6} | changes
    return validate(Dataset, record(**settings), "test")


def test_text_covers_all_splits_with_further_test_sets(tmp_path):
    with pytest.raises(UserError, match="split test2 has no name under further_test_sets"):
        read_aloud(text=grammar(test2=4))
    dataset = read_aloud(text=grammar(test2=4), further_test_sets=["another"])
    collect_text(dataset, tmp_path, tmp_path, None)
    chosen = select(dataset, tmp_path, {})
    assert list(chosen) == ["test2", "test", "dev", "train"] and all(split.sentences for split in chosen.values())


def test_a_pitch_outside_the_described_range_is_refused():
    readers = read_aloud().readers.model_dump()
    assert read_aloud(readers=readers | {"pitch": [1, 99]}).readers.pitch == (1, 99)
    for pitch in ([0, 50], [50, 100]):
        with pytest.raises(UserError, match=r"readers\.pitch"):
            read_aloud(readers=readers | {"pitch": pitch})


@pytest.mark.parametrize("first", [1, 9])
def test_copies_of_members_are_removed(tmp_path, monkeypatch, first):
    here = os.uname().nodename
    dead, own, alive = (
        tmp_path / f"raw/.unpacked.{process}.tmp"
        for process in (f"{here}.{2**22 + 1}", f"{here}.{os.getpid()}", "elsewhere.1")
    )
    (dead / "train-0").mkdir(parents=True)
    alive.mkdir()
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("T/a.txt", "one\ntwo\n")
    part = {"source": "t.zip", "member": "T/*.txt", "first": first}
    text = {"sources": {"t.zip": {"urls": ["http://127.0.0.1:9/t.zip"], "sha256": "0" * 64}}}
    text |= {"kind": "fetched", "splits": {split: [part] for split in ("train", "dev", "test")}}
    dataset = validate(Dataset, record(kind="characters", text=text), "test")
    monkeypatch.setattr(download, "fetch_all", lambda *_: {"t.zip": tmp_path / "t.zip"})
    with nullcontext() if first == 1 else pytest.raises(UserError, match="has no line 9"):
        collect_text(dataset, tmp_path, tmp_path, None)
    assert not dead.exists() and not own.exists() and alive.exists()
    assert first != 1 or (tmp_path / "raw/dev.en").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("lines", [None, 2])
def test_copies_of_a_part_are_removed_after_its_last_line(tmp_path, lines):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("T/a.txt", "one\ntwo\n")
    part = TextPart(source="t.zip", member="T/*.txt", lines=lines)
    found = part_lines(part, tmp_path / "t.zip", tmp_path / "copies")
    assert next(found) == "one" and (tmp_path / "copies").is_dir()
    assert [*found] == ["two"] and not (tmp_path / "copies").exists()


def test_spelling_keeps_letters_apostrophes_and_spaces():
    assert to_alphabet("Don’t  stop—it's Café!") == ("don't stop it's cafe", "")
    assert to_alphabet("two (2) cats, 5%") == ("two cats", "%25")
    assert to_alphabet(" ' - ") == ("", "")
    rng, alphabet = np.random.default_rng(2), Alphabet()
    for _ in range(50):
        text = " ".join("".join(rng.choice(list("abz' "), 20)).split())
        flat, lengths = alphabet.flat([text, "ab"])
        assert lengths.tolist() == [len(text), 2]
        assert alphabet.decode(np.split(flat, [len(text)])) == [text, "ab"]


def test_reading_aloud_is_a_function_of_the_dataset_file(tmp_path):
    dataset = read_aloud()
    for folder, processes in (("one", 1), ("two", 2)):
        collect_text(dataset, tmp_path, tmp_path / folder, None)
        speak(dataset, tmp_path / folder, processes)
        manifests = {split: manifest_path(tmp_path / folder, split) for split in dataset.split_names}
        compute_features(dataset, manifests, tmp_path / folder, processes)
    one, two = (
        {path.relative_to(folder): sha256_file(path) for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "one", tmp_path / "two")
    )
    assert one == two and len([path for path in one if path.suffix == ".flac"]) == 9
    corpus = json.loads((tmp_path / "one/encoded/corpus.json").read_text())
    assert corpus["kind"] == "speech" and corpus["splits"]["train"]["pairs"] == 5
    utterances = list(read_manifest(manifest_path(tmp_path / "one", "train")))
    lasting = [soundfile.info(utterance.audio).duration for utterance in utterances]
    assert [utterance.seconds for utterance in utterances] == pytest.approx(lasting, abs=0.01) and min(lasting) > 0.2
    text = Alphabet().decode(list(TokenStore(tmp_path / "one/encoded/train.tgt")))
    assert text == [utterance.text for utterance in utterances] and all(not to_alphabet(line)[1] for line in text)
    frames = np.concatenate(list(FrameStore(tmp_path / "one/encoded/train", FEATURES))).astype(np.float64)
    np.testing.assert_allclose(corpus["statistics"]["mean"], frames.mean(0), rtol=1e-9)
    np.testing.assert_allclose(corpus["statistics"]["deviation"], frames.std(0), rtol=1e-6)
    assert frames.std() > 1 and np.isfinite(frames).all()
    assert len(FrameStore(tmp_path / "one/encoded" / NOISE_STEM, FEATURES)) > 9


def test_reader_is_independent_of_text_and_all_voices_occur():
    pool = read_aloud().readers
    drawn = [reader_of(pool, "train", number) for number in range(60)]
    assert drawn == [reader_of(pool, "train", number) for number in range(60)]
    assert {reader.voice for reader in drawn} == set(pool.voices)
    assert all(180 <= reader.words_per_minute <= 230 and 40 <= reader.pitch <= 60 for reader in drawn)
    assert len({reader.words_per_minute for reader in drawn}) > 10


def test_statistics_do_not_depend_on_the_order_of_frames():
    rng = np.random.default_rng(3)
    frames = (rng.normal(-4, 0.02, (60, FEATURES)) * rng.uniform(0.1, 50, FEATURES)).astype(np.float32)
    frames[:, 7] = 2.5
    kept, utterance = SplitCounts(), Utterance(Path("a.wav"), "a", "me", "x", 1.0)
    for part in np.split(frames, [1, 20, 50]):
        kept.add(utterance, KeptUtterance("a b", part, loudness=0.5))
    found, exact = kept.moments.statistics(), frames.astype(np.float64)
    np.testing.assert_allclose(found.mean, exact.mean(0))
    varied = np.arange(FEATURES) != 7
    np.testing.assert_allclose(np.array(found.deviation)[varied], exact.std(0)[varied], rtol=1e-4, atol=1e-4)
    assert 0 < found.deviation[7] < 1e-3
    assert (kept.words, kept.characters, kept.moments.frames, kept.utterances) == (8, 12, 60, 4)


def test_filters_end_at_half_the_rate_at_most():
    assert own(high_hz=RATE / 2).high_hz == RATE / 2
    for high in (RATE / 2 + 1, RATE, 3 * RATE):
        with pytest.raises(UserError, match=f"high_hz {high:.1f} is above half the sample_rate {RATE}"):
            own(high_hz=high)


def test_an_unknown_voice_is_named(tmp_path):
    dataset = read_aloud(readers=read_aloud().readers.model_dump(mode="json") | {"voices": ["gmw/klingon"]})
    collect_text(dataset, tmp_path, tmp_path, None)
    with pytest.raises(UserError, match="no voice 'gmw/klingon'"):
        speak(dataset, tmp_path, 1)


def test_a_library_of_another_sample_rate_is_refused(monkeypatch):
    monkeypatch.setattr("pipeline.data.speech.speak.SAMPLE_RATE", 44100)
    with pytest.raises(UserError, match="starts at 22050 Hz, not 44100"):
        in_fresh_process([], "search")


def test_any_apostrophe_is_read_aloud_as_one(tmp_path):
    texts, reader = ("don't", "don’t"), Reader("gmw/en", 200, 50)
    tasks = ([Task(tmp_path / "a.flac", Sentence(text, "don't"), reader)] for text in texts)
    plain, typographic = (in_fresh_process(task, "search") for task in tasks)
    assert plain == typographic


def test_language_model_text_excludes_spoken_test_sentences(tmp_path):
    speech = read_aloud(text=grammar(["film"]))
    full = validate(Dataset, record(kind="characters", text=grammar(["search", "film"], train=200)), "test")
    for name, dataset in (("speech", speech), ("text", full)):
        collect_text(dataset, tmp_path, tmp_path / name, None)
    spoken = select(speech, tmp_path / "speech", {})
    encode_text(full, tmp_path / "text")
    train = set((tmp_path / "text/prepared/train.en").read_text().split("\n"))
    held_out = {utterance.spelt for split in ("dev", "test") for utterance in spoken[split].sentences}
    assert held_out and not held_out & train
    assert {utterance.spelt for utterance in spoken["train"].sentences} <= train


def test_left_out_sentences_are_counted_by_reason(tmp_path):
    dataset = validate(Dataset, record(kind="characters", text=grammar(), max_characters=10), "test")
    (tmp_path / "raw").mkdir()
    train = "seen once\nroute 66\n!\nfar too long a line\nfits\nFits\n"
    for split, text in {"test": "Seen once.\n", "dev": "a dev line\n", "train": train}.items():
        (tmp_path / f"raw/{split}.en").write_text(text)
    chosen = select(dataset, tmp_path, {})["train"]
    assert [utterance.spelt for utterance in chosen.sentences] == ["fits"] and chosen.read == 6
    assert chosen.record()["rejected"] == {"repeated": 2, "outside the alphabet": 1, "empty": 1, "too long": 1}
    assert chosen.record()["examples"][:2] == ["repeated: seen once", "outside the alphabet: route 66"]
    with pytest.raises(UserError, match="1 sentence of train fit, but 4 are needed"):
        select(read_aloud(max_characters=10), tmp_path, {"train": 4})


def test_each_fault_of_an_utterance_is_counted_by_its_reason(tmp_path, caplog):
    sound, cut = write_noise(tmp_path / "a.wav", 1.0), write_noise(tmp_path / "cut.wav", 0.5)
    broken = tmp_path / "broken.flac"
    broken.write_bytes(b"fLaC and no more")
    faults = {
        "missing audio": (tmp_path / "nowhere.wav", "a", 1.0),
        "unreadable audio": (broken, "a", 0.0),  # its length is unknown
        "wrong rate": (write_noise(tmp_path / "fast.wav", 1.0, rate=16000), "a", 1.0),
        "several channels": (write_noise(tmp_path / "two.wav", 1.0, channels=2), "a", 1.0),
        "truncated audio": (cut, "a", 1.0),
        "too long": (sound, "a", 2.5),
        "too short": (sound, "a", 0.05),
        "empty text": (sound, "?!", 1.0),
        "outside the alphabet": (sound, "a 4 b", 1.0),
    }
    bad = [Utterance(path, text, "me", "x", seconds) for path, text, seconds in faults.values()]

    def good(split):
        path = write_noise(tmp_path / f"{split}-good.wav", 1.0)
        return [Utterance(path, "Hello, world", "me", "x", 1.0), Utterance(path, "again", "you", "x", 0.5, start=0.25)]

    manifests = write_manifests(tmp_path, train=good("train") + bad, dev=good("dev"))
    compute_features(own(), manifests, tmp_path / "corpus", 1)
    assert "train: 9 of 11 left out: 1 missing audio, 1 unreadable audio," in caplog.text
    report = json.loads((tmp_path / "corpus/prepared/report.json").read_text())["splits"]["train"]
    assert report["rejected"] == dict.fromkeys(faults, 1) and report["kept"] == 2
    assert (tmp_path / "corpus/prepared/train.en").read_text() == "hello world\nagain\n"
    assert (tmp_path / "corpus/prepared/train.speakers").read_text() == "me\nyou\n"
    assert FrameStore(tmp_path / "corpus/encoded/dev", FEATURES).lengths().tolist() == [98, 48]
    expected = own(expected={"train": {"utterances": 3}})
    with pytest.raises(UserError, match=r"2 utterances kept, expected 3 .*1 missing audio"):
        compute_features(expected, manifests, tmp_path / "corpus", 1)


def test_manifest_of_windows_or_a_spreadsheet_is_read(tmp_path):
    plain = "audio\ttext\tspeaker\tdomain\tseconds\na.wav\thello\tme\tx\t1.5\nb.wav\tyes\tyou\tx\t2\n"
    (tmp_path / "plain.tsv").write_text(plain)
    (tmp_path / "sheet.tsv").write_bytes(b"\xef\xbb\xbf" + plain.replace("\n", "\r\n").encode() + b"\r\n")
    found = list(read_manifest(tmp_path / "sheet.tsv"))
    assert len(found) == 2 and found == list(read_manifest(tmp_path / "plain.tsv"))


def test_a_manifest_is_closed(tmp_path):
    path = tmp_path / "train.tsv"
    good = "audio\ttext\tspeaker\tdomain\tseconds\n"
    for content, message in {
        "audio\ttext\n": "missing: domain, seconds, speaker",
        good.replace("\n", "\tmood\n"): "unknown: mood",
        good + "a\tb\tc\td\n": "line 2: 4 fields, expected 5",
        good + "a\tb\tc\td\tlong\n": "line 2: seconds: 'long' is not a number",
        good + "a\tb\tc\td\t-1\n": "line 2: seconds: '-1' is not a number",
    }.items():
        path.write_text(content)
        with pytest.raises(UserError, match=message):
            list(read_manifest(path))
    path.write_bytes(good.encode() + b"\xff\tb\tc\td\t1\n")
    with pytest.raises(UserError, match="not UTF-8"):
        list(read_manifest(path))
    with pytest.raises(UserError, match="a manifest lists audio, text"):
        list(read_manifest(tmp_path / "dev.tsv"))


def test_a_stretch_of_an_ogg_file_is_read(tmp_path):
    path = write_noise(tmp_path / "talk.ogg", 2.0)
    whole = read_audio(Utterance(path, "a", "me", "x", 2.0), RATE)
    stretch = read_audio(Utterance(path, "a", "me", "x", 0.5, start=0.75), RATE)
    assert len(whole) == 2 * RATE and np.allclose(stretch, whole[round(0.75 * RATE) : round(1.25 * RATE)], atol=1e-4)


def test_sphere_segment_is_read_and_shorten_is_refused(tmp_path):
    samples = np.random.default_rng(5).integers(-3000, 3000, RATE * 2).astype(np.int16)
    path = tmp_path / "talk.sph"
    head = ["NIST_1A", "   1024", "channel_count -i 1", f"sample_count -i {len(samples)}", f"sample_rate -i {RATE}"]
    head += ["sample_n_bytes -i 2", "sample_byte_format -s2 01", "sample_sig_bits -i 16", "sample_coding -s3 pcm"]
    head += ["end_head"]
    header = ("\n".join(head) + "\n").ljust(1024).encode()
    path.write_bytes(header + samples.astype("<i2").tobytes())
    heard = read_audio(Utterance(path, "a", "b", "c", 0.5, start=1.25), RATE)
    np.testing.assert_array_equal(heard, samples[10000:14000].astype(np.float32) / 32768)
    path.write_bytes(header.replace(b"-s3 pcm", b"-s26 pcm,embedded-shorten-v2.00")[:1024] + b"x")
    with pytest.raises(RejectedError, match="shorten"):
        read_audio(Utterance(path, "a", "b", "c", 0.5), RATE)


def test_a_tone_is_loudest_in_the_filter_of_its_frequency():
    seconds, filters = np.arange(RATE) / RATE, MelFilters(RATE, 3800)
    edges = 1127 * np.log1p(np.array([20, 3800]) / 700)
    centres = 700 * np.expm1(np.linspace(*edges, FEATURES + 2)[1:-1] / 1127)
    for hz in (200, 800, 3000):
        loudness = filters(np.sin(2 * np.pi * hz * seconds).astype(np.float32)).mean(0)
        assert loudness.argmax() == np.abs(centres - hz).argmin()
    shapes = [filters(np.zeros(count, np.float32)).shape for count in (RATE, 10)]
    assert shapes == [(98, FEATURES), (0, FEATURES)]


def test_titles_are_spelt_as_spoken():
    assert to_alphabet("Mr. Keller and Mrs Brown's mrs") == ("mister keller and missus brown's missus", "")
    assert to_alphabet("mr amrita's mrsa")[0] == "mister amrita's mrsa"


@pytest.mark.parametrize("between", ["…", "...", "..", "… ", " ...", "‥", "—", "...—"])
def test_words_that_only_dots_or_dashes_part_stay_two_words(between):
    assert to_alphabet(f"Well{between}maybe, Anna...") == to_alphabet("well maybe anna") == ("well maybe anna", "")


def test_long_line_with_one_strange_character_is_spelt_fast():
    line = "thequickbrownfoxjumpsoverthelazydog" * 3  # nested repetition would try every way to cut it
    assert to_alphabet(line + "5") == (line, "5")
