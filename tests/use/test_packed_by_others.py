"""Packed models whose files match their digests, but do not belong together."""

import pytest
from packed_model import pack

from pipeline.core.errors import UserError
from reprise.portable import open_packed


def test_a_model_whose_files_belong_together_translates(tmp_path):
    assert len(open_packed(pack(tmp_path), threads=1).translate(["abcd efgh"])) == 1


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
