import contextlib
import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from run_folders import change_settings
from toy_run import TRANSFORMER, WEIGHTED, write_corpus, write_run

from pipeline.__main__ import main
from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.core.json_csv import read_json
from pipeline.data.batches.corpus_batches import EvalBatches
from pipeline.data.batches.parallel_batches import ParallelSplit
from pipeline.data.text.tokenisation import detokenise
from pipeline.decoding.decode_split import DecodedSplit, decode_split, replace_branch_weights, with_tuned_weights
from pipeline.decoding.trained_model import TrainedModel, build_decoder
from pipeline.metrics import read_statistics
from pipeline.models.layers.regularisation import unrolled_logits
from pipeline.training import graph_cache, machine

PAIRS = 13
DATASETS = Path(__file__).parents[2] / "workflow" / "datasets"
DECODING = {"beam_size": 3, "max_extra_length": 4, "batch_tokens": 40}


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "corpus", PAIRS)


@pytest.fixture
def run(tmp_path, corpus):
    """An untrained Transformer."""
    write_run(tmp_path / "run", corpus)
    return tmp_path / "run"


@pytest.fixture
def weighted(tmp_path, corpus):
    """An untrained Weighted Transformer."""
    write_run(tmp_path / "weighted", corpus, WEIGHTED)
    return tmp_path / "weighted"


@pytest.fixture
def pairs(corpus) -> ParallelSplit:
    return ParallelSplit(corpus / "encoded", "test")


def load(run) -> TrainedModel:
    return TrainedModel.load(run / "model.safetensors", threads=1)


def perplexity(run, lines: int = PAIRS) -> int:
    """Measure the perplexity of the test set, which the dataset says to have so many lines."""
    record = yaml.safe_load((DATASETS / "grammar-en-de.yaml").read_text())
    (run / "toy.yaml").write_text(yaml.safe_dump(record | {"test_set": "toy", "expected": {"test": {"lines": lines}}}))
    options = ["--weights", str(run / "model.safetensors"), "--dataset", str(run / "toy.yaml"), "--split", "test"]
    return main(["perplexity", *options, "--out", str(run / "nll.json")])


def translate(folder, **settings) -> int:
    out, text = folder / "test.tok", folder / "test.txt"
    decoding = json.dumps(DECODING | settings)
    weights = str(folder / "model.safetensors")
    return main(["translate", "--weights", weights, "--decoding", decoding, "--out", str(out), "--text", str(text)])


