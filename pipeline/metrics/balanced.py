"""Share of outputs whose brackets match as written."""

from pipeline.metrics.statistics.brackets import Parses, parse_rate


def balanced(parses: Parses) -> list[bool]:
    return [repairs.balanced for repairs in parses.repairs]


METRIC = parse_rate("balanced", balanced, "outputs-with-matching-brackets")
