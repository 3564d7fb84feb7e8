"""Packed models: archives that are unpacked or refused, foreign files, and exports."""

import io
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from fabricated import touch
from made_records import decoded, score_file
from packed_model import pack

from pipeline.config import DecodingConfig
from pipeline.core.digests import sha256_file, write_note
from pipeline.core.errors import UserError
from pipeline.models.architectures import build_model
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig
from reprise.__main__ import main as reprise
from reprise.ctranslate2 import export, length_exponent, plain_transformer
from reprise.opening import NamedDecoding, open_model, split_decoding
from reprise.portable import open_packed, pack_archive, scores_of, unpack, verify


def archive_of(path: Path, members: dict[str, bytes | None]) -> Path:
    """Write a .tar file; a member without content is a folder."""
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.size = tarfile.DIRTYPE if content is None else tarfile.REGTYPE, len(content or b"")
            tar.addfile(entry, io.BytesIO(content or b""))
    return path


def test_archive_that_starts_with_its_own_folder_is_unpacked(tmp_path):
    archive = archive_of(tmp_path / "model.tar", {".": None, "./model/model.json": b"{}"})
    assert (unpack(archive, tmp_path / "into") / "model.json").read_bytes() == b"{}"


def test_refused_archive_leaves_no_files_behind(tmp_path):
    archive = archive_of(tmp_path / "model.tar", {"model/a": b"a", "model/../../evil": b"b"})
    with pytest.raises(UserError, match="points outside its folder"):
        unpack(archive, tmp_path / "into")
    assert not list((tmp_path / "into").glob("*")) and not (tmp_path / "evil").exists()


@pytest.mark.parametrize("content", [b"a text", b"\xff\xfe no archive", {}, {".": None}, {"": b"x"}, None])
def test_unpack_of_no_packed_model_is_a_one_line_error(tmp_path, content):
    if isinstance(content, bytes):
        (tmp_path / "model.tar").write_bytes(content)
    elif content is not None:
        archive_of(tmp_path / "model.tar", content)
    said = "" if content is None else "can't be unpacked: .*not a packed model; name a .tar file"
    with pytest.raises(UserError, match=rf"model\.tar: {said}") as raised:
        unpack(tmp_path / "model.tar", tmp_path / "into")
    message = str(raised.value)
    assert "\n" not in message and "Errno" not in message and message.count("model.tar") == 1


def test_unpack_into_an_existing_folder_is_refused(tmp_path):
    archive = archive_of(tmp_path / "model.tar", {"model/model.json": b"{}"})
    unpack(archive, tmp_path)
    with pytest.raises(UserError, match=rf"model\.tar: can't be unpacked: {tmp_path}/model already exists; "):
        unpack(archive, tmp_path)


def test_unpack_prints_the_name_of_a_folder_escaped(tmp_path, capsys):
    packed = tmp_path / "\x9b31m\u202e"
    packed.mkdir()
    pack(packed)
    with tarfile.open(tmp_path / "model.tar", "w") as tar:
        tar.add(packed, packed.name)
    assert reprise(["unpack", str(tmp_path / "model.tar"), str(tmp_path / "into")]) == 0
    assert capsys.readouterr().out.startswith(rf"{tmp_path}/into/\x9b31m\u202e: 4 files are")


def test_open_model_on_an_archive_says_to_unpack_it_first(tmp_path):
    archive = archive_of(tmp_path / "model.tar", {"model/model.json": b"{}"})
    with pytest.raises(UserError, match=rf"run `reprise unpack {archive}`, then name the folder$"):
        open_model(archive, "", {}, None)


def test_an_archive_that_is_there_is_not_written_over(tmp_path):
    (tmp_path / "model.tar").write_bytes(b"of another model")
    with pytest.raises(UserError, match=r"model\.tar: already exists"):
        pack_archive(None, "", tmp_path / "model.tar")
    assert (tmp_path / "model.tar").read_bytes() == b"of another model"


def test_a_decoding_is_split_at_commas_and_first_equals_signs():
    assert split_decoding(" final, beam=1=2,,alpha=") == ("final", {"beam": "1=2", "alpha": ""})
    assert split_decoding("beam=8") == ("", {"beam": "8"}) and split_decoding("") == ("", {})


