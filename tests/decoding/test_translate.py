import contextlib
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from greedy import greedy
from toy_run import TRANSFORMER, WEIGHTED, write_corpus, write_run

from pipeline.__main__ import main
from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.data.batches.corpus_batches import EvalBatches
from pipeline.data.batches.parallel_batches import ParallelSplit
from pipeline.data.text.tokenisation import detokenise
from pipeline.decoding.decode import Outputs, decode_split, replace_branch_weights, with_tuned_weights
from pipeline.decoding.trained_model import TrainedModel, build_decoder
from pipeline.metrics import read_statistics
from pipeline.models.settings import BOS, EOS, PAD
from pipeline.search.beam_search import beam_search
from pipeline.training import machine

PAIRS = 13
DATASETS = Path(__file__).parents[2] / "workflow" / "datasets"
DECODING = {"beam_size": 3, "max_extra_length": 4, "batch_tokens": 40}


@pytest.fixture
def corpus(tmp_path):
    write_corpus(tmp_path / "corpus", PAIRS)
    return tmp_path / "corpus"


def translate(folder, **settings) -> int:
    out, text = folder / "test.tok", folder / "test.txt"
    decoding = json.dumps(DECODING | settings)
    weights = str(folder / "model.safetensors")
    return main(["translate", "--weights", weights, "--decoding", decoding, "--out", str(out), "--text", str(text)])


