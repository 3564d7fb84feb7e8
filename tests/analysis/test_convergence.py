"""A floor parts systems that have learnt from those that have not, in the direction of the metric."""

import pytest

from pipeline.analysis.training_curves import Floor, below_floor, load_floors
from pipeline.core.errors import UserError


@pytest.mark.parametrize(
    ("metric", "reach", "below", "above"), [("wer", 85, 85.0, 84.9), ("bleu_paper", 5, 5.0, 5.1), ("gleu", 5, 0.0, 9.0)]
)
def test_a_score_at_the_floor_is_below_it(metric, reach, below, above):
    floors = {metric: Floor(reach=reach, why="it is so")}
    assert below_floor(floors, metric, below) == f"{metric} of {below:.4g} is not better than {reach}: it is so"
    assert below_floor(floors, metric, above) == below_floor({}, metric, below) == ""


def test_a_floor_needs_a_reason(tmp_path):
    (tmp_path / "floors.yaml").write_text("wer: {reach: 85}\n")
    with pytest.raises(UserError, match=r"floors\.yaml: wer\.why: "):
        load_floors(tmp_path / "floors.yaml")