@pytest.mark.parametrize("twice", ["beam=1,beam=2", "final,beam=1,beam_size=1"])
def test_a_setting_of_a_decoding_that_is_given_twice_is_refused(twice):
    with pytest.raises(UserError, match="--decoding: beam_size: occurs 2 times"):
        split_decoding(twice)


@pytest.mark.parametrize("name", ["a" * 300, "a\0b", "x/" * 3000, "..", "", "model.json/x"])
def test_sums_of_impossible_names_are_refused_in_a_line(tmp_path, name):
    folder = pack(tmp_path)
    sums = folder / "SHA256SUMS"
    sums.write_text(sums.read_text() + f"{'0' * 64}  {name}\n")
    with pytest.raises(UserError, match="differs from the packed file; copy or download the model again"):
        open_packed(folder, threads=1)


def test_sums_that_are_no_text_make_no_packed_model(tmp_path):
    (tmp_path / "SHA256SUMS").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="so it is not a packed model"):
        verify(tmp_path)


@pytest.mark.parametrize(
    ("beam", "decoded_by", "measured_on", "training", "shown"),
    [
        (8, "ours", "ours", "ended", {"chrf", "perplexity"}),
        (8, "ours", "ours", None, {"chrf", "perplexity"}),
        (1, "ours", "ours", "ended", {"perplexity"}),
        (8, "old", "ours", "ended", {"perplexity"}),
        (8, None, "ours", "ended", {"perplexity"}),
        (8, "ours", "old", "ended", {"chrf"}),
        (8, "ours", "ours", "ended before", set()),
    ],
)
def test_model_card_has_scores_of_its_weights_and_decoding_only(
    tmp_path, beam, decoded_by, measured_on, training, shown
):
    for measure, metric, weights in (("scores", "chrf", None), ("perplexities", "perplexity", measured_on)):
        value = {metric: {"value": 50.0, "low": None, "high": None, "signature": "toy"}}
        path = touch(tmp_path / measure / "final/test.npz").with_suffix(".json")
        score_file(value, 10).model_copy(update={"weights": weights, "training": training}).write(path)
    if decoded_by:
        output = touch(tmp_path / "translations/final/test.tok")
        decoded(decoding={"beam_size": 8}, weights=decoded_by).write(output.with_suffix(".json"))
    chosen = NamedDecoding("final", DecodingConfig(beam_size=beam), tmp_path / "model.safetensors", None)
    assert {*scores_of(tmp_path, chosen, "ours", "ended").get("toy", {})} == shown


def test_model_card_has_no_score_of_an_earlier_output(tmp_path):
    output = touch(tmp_path / "translations/final/test.tok")
    decoded(decoding={"beam_size": 8}, weights="ours").write(output.with_suffix(".json"))
    value = {"chrf": {"value": 50.0, "low": None, "high": None, "signature": "toy"}}
    path = touch(tmp_path / "scores/final/test.npz").with_suffix(".json")
    score_file(value, 10).model_copy(update={"inputs": {str(output): sha256_file(output)}}).write(path)
    chosen = NamedDecoding("final", DecodingConfig(beam_size=8), tmp_path / "model.safetensors", None)
    write_note(output)
    assert scores_of(tmp_path, chosen, "ours", "ended")
    output.write_text("another\n")
    write_note(output)
    assert not scores_of(tmp_path, chosen, "ours", "ended")


def test_a_model_whose_files_belong_together_translates(tmp_path):
    assert len(open_packed(pack(tmp_path), threads=1).translate(["abcd efgh"])) == 1


@pytest.mark.parametrize("cell", [float("nan"), None, b"abcd"])
def test_cell_of_a_data_frame_that_is_no_text_is_shown(tmp_path, cell):
    model = open_packed(pack(tmp_path), threads=1)
    with pytest.raises(UserError, match=f"expected lines of text, got {cell!r}; "):
        model.translate(["abcd", cell])


