"""Forecasts of `plan` beside measured times of captured steps: python tests/gpu/forecasts.py writes the table.

It needs PYTHONPATH=.:tests/helpers, and writes docs/measured/gpu/forecasts.csv.
"""

import csv
from pathlib import Path

from cases import CHARACTERS, MEASURED, TRAININGS, WORDS
from real_project import project_at

from pipeline.core.artifacts import RunId
from pipeline.core.provenance import ROOT
from pipeline.models.seq2seq import count_parameters_on_meta
from pipeline.models.settings import BatchShape
from pipeline.planning.corpus_size import StepShape
from pipeline.planning.devices import load_devices, step_seconds
from pipeline.training.run_model import build_run_model
from pipeline.training.specification import run_flops

FOLDER = ROOT / "docs/measured/gpu"
CASES = TRAININGS | MEASURED
KERNELS = {"torch": ("steps.csv", "graphs_ms"), "triton": ("triton.csv", "triton_ms")}


def forecast_ms(name: str, card: str = "H100", graphs: bool = True, triton: bool = False) -> float:
    """Return the milliseconds that `plan` forecasts for a step of a case."""
    case, device = CASES[name], load_devices(ROOT / "workflow/devices.yaml")[card]
    spec = project_at(Path("work"), scale="paper").run_spec(RunId(*case.system.split("/"), "wmt14-en-de", 1))
    vocab = CHARACTERS if spec.model.reads == "speech" or "lm-source" in spec.system else WORDS
    parameters = count_parameters_on_meta(lambda: build_run_model(spec, (vocab, vocab)))
    src, tgt = (case.rows * case.micro_batches * length for length in (case.src, case.tgt))
    flops = run_flops(spec, BatchShape(vocab, src, tgt, case.src, case.tgt))
    sizes = {"micro_batch_tokens": max(src, tgt) // case.micro_batches, "micro_batch_frames": max(src, tgt)}
    training = spec.training.model_copy(update=sizes | {"cuda_graphs": graphs})
    step = StepShape(src, tgt, tgt, case.src, case.tgt)
    return 1e3 * step_seconds(spec.model_copy(update={"training": training}), step, parameters, flops, device, triton)


def measured(kernels: str) -> dict[str, float]:
    """Return the measured milliseconds of captured steps, by case."""
    file, column = KERNELS[kernels]
    rows = csv.DictReader((FOLDER / file).read_text().splitlines())
    return {row["case"]: float(row[column]) for row in rows if row["case"] in CASES and row[column]}


def compared() -> list[dict[str, str]]:
    """Return for each measured case the measured and forecast milliseconds, and the ratio of the two."""
    times = {kernels: measured(kernels) for kernels in KERNELS}
    rows = []
    for case in times["torch"]:
        row = {"case": case}
        for kernels, found in times.items():
            known, forecast = case in found, forecast_ms(case, triton=kernels == "triton")
            row[f"{kernels}_measured_ms"] = f"{found[case]:.1f}" if known else ""
            row[f"{kernels}_forecast_ms"] = f"{forecast:.1f}" if known else ""
            row[f"{kernels}_ratio"] = f"{forecast / found[case]:.2f}" if known else ""
        rows.append(row)
    return rows


if __name__ == "__main__":
    rows = compared()
    with open(FOLDER / "forecasts.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
