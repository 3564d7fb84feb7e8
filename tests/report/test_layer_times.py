"""Fitted powers match the times, and Table 1 shows them beside the printed ones."""

import numpy as np
import pytest
import torch
from made_records import layer_costs
from made_reports import make_report

from pipeline.analysis.claims.without_training import LayerTimings, upper_half
from pipeline.core.records.outputs import TIMED_BESIDE
from pipeline.probes import layer_cost
from pipeline.report.layer_table import plot, theoretical_costs

POWERS = {"self-attention": (2, 1), "recurrent": (1, 2), "convolutional": (1, 2), "restricted self-attention": (1, 1)}

LENGTHS, WIDTHS = (64, 128, 256, 512), (48, 96, 192, 384, 768)


def made_up_times(noise=0.0):
    """Return times c n^p d^q plus a fixed cost per call, which hides the power at small sizes."""
    generator = np.random.default_rng(0)

    def seconds(n, d, p, q):
        return (1e-9 * n**p * d**q * np.exp(generator.normal(0, noise, 5)) + 1e-7).tolist()

    sizes = [(n, d) for n in LENGTHS for d in WIDTHS]
    times = [(layer, n, d, seconds(n, d, *powers)) for layer, powers in POWERS.items() for n, d in sizes]
    return layer_costs([dict(zip(("layer", "n", "d", "seconds"), time, strict=True)) for time in times])


def test_the_table_sets_fitted_powers_beside_the_printed_ones(tmp_path):
    made_up_times().write(times := tmp_path / "times.json")
    rows = make_report("layer-table", "attention", "table1", tmp_path / "table1.csv", "--layer-times", str(times))
    assert len(rows) == 4
    for row in rows:
        for variable in "nd":
            printed, ours = float(row[f"exponent_{variable}_printed"]), float(row[f"exponent_{variable}_ours"])
            assert ours == pytest.approx(printed, abs=0.05)
        assert (row["n"], row["d"]) == ("512", "768")
        power_n, power_d = (float(row[f"exponent_{variable}_printed"]) for variable in "nd")
        took_ms = 1000 * (1e-9 * 512**power_n * 768**power_d + 1e-7)
        assert float(row["milliseconds"]) == pytest.approx(took_ms, rel=5e-3)
    assert "sequence length n (positions)" in (tmp_path / "table1.svg").read_text(encoding="utf-8")


def test_at_least_two_thirds_of_three_or_more_sizes_are_fitted():
    kept = [len(upper_half([*range(count)])) for count in range(1, 6)]
    assert kept == [1, 1, 2, 3, 4] and upper_half([1, 2, 3]) == [2, 3]


def test_panel_has_times_and_the_printed_power_through_the_last():
    times = LayerTimings(made_up_times(noise=0.3))
    printed = [
        {"layer": layer, "layer_type": layer, "complexity_per_layer": "", "exponent_n": str(p), "exponent_d": str(q)}
        for layer, (p, q) in POWERS.items()
    ]
    picture = plot(printed, times)
    (over_n, over_d), (legend,) = picture.axes, picture.legends
    named = [text.get_text() for text in legend.get_texts()]
    assert {name.rstrip(", ") for name in named} == {*POWERS, "printed power through the last point"}
    assert over_n.get_xlabel().endswith("d = 768") and over_d.get_xlabel().endswith("n = 512")
    assert over_n.get_ylabel() and not over_d.get_ylabel()
    for panel, place, sizes in ((over_n, 0, LENGTHS), (over_d, 1, WIDTHS)):
        for bars, layer in zip(panel.containers, POWERS, strict=True):
            keys = [(layer, size, 768) if place == 0 else (layer, 512, size) for size in sizes]
            middle, _, (spread,) = bars.lines
            expected = 1000 * np.array([np.median(times.seconds[key]) for key in keys])
            np.testing.assert_allclose(middle.get_xydata(), np.transpose([sizes, expected]))
            ends = 1000 * np.array([[min(times.seconds[key]), max(times.seconds[key])] for key in keys])
            np.testing.assert_allclose([segment[:, 1] for segment in spread.get_segments()], ends)
        lines = [line for line in panel.lines if line.get_linestyle() == ":" and len(line.get_xdata())]
        for line, bars, powers in zip(lines, panel.containers, POWERS.values(), strict=True):
            slopes = np.diff(np.log(line.get_ydata())) / np.diff(np.log(line.get_xdata()))
            np.testing.assert_allclose(slopes, powers[place])
            assert line.get_ydata()[-1] == bars.lines[0].get_ydata()[-1]


@pytest.mark.parametrize(("layer", "expected"), [*zip(POWERS, ((1, 1), (81, 81), (1, 4), (1, 3)), strict=True)])
def test_operations_and_paths_are_the_printed_formulas(layer, expected):
    assert theoretical_costs(layer, 81, kernel=3, window=27) == expected


def test_every_layer_maps_a_sequence_to_one_of_its_shape():
    x = torch.randn(1, 40, 24)
    with torch.inference_mode():
        for layer in layer_cost.layers(24, torch.device("cpu")).values():
            assert layer(x).shape == x.shape


def test_restricted_attention_looks_at_its_neighbourhood_alone():
    """Compare with full attention under a band mask, away from the ends, where zeros are attended to, too."""
    torch.manual_seed(0)
    n, window = 100, layer_cost.WINDOW
    x = torch.randn(1, n, 16)
    found = layer_cost.restricted_self_attention(x)[0]
    offsets = torch.arange(n) - torch.arange(n)[:, None]
    band = (offsets >= -(window // 2)) & (offsets < window - window // 2)
    expected = torch.nn.functional.scaled_dot_product_attention(x, x, x, band)[0]
    torch.testing.assert_close(found[window:-window], expected[window:-window], atol=1e-5, rtol=1e-4)


def test_a_measurement_has_every_layer_at_every_size(monkeypatch):
    monkeypatch.setattr(layer_cost, "SHORTEST_S", 0.001)
    times = layer_cost.measure(torch.device("cpu"), (8, 16), (8,))
    names = {*POWERS, *TIMED_BESIDE}
    assert {(time.layer, time.n, time.d) for time in times} == {(name, n, 8) for name in names for n in (8, 16)}
    assert all(len(time.seconds) == layer_cost.REPEATS and min(time.seconds) > 0 for time in times)