@pytest.mark.parametrize("bound", ["limit", "positions"])
def test_line_of_too_many_subwords_is_named(tmp_path, monkeypatch, bound):
    model, most = open_packed(pack(tmp_path), threads=1), "abcd efgh"
    subwords = len(model.symbols[0].model.encode(most))
    if bound == "limit":
        monkeypatch.setattr("reprise.model.LONGEST_SOURCE", subwords)
    else:
        model.trained.model.max_positions = subwords + 1  # the end of the sentence needs one
    assert len(model.translate([most])) == 1
    with pytest.raises(UserError, match=r"^2 lines have more than \d subwords; .*, unlike line 2$"):
        model.translate(["", f"{most} a", most, "a " * 50])


@pytest.mark.parametrize("lie", [{"subwords": 90}, {"form": "speech"}, {"sample_rate": 8000, "high_hz": 3800.0}])
def test_a_model_with_the_parts_of_another_is_refused_in_a_line(tmp_path, lie):
    with pytest.raises(UserError, match=r"model\.json: belongs to another model than the files beside it"):
        open_packed(pack(tmp_path, **lie), threads=1)


@pytest.mark.parametrize(
    "lie",
    [
        {"model": {"d_model": 2**40}},
        {"model": {"d_ff": 2**20}},
        {"model": {"num_layers": 10**9}},
        {"model": {"d_ff": 2**12}},
        {"model": {"positions": "learned", "max_positions": 10**8}},
        {"corpus_says": 10**9},
    ],
)
def test_packed_model_with_absurd_sizes_is_refused(tmp_path, lie):
    bounded = r"model\.json: .*: Input should be less than or equal to \d+, got \d+"
    missing = r"model\.safetensors: holds fewer weights than the model that model\.json describes"
    with pytest.raises(UserError, match=f"{bounded}|{missing}"):
        open_packed(pack(tmp_path, **lie), threads=1)


def test_packed_model_of_other_code_names_that_as_a_cause(tmp_path):
    fault = (
        r"model\.safetensors: holds other tensors than the model, first .*; copy it again, or use the code that packed"
    )
    with pytest.raises(UserError, match=fault):
        open_packed(pack(tmp_path, model={"d_ff": 1}), threads=1)


def test_line_without_a_visible_character_is_not_translated(tmp_path):
    """sentencepiece leaves a zero-width space out, so nothing is left of the line."""
    model = open_packed(pack(tmp_path), "beam=1", threads=1)
    alone, *others = model.translate(["\u200b", "abcd", "dcba"])
    assert alone == "" == model.translate(["\u200b"])[0]
    assert others == model.translate(["abcd", "dcba"])


SMALL = {"num_layers": 1, "d_model": 16, "d_ff": 16, "num_heads": 4}
PLAIN = {"architecture": "transformer", **SMALL}


def untrained(config, **decoding) -> SimpleNamespace:
    """Return a model as an export reads it, before any training."""
    trained = SimpleNamespace(spec=SimpleNamespace(model=config, fusion=None), model=build_model(config, (20, 20)))
    return SimpleNamespace(name="run", trained=trained, symbols=(None, None), config=DecodingConfig(**decoding))


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (TransformerConfig(**PLAIN, d_k=3), "heads are not d_model / num_heads wide"),
        (TransformerConfig(**PLAIN, decoder_order="self-ffn-cross"), "decoder reads the source last"),
        (WeightedTransformerConfig(architecture="weighted_transformer", **SMALL), "is a weighted_transformer"),
    ],
)
def test_export_refuses_models_that_ctranslate2_does_not_have(config, why):
    with pytest.raises(UserError, match=why):
        plain_transformer(untrained(config))


def test_export_does_not_leave_out_a_language_model(tmp_path):
    model = untrained(TransformerConfig(**PLAIN), ngram_order=3, lm_weight=0.2)
    with pytest.raises(UserError, match="decoding uses a language model"):
        export(model, tmp_path / "ct2")


@pytest.mark.parametrize(
    ("decoding", "why"),
    [
        ({"length_penalty": 0.6}, r"ranked by \(\(5 \+ length\) / 6\)\^0.6, CTranslate2's by length\^alpha"),
        ({"length_normalisation": "none", "ngram_order": 3, "lm_weight": 0.2}, "decoding uses a language model"),
    ],
)
def test_export_refuses_a_search_that_ctranslate2_does_not_have(decoding, why):
    with pytest.raises(UserError, match=why):
        length_exponent("run", DecodingConfig.model_validate(decoding))
