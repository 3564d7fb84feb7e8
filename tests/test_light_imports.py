"""Commands that compute nothing on a device import no heavy library, and trainings no compiler: both start fast."""

import os
import subprocess
import sys

import pytest

from pipeline.core.provenance import ROOT

DATA = [path.relative_to(ROOT).with_suffix("") for path in sorted((ROOT / "pipeline/data").rglob("[a-z]*.py"))]
LEFT_OUT = "pipeline/data/batches/"
"""Modules of data that are for torch."""
STEPS = [
    ("import pipeline.data.fetch.download, pipeline.grammar.splits", "torch numpy langcodes"),
    ("import pipeline.data.dataset", "torch langcodes"),
    ("import pipeline.analysis.claims, pipeline.papers.paper", "torch matplotlib sacrebleu rapidfuzz sentencepiece"),
    (
        "from pipeline.analysis.view import measure_of\nfrom pipeline.metrics import metric_names\n"
        "assert all(map(measure_of, metric_names()))",
        "torch sacrebleu rapidfuzz sentencepiece",
    ),
    (
        "import pipeline.training.specification\nfrom pipeline.models.architectures import architectures\n"
        "assert len(architectures()) >= 7",
        "torch",
    ),
    ("import pipeline.outputs.score", "torch"),
    ("import " + ", ".join(".".join(path.parts) for path in DATA if not f"{path}".startswith(LEFT_OUT)), "torch"),
    (
        f"""
from pathlib import Path
from pipeline.papers.project import load_project
from pipeline.planning.jobs import Jobs
jobs = Jobs(load_project(Path({str(ROOT)!r}), {{"scale": "smoke", "work": "/nowhere"}}), ["coldfusion"], None)
assert sum(job.flops for job in jobs.all) > 0
""",
        "torch",
    ),
    ("import pipeline.planning.plan, pipeline.cluster.launch, submitit", "torch"),
    ("from reprise.__main__ import main; assert main(['completion', 'bash']) == 0  # loads every command", "torch"),
    (
        """
every = Jobs(jobs.project, list(jobs.project.papers), None)
assert every.all and len(every.forecasts) > 20
assert all(forecast.parameters for forecast in every.forecasts.values())
""",
        "sympy torch._dynamo",
    ),
    (
        """
from pipeline.models.architectures import build_model
from pipeline.models.seq2seq import count_parameters_on_meta
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig
config = WeightedTransformerConfig(
    architecture="weighted_transformer", num_layers=1, d_model=8, d_ff=16, num_heads=2, branch_start="projected"
)
assert count_parameters_on_meta(lambda: build_model(config, (9, 9)))
""",
        "sympy torch._dynamo",
    ),
    (
        """
import torch
from made_records import training_config
from pipeline.training.update_rules import update_rule
for name in ("adam", "adadelta", "nag"):
    rule, weight = update_rule(training_config(optimiser=name, tokens_per_update=1)), torch.ones(3)
    rule.move([weight], [torch.ones(3)], [rule.state(weight)], 0.1, None)
""",
        "sympy torch._dynamo",
    ),
    (
        """
from types import SimpleNamespace as Some
from pipeline.training.captured_steps import CapturedSteps
steps, weight = object.__new__(CapturedSteps), torch.ones((), requires_grad=True)
steps.device, steps.scale = torch.device("cpu"), torch.ones(())
steps.spec = Some(training=Some(precision="fp32", label_smoothing=0.0))
steps.model = Some(loss=lambda *_: Some(loss=3 * weight, nll=torch.ones(())))
assert steps._backward(None).tolist() == [3, 1] and weight.grad == 3
""",
        "sympy torch._dynamo",
    ),
]
"""Code, run in one process in this order, and the libraries that are not imported after it."""
TRANSLATION = [("import reprise.cli.decode", "pandas scipy matplotlib snakemake requests")]


@pytest.mark.parametrize("steps", [STEPS, TRANSLATION], ids=["stages and commands", "translation"])
def test_commands_start_without_heavy_libraries(steps):
    checks = (
        f"{code}\nfound = sorted({set(names.split())} & set(sys.modules))\nassert not found, ({number}, found)"
        for number, (code, names) in enumerate(steps)
    )
    assert len(DATA) > 40
    program = "import sys\n" + "\n".join(checks)
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests/helpers'}"}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
