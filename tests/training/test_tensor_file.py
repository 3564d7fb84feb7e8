import json
import random

import pytest
import torch
from safetensors.torch import save

from pipeline.training.checkpoint_files import METADATA_ENTRY, DamagedFileError, read_metadata
from pipeline.training.tensor_file import load_into, read_tensor_file, tensors_of, write_tensor_file
from pipeline.workflow.file_checks import check_tensors


@pytest.fixture
def tensors() -> dict[str, torch.Tensor]:
    return {
        "weight": torch.randn(random.randint(1, 9), 3),
        "count": torch.tensor(random.random()),
        "narrow": torch.randn(5).bfloat16(),
        "empty": torch.empty(0, 2),
    }


def test_tensor_file_round_trip_is_exact(tmp_path, tensors):
    path = tmp_path / "a.safetensors"
    write_tensor_file(path, tensors, {"key": "k", "step": 3})
    read, facts = read_tensor_file(path)
    assert facts == {"key": "k", "step": 3}
    torch.testing.assert_close(read, tensors, rtol=0, atol=0)
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


def test_equal_content_gives_equal_bytes_whatever_the_order(tmp_path, tensors):
    write_tensor_file(tmp_path / "a", tensors, {"key": "k", "step": 3})
    write_tensor_file(tmp_path / "b", dict(reversed(tensors.items())), {"step": 3, "key": "k"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def same_header(whole: bytes, changed: bytes) -> bool:
    """Return whether a change only touched white space of the JSON, which has no meaning."""
    end = 8 + int.from_bytes(changed[:8], "little")
    try:
        return whole[end:] == changed[end:] and json.loads(whole[8:end]) == json.loads(changed[8:end])
    except ValueError:
        return False


def test_a_cut_an_empty_and_an_unknown_file_are_noticed(tmp_path, tensors):
    path = tmp_path / "a"
    write_tensor_file(path, tensors, {"key": "k"})
    whole = path.read_bytes()
    unknown = save({"weight": torch.ones(2)}, {"format": "pt"})
    listed = save({"weight": torch.ones(2)}, {METADATA_ENTRY: "[]"})
    for content in (whole[: random.randrange(len(whole))], b"", b"text", unknown, listed):
        path.write_bytes(content)
        with pytest.raises(DamagedFileError):
            read_tensor_file(path)
    with pytest.raises(DamagedFileError):
        read_metadata(tmp_path / "absent")


ENDLESS = {"w": {"dtype": "U8", "shape": [], "data_offsets": [0, float("inf")]}}


@pytest.mark.parametrize(
    ("facts", "tensors"), [("[" * 100_000, {}), ('{"key": "k", "digest": ""}', ENDLESS)], ids=["deep", "endless"]
)
def test_a_header_that_no_program_of_ours_wrote_is_damaged(tmp_path, facts, tensors):
    path, header = tmp_path / "file", json.dumps({"__metadata__": {METADATA_ENTRY: facts}} | tensors).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    for read in (read_tensor_file, check_tensors):
        with pytest.raises(DamagedFileError):
            read(path)


def test_shared_tensor_is_written_once_and_loaded_by_all_names(tmp_path):
    model, other = TwoNames(), TwoNames()
    assert list(tensors_of(model)) == ["first.weight"]
    load_into(other, tensors_of(model))
    assert torch.equal(other.second.weight, model.first.weight)


@pytest.mark.parametrize("tensors", [{"first.weight": torch.ones(9, 9)}, {}], ids=["another shape", "none"])
def test_tensors_of_another_model_are_refused(tensors):
    with pytest.raises(DamagedFileError, match=r"first\.weight"):
        load_into(TwoNames(), tensors)


class TwoNames(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 4, bias=False), torch.nn.Linear(3, 4, bias=False)
        self.second.weight = self.first.weight


def test_reader_and_check_without_torch_notice_any_changed_byte(tensors, tmp_path):
    path = tmp_path / "file"
    tensors |= {"empty": torch.empty(0, 3), "flag": torch.tensor([True]), "byte": torch.tensor([7], dtype=torch.uint8)}
    write_tensor_file(path, tensors, {"key": "k", "step": 3})
    check_tensors(path)
    content = path.read_bytes()
    for _ in range(300):
        changed = bytearray(content[: random.choice([len(content)] * 9 + [random.randrange(len(content))])])
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
        path.write_bytes(changed)
        verdicts = []
        for check in (check_tensors, read_tensor_file):
            try:
                check(path)
                verdicts.append("good")
            except DamagedFileError:
                verdicts.append("damaged")
        assert verdicts == ["good" if same_header(content, changed) else "damaged"] * 2, bytes(changed[:400])
