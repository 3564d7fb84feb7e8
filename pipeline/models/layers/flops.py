"""Multiply-adds of a position of what several architectures are built of."""


def lstm(width_in: int, width: int) -> int:
    """Of one direction: four gates."""
    return 4 * width * (width_in + width)


def gru(width_in: int, width: int) -> int:
    """Of one direction: three gates."""
    return 3 * width * (width_in + width)
