"""Share of outputs that needed no repair at all to be a tree (data/linearisation.py)."""

from pipeline.metrics.statistics.brackets import Parses, parse_rate


def well_formed(parses: Parses) -> list[bool]:
    return [not repairs.any for repairs in parses.repairs]


METRIC = parse_rate("well_formed", well_formed, "outputs-without-repair")
