"""Shapes that batches are padded to."""

import numpy as np
import pytest

from pipeline.training.graph_cache import ShapeGrid


def random_shapes(count: int) -> list[tuple[int, int, int]]:
    rng = np.random.default_rng()
    source = rng.integers(3, 200, count)
    target = np.maximum(1, source + rng.integers(-2, 20, count))
    return list(zip((20_000 // target).tolist(), source.tolist(), target.tolist(), strict=True))


def test_few_shapes_are_a_grid_as_they_are():
    shapes = random_shapes(10)
    grid = ShapeGrid(shapes)
    assert [grid.fit(shape) for shape in shapes] == shapes


@pytest.mark.parametrize("most", [12, 48])
def test_a_grid_has_few_shapes_that_hold_all_others(most):
    shapes = random_shapes(300)
    grid = ShapeGrid(shapes, most)
    fitted = [grid.fit(shape) for shape in shapes]
    assert len(set(fitted)) <= most
    assert all(np.greater_equal(to, shape).all() for to, shape in zip(fitted, shapes, strict=True))


def test_a_grid_adds_little_padding():
    shapes = np.array(random_shapes(300))
    grid = ShapeGrid(map(tuple, shapes.tolist()))
    fitted = np.array([grid.fit(tuple(shape)) for shape in shapes.tolist()])
    positions, padded = ((sizes[:, 0] * sizes[:, 1:].sum(1)).sum() for sizes in (shapes, fitted))
    assert padded < 1.2 * positions


def test_a_shape_beyond_the_grid_is_rounded_up():
    grid = ShapeGrid([(64, 30, 30)])
    assert grid.fit((65, 31, 700)) == (68, 31, 704)
