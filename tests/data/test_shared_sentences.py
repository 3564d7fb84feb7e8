"""Sentences and speakers that several splits share are counted in the report and logged."""

import random

import pytest
from own_speech import own, write_noise

from pipeline.core.errors import UserError
from pipeline.core.records.corpus import PreparedSpeech
from pipeline.data.speech.features import compute_features
from pipeline.data.speech.manifest import Utterance, write_manifest
from pipeline.data.text.checks import comparison_key, shared_sentences


def test_shared_sentences_equal_the_intersections_of_sets(tmp_path, caplog):
    rng = random.Random()
    splits = {}
    for split, count in (("train", 300), ("dev", 40), ("test", 40)):
        splits[split] = [f"sentence {rng.randrange(200)}" for _ in range(count)]
        (tmp_path / split).write_text("".join(f"{line}\n" for line in splits[split]))
    expected = {
        name: len(set(splits[first]) & set(splits[other]))
        for name, first, other in (("dev and train", "dev", "train"), ("test and train", "test", "train"))
    } | {"dev and test": len(set(splits["dev"]) & set(splits["test"]))}
    found = shared_sentences("toy", {split: tmp_path / split for split in splits})
    assert found == {name: count for name, count in expected.items() if count}
    assert f"toy: {found['dev and train']} sentences are in both dev and train" in caplog.text


def test_splits_that_share_nothing_have_nothing_to_report(tmp_path, caplog):
    for split in ("train", "dev"):
        (tmp_path / split).write_text(f"only in {split}\n")
    assert shared_sentences("toy", {split: tmp_path / split for split in ("train", "dev")}) == {}
    assert not caplog.text


def test_shared_speakers_are_reported_or_refused(tmp_path):
    manifests = {}
    for split, speaker in (("train", "ann"), ("dev", "bob"), ("test", "ann")):
        manifests[split] = tmp_path / f"{split}.tsv"
        sound = write_noise(tmp_path / f"{split}.wav", 1.0)
        write_manifest(manifests[split], [Utterance(sound, "a", speaker, "x", 1.0)])
    compute_features(own(), manifests, tmp_path / "corpus", 1)
    assert PreparedSpeech.read(tmp_path / "corpus/prepared/report.json").shared_speakers == ["ann: train, test"]
    with pytest.raises(UserError, match=r"1 speakers are in several splits \(ann: train, test\).*disjoint_speakers"):
        compute_features(own(disjoint_speakers=True), manifests, tmp_path / "corpus", 1)


FORMS = {
    "white space": ("two  dogs\u00a0run .", "two dogs run."),
    "invisible characters": ("two\u200b dogs\u00ad run\ufeff", "two dogs run"),
    "Unicode form": ("cafe\u0301 \u2167 \ufb01n", "café VIII fin"),
    "full width": ("ＡＢＣ１２３", "abc123"),
    "case": ("STRASSE İ ΣΑΣ", "straße i̇ σας"),
    "quotes and dashes": ("“It’s” – `no`", "\"It's\" - 'no'"),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_one_sentence_have_one_key(form):
    one, other = FORMS[form]
    assert comparison_key(one) == comparison_key(other)


def test_sentences_of_other_letters_have_other_keys(seed):
    letters = "abcdeéèêabcя你好123.!?"
    rng = random.Random(seed)
    lines = {"".join(rng.choices(letters, k=6)) for _ in range(300)}
    assert len({comparison_key(line) for line in lines}) == len(lines)


def test_sentences_shared_in_another_form_are_counted(tmp_path):
    (tmp_path / "train").write_text("My  neighbour WAITS.\ncafe\u0301\nother\n")
    (tmp_path / "test").write_text("My neighbour waits.\ncafé\nnew\n")
    assert shared_sentences("toy", {split: tmp_path / split for split in ("train", "test")}) == {"test and train": 2}
