"""Share of outputs that needed no repair at all to be a tree (data/linearisation.py)."""

from pipeline.metrics.statistics.brackets import parse_rate

METRIC = parse_rate("well_formed", lambda repairs: not repairs.any, "outputs-without-repair")
