import pytest

from pipeline.search.beam_search import length_penalty


@pytest.mark.parametrize(("length", "expected"), [(1, 1.0), (7, 2**0.6), (19, 4**0.6)])
def test_gnmt_penalty_is_the_formula_of_wu_et_al(length, expected):
    assert length_penalty(length, 0.6, "gnmt") == pytest.approx(expected)


def test_other_normalisations():
    assert length_penalty(9, 1.0, "length") == 9
    assert length_penalty(9, 0.5, "length") == pytest.approx(3)
    assert length_penalty(9, 0.6, "none") == length_penalty(9, 0.0, "gnmt") == 1


def test_unknown_normalisation_names_those_allowed():
    with pytest.raises(ValueError, match="gnmt, length or none, got 'wu'"):
        length_penalty(9, 0.6, "wu")
