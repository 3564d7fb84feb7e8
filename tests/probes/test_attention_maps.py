"""Attention of text and of speech: maps are the model's own, and a rule's choice is the one it describes."""

import json
import math
from contextlib import nullcontext
from inspect import getattr_static
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from made_records import speech_corpus
from run_folders import write_settings, write_weights

from pipeline.config import load_run
from pipeline.core.errors import UserError
from pipeline.data.batches.parallel_batches import TextBatch
from pipeline.data.sequence_store import write_frames, write_tokens
from pipeline.data.text.vocabulary import FIRST, Alphabet
from pipeline.models.architectures import build_model
from pipeline.models.recurrent.settings import RecurrentConfig
from pipeline.models.transformer.model import Transformer
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.probes.alignments import mean_entropy, median_length, write_alignments
from pipeline.probes.attention_maps import SelfAttentive, best_map, choose, farthest, most_different, sharpest
from pipeline.probes.gate_values import Gated
from pipeline.training.run_model import build_initial_model

H, N = 3, 12
WIDTHS = ("d_embedding", "d_state", "d_attention", "d_readout")
PIECES = SimpleNamespace(model=SimpleNamespace(id_to_piece=str))


def uniform(heads=H, n=N):
    return torch.full((heads, n, n), 1 / n)


@pytest.mark.parametrize(("layers", "layer"), [(1, 1), (2, 1), (4, 3)])
def test_the_map_is_of_the_last_layer_but_one(layers, layer):
    torch.manual_seed(0)
    config = TransformerConfig(architecture="transformer", num_layers=layers, d_model=16, d_ff=8, num_heads=4)
    model, src = Transformer(config, 20, 20).eval(), torch.randint(4, 20, (1, 9))
    batch = TextBatch(src, src, src)
    trained = SimpleNamespace(model=model, device="cpu", autocast=nullcontext, weights_digest="0" * 64)
    found = best_map(trained, [(np.array([5]), batch)], PIECES, "contrast", "test")
    assert (found.sentence, found.layer, found.layers) == (5, layer, layers)
    assert found.weights == model.encoder_attention(batch, layer - 1)[0, found.heads].tolist()


@pytest.mark.parametrize(
    ("protocol", "config"),
    [
        (SelfAttentive, TransformerConfig(architecture="transformer", num_layers=2, d_model=16, d_ff=8, num_heads=4)),
        (Gated, RecurrentConfig(architecture="recurrent", channels="rnn-emb", **dict.fromkeys(WIDTHS, 4))),
    ],
)
def test_models_have_what_probes_ask_for_outside_their_modules(protocol, config):
    """Since Python 3.12, isinstance of a protocol finds neither modules nor parameters of a model."""
    model = build_model(config, (20, 20))
    for name in (*protocol.__annotations__, *(name for name in vars(protocol) if not name.startswith("_"))):
        getattr_static(model, name)
    assert isinstance(model, protocol)


def test_the_farthest_word_is_found():
    maps = uniform()
    maps[:, 2] = 0
    maps[:, 2, 10] = 1
    choice = farthest(maps)
    assert (choice.query, choice.heads) == (2, [0, 1, 2])
    assert choice.score == 1


def test_sharpest_heads_of_a_pronoun_skip_neighbours():
    tokens = ["▁a"] * N
    tokens[6] = "▁its"
    maps = uniform()
    maps[1, 6] = torch.eye(N)[2]
    maps[2, 6] = torch.eye(N)[5]  # the word just before
    maps[0, 6] = 0.5 * torch.eye(N)[3] + 0.5 / N
    choice = sharpest(tokens, maps)
    assert (choice.query, choice.heads) == (6, [1, 0])
    maps[0, 9] = maps[1, 9] = torch.eye(N)[0]
    assert sharpest(tokens, maps).query == 6
    assert sharpest(["▁a"] * N, maps).query == 9
    assert sharpest(tokens, maps[:1]) is None


def test_the_most_different_heads_are_found():
    maps = uniform()
    maps[2] = torch.eye(N)
    choice = most_different(maps)
    assert choice.heads == [0, 2]
    assert choice.score > 0.9
    assert most_different(uniform(heads=1)) is None


def test_the_last_two_symbols_do_not_count():
    maps = uniform()
    maps[:, :, -1] = 5
    for rule in ("distant", "contrast"):
        assert choose(rule, ["▁a"] * N, maps).score < 1


RECOGNISER = {"architecture": "speech_attention", "encoder_layers": 1, "encoder_width": 3, "decoder_width": 4}
RECOGNISER |= {"pooled_layers": 1, "embedding_width": 3, "attention_width": 4, "location_filters": 2}


def write_run(tmp_path, model: dict):
    corpus, run, rng = tmp_path / "encoded", tmp_path / "run", np.random.default_rng(0)
    corpus.mkdir()
    with write_frames(corpus / "dev") as frames, write_tokens(corpus / "dev.tgt", len(Alphabet())) as tokens:
        for length in (2, 5, 3):
            frames.append(rng.normal(0, 1, (20, 40)))
            tokens.append(rng.integers(FIRST, len(Alphabet()), length), [length])
    speech_corpus().write(corpus / "corpus.json")
    write_settings(run, corpus, model, {"max_steps": 2, "sentences_per_update": 2, "label_smoothing": 0.0})
    for step in (1, 2):
        torch.manual_seed(step)
        built = build_initial_model(load_run(run / "run.yaml"))
        write_weights(run, built, f"checkpoints/step-{step}.safetensors", step)
    return run


def test_every_kept_checkpoint_has_its_alignment_and_entropy(tmp_path):
    run, out = write_run(tmp_path, RECOGNISER), tmp_path / "dev.json"
    write_alignments(run, "dev", 1, out)
    record = json.loads(out.read_text())
    assert record["steps"] == [1, 2] and record["utterance"] == 2 and len(record["text"]) == 3
    maps = np.array(record["maps"])
    assert maps.shape == (2, 4, 10)
    np.testing.assert_allclose(maps.sum(-1), 1, atol=1e-3)
    assert all(0 < entropy <= math.log(10) for entropy in record["entropy"])
    assert record["entropy"][0] != record["entropy"][1]


def test_a_model_without_attention_is_refused(tmp_path):
    run = write_run(tmp_path, {"architecture": "ctc", "channels": 1, "num_layers": 1, "hidden_width": 3})
    with pytest.raises(UserError, match="no attention over speech"):
        write_alignments(run, "dev", 1, tmp_path / "dev.json")


def test_entropy_of_even_attention_is_log_of_positions():
    alignments = torch.zeros(1, 3, 8)
    alignments[0, 0], alignments[0, 1, 2] = 1 / 8, 1.0
    alignments[0, 2] = 1 / 8
    real = torch.tensor([[True, True, False]])
    assert mean_entropy(alignments, real) == pytest.approx(math.log(8) / 2)


def test_median_length_is_of_the_upper_median():
    assert median_length(np.array([9, 2, 5, 7])) == 3