def lines(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


@pytest.mark.parametrize("model", [TRANSFORMER, WEIGHTED])
def test_every_sentence_has_one_line_in_its_place(corpus, tmp_path, model):
    """Decoded together in batches of like length, or one by one: the same lines in the same order."""
    run = tmp_path / "runs" / "base"
    write_run(run, corpus, model)
    assert translate(run) == 0
    together = lines(run / "test.tok")
    assert len(together) == len(lines(run / "test.txt")) == PAIRS
    assert [detokenise(line, "de") for line in together] == lines(run / "test.txt")
    assert translate(run, batch_tokens=1) == 0
    assert lines(run / "test.tok") == together
    assert json.loads((run / "test.json").read_text())["lines"] == PAIRS


def test_branch_weights_are_replaced_only_in_models_with_them(corpus, tmp_path, capsys):
    weighted, plain = tmp_path / "weighted", tmp_path / "plain"
    write_run(weighted, corpus, WEIGHTED), write_run(plain, corpus)
    outputs = set()
    for kind in ("learned", "uniform", "random"):
        assert translate(weighted, branch_weights=kind, beam_size=1) == 0
        outputs.add((weighted / "test.tok").read_text())
    assert len(outputs) > 1
    assert translate(plain, branch_weights="uniform") == 1
    assert "only for a Weighted Transformer" in capsys.readouterr().err


def test_a_model_is_decoded_on_the_first_gpu_where_there_is_one(corpus, tmp_path, monkeypatch):
    write_run(tmp_path / "run", corpus)
    asked = []
    monkeypatch.setattr(
        machine,
        "choose_device",
        lambda choice, local_rank: asked.append((choice, local_rank)) or torch.device("cpu"),
    )
    trained = TrainedModel.load(tmp_path / "run" / "model.safetensors", threads=1)
    assert asked == [("auto", 0)] and not trained.model.training


def test_random_branch_weights_are_those_of_their_seed(corpus, tmp_path):
    write_run(tmp_path / "run", corpus, WEIGHTED)
    drawn = []
    for seed in (5, 6, 5):
        trained = TrainedModel.load(tmp_path / "run" / "model.safetensors", threads=1)
        replace_branch_weights(trained, DecodingConfig(branch_weights="random", branch_weights_seed=seed))
        drawn.append([weights.tolist() for weights in trained.model.parameter_groups()["branch_weights"]])
    assert drawn[0] == drawn[2] != drawn[1]


def test_a_search_that_loses_a_sentence_is_no_decoding(corpus, tmp_path):
    write_run(tmp_path / "run", corpus)
    trained = TrainedModel.load(tmp_path / "run" / "model.safetensors", threads=1)
    search = build_decoder(trained.model, DecodingConfig(beam_size=1))
    with pytest.raises(ValueError, match="shorter"):
        decode_split(
            trained, EvalBatches(ParallelSplit(corpus / "encoded", "test"), 400), lambda batch: search(batch)[1:]
        )


def learned_run(folder, corpus, positions):
    learned = TRANSFORMER.model_copy(update={"positions": "learned", "max_positions": positions})
    write_run(folder, corpus, learned)
    return ParallelSplit(corpus / "encoded", "test").src_lengths


def test_outputs_that_learned_positions_may_have_cut_are_counted(corpus, tmp_path):
    longest = int(ParallelSplit(corpus / "encoded", "test").src_lengths.max())
    run = tmp_path / "run"
    learned_run(run, corpus, longest)
    assert translate(run, max_extra_length=50) == 0
    counted = json.loads((run / "test.json").read_text())["cut_at_last_position"]
    assert 0 < counted <= len(lines(run / "test.tok")) == PAIRS  # untrained, it hardly ever ends
    write_run(tmp_path / "sinusoids", corpus)
    assert translate(tmp_path / "sinusoids") == 0
    assert json.loads((tmp_path / "sinusoids/test.json").read_text())["cut_at_last_position"] == 0


def test_too_long_sources_are_counted_before_decoding_starts(corpus, tmp_path, capsys):
    run = tmp_path / "run"
    lengths = learned_run(run, corpus, 6)
    message = f"sources: {(lengths > 6).sum()} of {PAIRS} are longer than the 6 positions"
    assert 0 < (lengths > 6).sum() < PAIRS
    assert translate(run) == 1
    assert message in capsys.readouterr().err
    options = ["--weights", str(run / "model.safetensors"), "--dataset", str(dataset(tmp_path)), "--split", "test"]
    assert main(["perplexity", *options, "--out", str(run / "nll.json")]) == 1
    assert message in capsys.readouterr().err


def test_bad_settings_are_named(corpus, tmp_path, capsys):
    run = tmp_path / "run"
    write_run(run, corpus)
    assert translate(run, beam_siez=3) == 1
    assert "--decoding: beam_siez: unknown key" in capsys.readouterr().err
    (run / "run.yaml").write_text((run / "run.yaml").read_text().replace("max_steps: 1", "max_steps: 2"))
    assert translate(run) == 1
    assert "another run" in capsys.readouterr().err


def test_perplexity_is_that_of_the_probabilities_written_out(corpus, tmp_path):
    run = tmp_path / "run"
    model = write_run(run, corpus)
    out = run / "nll.json"
    weights = str(run / "model.safetensors")
    options = ["--weights", weights, "--dataset", str(dataset(tmp_path)), "--split", "test"]
    assert main(["perplexity", *options, "--out", str(out)]) == 0
    nll, tokens = 0.0, 0
    pairs = ParallelSplit(corpus / "encoded", "test")
    with torch.no_grad():
        for sentence in range(PAIRS):
            batch = pairs.batch(np.array([sentence]))
            source, cache = model.start(batch)
            for token, target in zip(batch.tgt_in[0], batch.tgt_out[0], strict=True):
                logits, cache = model.step(token.reshape(1, 1), source, cache)
                nll -= float(logits[0, 0].log_softmax(-1)[target])
                tokens += 1
    found = json.loads(out.read_text())
    assert found["tokens"] == tokens
    assert found["metrics"]["perplexity"]["value"] == pytest.approx(np.exp(nll / tokens), rel=1e-5)
    assert found["metrics"]["perplexity"]["signature"].startswith("unit:subword|")
    assert (found["test_set"], found["lines"]) == ("toy", PAIRS)
    statistics = read_statistics(out, "perplexity")
    assert statistics.sum(axis=0) == pytest.approx([nll, tokens], rel=1e-5)
    assert found["metrics"]["perplexity"]["low"] < np.exp(nll / tokens) < found["metrics"]["perplexity"]["high"]


def test_perplexity_is_not_taken_on_another_set(corpus, tmp_path, capsys):
    run = tmp_path / "run"
    write_run(run, corpus)
    options = ["--weights", str(run / "model.safetensors"), "--dataset", str(dataset(tmp_path, lines=3003))]
    assert main(["perplexity", *options, "--split", "test", "--out", str(run / "nll.json")]) == 1
    assert f"has {PAIRS} pairs, but toy test has 3003" in capsys.readouterr().err


def dataset(folder, lines=PAIRS):
    record = yaml.safe_load((DATASETS / "grammar-en-de.yaml").read_text())
    path = folder / "toy.yaml"
    path.write_text(yaml.safe_dump(record | {"test_set": "toy", "expected": {"test": {"lines": lines}}}))
    return path


@pytest.mark.parametrize("model", [TRANSFORMER, WEIGHTED])
def test_a_transformer_is_searched_as_without_cache_or_batch(corpus, tmp_path, model):
    """Beam search written out: one sentence at a time, every prefix read from its start, with float noise allowed."""
    built = write_run(tmp_path / "run", corpus, model)
    config = DecodingConfig(beam_size=3, max_extra_length=2)
    _, batch = next(iter(EvalBatches(ParallelSplit(corpus / "encoded", "test"), 400)))
    found = beam_search(built, batch, config, n_best=2)
    pairs = ParallelSplit(corpus / "encoded", "test")
    order = np.lexsort((pairs.tgt_lengths, pairs.src_lengths))[::-1]
    for sentence, hypotheses in zip(order[:4], found, strict=False):
        alone = pairs.batch(np.array([sentence]))
        expected = plain_beam_search(built, alone, limit=alone.src.shape[1] - 1 + 2, size=3)[: len(hypotheses)]
        assert [hypothesis.tokens for hypothesis in hypotheses] == [tokens for _, tokens in expected]
        np.testing.assert_allclose(
            [hypothesis.score for hypothesis in hypotheses], [score for score, _ in expected], rtol=1e-4
        )


def plain_beam_search(model, batch, limit, size):
    live, finished = [(0.0, [])], []
    for position in range(limit + 1):
        candidates = []
        for log_prob, prefix in live:
            logits = next_logits(model, batch, prefix)
            for token, value in enumerate(logits.double().log_softmax(-1).tolist()):
                if token not in (PAD, BOS) and (position < limit or token == EOS):
                    candidates.append((log_prob + value, [*prefix, token]))
        candidates.sort(reverse=True)
        for log_prob, tokens in candidates[:size]:
            if tokens[-1] == EOS:
                finished.append((log_prob / ((5 + len(tokens)) / 6) ** 0.6, tokens[:-1]))
        live = [candidate for candidate in candidates if candidate[1][-1] != EOS][:size]
        if len(finished) >= size:
            break
    return sorted(finished, reverse=True)


@torch.no_grad()
def next_logits(model, batch, prefix):
    """Return logits of the symbol after `prefix`, all read at once as in training, without a cache."""
    features = model.decode(torch.tensor([[BOS, *prefix]]), model.encode(batch.src, None), None)
    return features[0, -1] @ model.output_weight.T


def test_greedy_search_is_a_beam_of_one_for_a_transformer(corpus, tmp_path):
    model = write_run(tmp_path / "run", corpus)
    _, batch = next(iter(EvalBatches(ParallelSplit(corpus / "encoded", "test"), 400)))
    found = beam_search(model, batch, DecodingConfig(beam_size=1, max_extra_length=5))
    assert greedy(model, batch, 5) == [hypotheses[0].tokens for hypotheses in found]


def test_long_decoding_logs_its_rate_every_five_seconds(monkeypatch, caplog):
    """Four batches of three seconds each are reported after six and twelve seconds."""
    clock = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr("pipeline.decoding.decode.time", SimpleNamespace(perf_counter=lambda: clock.seconds))
    batches = [(np.arange(9)[begin:end], [begin] * (end - begin)) for begin, end in [(0, 4), (4, 5), (5, 7), (7, 9)]]

    class Split:
        pairs = SimpleNamespace(tgt=range(9))

        def __iter__(self):
            for indices, tokens in batches:
                yield indices, SimpleNamespace(to=lambda device, tokens=tokens: tokens)

    def decoder(batch):
        clock.seconds += 3
        return [SimpleNamespace(tokens=[token]) for token in batch]

    trained = SimpleNamespace(
        model=SimpleNamespace(max_positions=None), device="cpu", autocast=lambda: contextlib.nullcontext()
    )
    with caplog.at_level("INFO", logger="pipeline.decoding.decode"):
        decoded = decode_split(trained, Split(), decoder)
    assert decoded.outputs == [[0]] * 4 + [[4]] + [[5]] * 2 + [[7]] * 2 and decoded.seconds == 12
    assert caplog.messages == ["5/9 sentences, 0.8 sentences/s", "9/9 sentences, 0.8 sentences/s"]


def test_report_rounds_time_and_rate(corpus, tmp_path):
    write_run(tmp_path / "run", corpus)
    trained = TrainedModel.load(tmp_path / "run/model.safetensors", 1)
    report = Outputs([[]] * 9, seconds=7.00049, cut=0).report(trained, "test", DecodingConfig())
    assert (report.lines, report.seconds, report.sentences_per_second) == (9, 7.0, 1.29)


def test_chosen_weights_are_given_if_and_only_if_they_are_tuned(tmp_path):
    for settings, tuned in ({"lm_weights": [0.1], "ngram_order": 2}, None), ({}, tmp_path / "tuned.json"):
        with pytest.raises(UserError, match="--tuned: required if the decoding has `lm_weights`, else refused"):
            with_tuned_weights(DecodingConfig(**settings), tuned)
