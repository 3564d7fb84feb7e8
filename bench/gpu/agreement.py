"""Refuse an implementation, such as a compiled one, whose results differ from those of the one that it replaces."""

from collections.abc import Mapping, Sequence

from torch import Tensor

Results = Mapping[str, Sequence[Tensor]]
"""The tensors that a form computed, by name."""

WITH_DROPOUT = {"losses": 0.005, "gradient norms": 0.05}
"""Tolerances if each form draws its own random numbers.

Other seeds moved the losses of base by 0.15 % and its norms by 1.8 %, for 360 tokens. Cases have 3,100 tokens and more.
"""
WITHOUT_DROPOUT = {"losses": 0.0005, "gradient norms": 0.01}
"""Tolerances if forms differ by rounding only.

On a CPU, bfloat16 moved the losses of base by 0.006 %, its norms by 0.2 %. Compiled layers moved those of a tiny model
by 0.02 % and 0.09 %.
"""
ROUNDED = {"outputs": 0.02, "gradients": 0.02}
"""Tolerances of operators in bfloat16: on a CPU, forms of smaller sizes were up to 0.4 % apart."""
SEARCHED = {"scores": 0.01}
"""Tolerance of the best hypotheses of untrained models: a few sentences have another one by another rounding."""


def check_agreement(
    form: str, found: Results, reference: str, expected: Results, tolerances: Mapping[str, float]
) -> None:
    """Compare what a form computed with what the `reference` computed.

    Args:
        form: Its name.
        found: Its results.
        reference: Name of the other form.
        expected: Results of the other form.
        tolerances: By name of the results, the largest Euclidean distance over the length of the expected ones.

    Raises:
        ValueError: A distance is larger, or is not a number.
    """
    for name, values in expected.items():
        for ours, theirs in zip(found[name], values, strict=True):
            distance = float((ours.float() - theirs.float()).norm() / theirs.float().norm())
            if not distance <= tolerances[name]:
                raise ValueError(
                    f"{form} computes other {name} than {reference}: "
                    f"relative distance {distance:.2g}, tolerance {tolerances[name]:g}"
                )
