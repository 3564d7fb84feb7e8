"""Names that the scripts of `bench/` import exist, and some of their measurements; no test runs a whole script."""

import ast
import importlib
import inspect
import json
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).resolve().parents[1] / "bench").rglob("*.py"))


def imported(tree):
    """Modules of ours and the names that a script takes from them."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    own = [node for node in nodes if node.module and node.module.partition(".")[0] in ("pipeline", "reprise")]
    return [(importlib.import_module(node.module), name.name) for node in own for name in node.names]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_calls_of_bench_scripts_match_existing_functions(script):
    tree = ast.parse(script.read_text())
    callables = {name: getattr(module, name) for module, name in imported(tree)}
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    for node in calls:
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        is_plain = None not in keywords and not any(isinstance(argument, ast.Starred) for argument in node.args)
        if is_plain and node.func.id in callables:
            inspect.signature(callables[node.func.id]).bind(*node.args, **keywords)
    assert len(SCRIPTS) > 5


@pytest.mark.parametrize("shape", ["small", "demo"])
def test_timed_bench_training_matches_its_name(monkeypatch, shape):
    """Whatever the defaults of a model's settings are."""
    monkeypatch.syspath_prepend(SCRIPTS[0].parent)
    models = importlib.import_module("train_step").SHAPES[shape].models()
    assert (models["split"].ffn_mode, models["literal"].ffn_mode) == ("split", "shared")
    assert len({model.model_dump_json() for model in models.values()}) == len(models) == 3


def test_bench_of_features_reports_the_length_of_the_speech(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(SCRIPTS[0].parent)
    features = importlib.import_module("features")
    features.measure_features(features.noises(tmp_path, 2, 8000), 8000, 3800.0)
    line = json.loads(capsys.readouterr().out)
    assert (line["stage"], line["utterances"], line["speech_s"]) == ("features", 2, 20.0)