def lines(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


@pytest.mark.parametrize("name", ["run", "weighted"])
def test_every_sentence_has_one_line_in_its_place(name, request):
    """Decoded together in batches of like length, or one by one: the same lines in the same order."""
    run = request.getfixturevalue(name)
    assert translate(run) == 0
    together = lines(run / "test.tok")
    assert len(together) == len(lines(run / "test.txt")) == PAIRS
    assert [detokenise(line, "de") for line in together] == lines(run / "test.txt")
    assert translate(run, batch_tokens=1) == 0
    assert lines(run / "test.tok") == together
    assert read_json(run / "test.json")["lines"] == PAIRS


def test_branch_weights_are_replaced_only_in_models_with_them(run, weighted, capsys):
    outputs = set()
    for kind in ("learned", "uniform", "random"):
        assert translate(weighted, branch_weights=kind, beam_size=1) == 0
        outputs.add((weighted / "test.tok").read_text())
    assert len(outputs) > 1
    assert translate(run, branch_weights="uniform") == 1
    assert "only for a Weighted Transformer" in capsys.readouterr().err


def test_a_model_is_decoded_on_the_first_gpu_where_there_is_one(run, monkeypatch):
    asked = []
    monkeypatch.setattr(machine, "choose_device", lambda *wanted, **ranks: asked.append((wanted, ranks)) or "cpu")
    monkeypatch.setattr(machine, "prepare", lambda *_: None)
    trained = load(run)
    assert asked == [(("auto",), {"local_rank": 0})] and not trained.model.training


def test_random_branch_weights_are_those_of_their_seed(weighted):
    drawn = []
    for seed in (5, 6, 5):
        trained = load(weighted)
        replace_branch_weights(trained, DecodingConfig(branch_weights="random", branch_weights_seed=seed))
        drawn.append([weights.tolist() for weights in trained.model.parameter_groups()["branch_weights"]])
    assert drawn[0] == drawn[2] != drawn[1]


def test_a_search_that_loses_a_sentence_is_no_decoding(run, pairs):
    trained = load(run)
    search = build_decoder(trained.model, DecodingConfig(beam_size=1))
    with pytest.raises(ValueError, match="shorter"):
        decode_split(trained, EvalBatches(pairs, 400), lambda batch: search(batch)[1:])


@pytest.mark.parametrize(
    ("tokens", "remedy"),
    [(400, r"set decoding.batch_tokens to 200 \(now 400\)"), (1, "lower decoding.beam_size, or decode on a device")],
)
def test_lack_of_memory_in_a_decoding_names_the_setting(run, pairs, tokens, remedy):
    def decoder(batch):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    with pytest.raises(UserError, match=rf"^toy/base seed 1: out of memory decoding \d+ sequences?.*; {remedy}"):
        decode_split(load(run), EvalBatches(pairs, tokens), decoder)


def learned_run(folder, corpus, positions, seed=1):
    """A Transformer of so many learned positions."""
    learned = TRANSFORMER.model_copy(update={"positions": "learned", "max_positions": positions})
    write_run(folder, corpus, learned, seed=seed)
    return folder


def test_outputs_that_learned_positions_may_have_cut_are_counted(tmp_path, corpus, run, pairs):
    counts = []
    for seed in range(1, 6):
        learned = learned_run(tmp_path / f"learned{seed}", corpus, int(pairs.src_lengths.max()), seed)
        assert translate(learned, max_extra_length=50) == 0
        counts.append(read_json(learned / "test.json")["cut_at_last_position"])
    assert 0 < max(counts) <= PAIRS, "untrained models hardly ever end all sentences"
    assert translate(run) == 0
    assert read_json(run / "test.json")["cut_at_last_position"] == 0


def test_a_decoding_is_logged_by_its_split(run, caplog):
    """Its file is in a temporary folder if `reprise score` decodes."""
    caplog.set_level("INFO", logger="pipeline.decoding.decode_split")
    assert translate(run) == 0
    assert re.fullmatch(rf"test: {PAIRS} lines, [\d.]+ sentences/s", caplog.messages[-1])


def test_too_long_sources_are_counted_before_decoding_starts(tmp_path, corpus, pairs, capsys):
    run, too_long = learned_run(tmp_path / "learned", corpus, 6), (pairs.src_lengths > 6).sum()
    assert 0 < too_long < PAIRS
    for stage in (translate, perplexity):
        assert stage(run) == 1
        assert f"sources: {too_long} of {PAIRS} are longer than the 6 positions" in capsys.readouterr().err


def test_bad_settings_are_named(run, capsys):
    assert translate(run, beam_siez=3) == 1
    assert "--decoding: beam_siez: unknown key" in capsys.readouterr().err
    change_settings(run, {"max_steps": 2})
    assert translate(run) == 1
    assert "another run" in capsys.readouterr().err


def test_perplexity_is_that_of_the_probabilities_written_out(run, pairs):
    assert perplexity(run) == 0
    nll, tokens, model = 0.0, 0, load(run).model
    with torch.no_grad():
        for sentence in range(PAIRS):
            batch = pairs.batch(np.array([sentence]))
            log_probs = unrolled_logits(model, batch, 0.0).log_softmax(-1)
            nll -= float(log_probs.gather(-1, batch.tgt_out.unsqueeze(-1)).sum())
            tokens += batch.tgt_out.numel()
    found = read_json(run / "nll.json")
    measured = found["metrics"]["perplexity"]
    assert (found["test_set"], found["lines"], found["tokens"]) == ("toy", PAIRS, tokens)
    assert measured["value"] == pytest.approx(np.exp(nll / tokens), rel=1e-5)
    assert measured["signature"].startswith("unit:subword|")
    assert measured["low"] < np.exp(nll / tokens) < measured["high"]
    statistics = read_statistics(run / "nll.json", "perplexity")
    assert statistics.sum(axis=0) == pytest.approx([nll, tokens], rel=1e-5)


def test_perplexity_is_not_taken_on_another_set(run, capsys):
    assert perplexity(run, lines=3003) == 1
    assert f"has {PAIRS} pairs, but toy test has 3003" in capsys.readouterr().err


def test_long_decoding_logs_its_rate_every_five_seconds(monkeypatch, caplog):
    """Four batches of three seconds each are reported after six and twelve seconds."""
    clock = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr("pipeline.decoding.decode_split.time", SimpleNamespace(perf_counter=lambda: clock.seconds))

    class Split:
        pairs, batch_positions = SimpleNamespace(tgt=range(9)), 9

        def __iter__(self):
            for begin, end in [(0, 4), (4, 5), (5, 7), (7, 9)]:
                tokens = [begin] * (end - begin)
                yield np.arange(begin, end), SimpleNamespace(to=lambda device, tokens=tokens: tokens)

    def decoder(batch):
        clock.seconds += 3
        return [SimpleNamespace(tokens=[token]) for token in batch]

    model = SimpleNamespace(max_positions=None)
    trained = SimpleNamespace(model=model, device="cpu", autocast=contextlib.nullcontext)
    with caplog.at_level("INFO", logger="pipeline.decoding.decode_split"):
        decoded = decode_split(trained, Split(), decoder)
    assert decoded.outputs == [[0]] * 4 + [[4]] + [[5]] * 2 + [[7]] * 2 and decoded.seconds == 12
    assert caplog.messages == ["5/9 sentences, 0.8 sentences/s", "9/9 sentences, 0.8 sentences/s"]


def test_report_rounds_time_and_rate(run):
    report = DecodedSplit([[]] * 9, seconds=7.00049, cut=0).report(load(run), "test", DecodingConfig())
    assert (report.lines, report.seconds, report.sentences_per_second) == (9, 7.0, 1.29)


def test_chosen_weights_are_given_if_and_only_if_they_are_tuned(tmp_path):
    for settings, tuned in ({"lm_weights": [0.1], "ngram_order": 2}, None), ({}, tmp_path / "tuned.json"):
        with pytest.raises(UserError, match="--tuned: required if the decoding has `lm_weights`, else refused"):
            with_tuned_weights(DecodingConfig(**settings), tuned)


@pytest.mark.parametrize(
    ("device", "cuda_graphs", "found"), [("cuda", True, "graphs on cuda"), ("cuda", False, None), ("cpu", True, None)]
)
def test_searches_on_a_gpu_replay_graphs(monkeypatch, device, cuda_graphs, found):
    monkeypatch.setattr(graph_cache, "CudaRecorder", lambda device: f"graphs on {device}")
    spec = SimpleNamespace(training=SimpleNamespace(cuda_graphs=cuda_graphs))
    model = TrainedModel(spec, torch.nn.Linear(2, 2), torch.device(device), None, "", None)
    assert model.recorder() == found
