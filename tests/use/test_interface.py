"""Measured results as data frames."""

import numpy as np
from pandas import DataFrame
from pandas.testing import assert_frame_equal

from reprise.interface import with_numbers


def test_columns_of_numbers_alone_are_converted():
    text = DataFrame({"score": ["1.5", "", "-2"], "steps": ["1", "2", "3"], "empty": [""] * 3, "row": ["1", "B", ""]})
    text["commit"] = ["012345678901"] * 3
    numbers = {"score": [1.5, np.nan, -2.0], "steps": [1, 2, 3], "empty": [np.nan] * 3}
    assert_frame_equal(with_numbers(text), DataFrame(numbers | {"row": ["1", "B", np.nan], "commit": text["commit"]}))
