"""Initial weights: distributions, and models built from their settings."""

import pytest
import torch
from real_project import project_at
from recurrent_models import dl4mt_config, recurrent_config
from small_models import VOCAB, transformer_config, weighted_config
from torch import nn

from pipeline.core.errors import UserError
from pipeline.models.architectures import build_model
from pipeline.models.transformer.multi_head_attention import CrossAttention, SelfAttention


def test_uniform_weights_fill_their_range_biases_included():
    model = build_model(recurrent_config("ntm-rnn-emb", init_scale=0.04), (VOCAB, VOCAB))
    drawn = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    assert 0.0395 < drawn.max() <= 0.04 and -0.04 <= drawn.min() < -0.0395
    assert abs(drawn.std() / 0.04 - 3**-0.5) < 0.03


def test_dl4mt_initialises_square_matrices_orthogonally():
    model = build_model(dl4mt_config(), (VOCAB, VOCAB))
    encoder, decoder = model.encoder, model.decoder
    units = [encoder.forward_layer, encoder.backward_layer, decoder.first, decoder.second]
    square = [block for unit in units for block in unit.weight_state.chunk(3)]
    for block in (*square, decoder.attention.key, decoder.second.weight_input[:24]):
        torch.testing.assert_close(block @ block.t(), torch.eye(len(block)), rtol=0, atol=1e-5)
    others = [model.src_embedding.weight, model.read_state.weight, model.output_weight, decoder.attention.query]
    others += [model.read_previous.weight, decoder.second.weight_input[24:], decoder.first.weight_input]
    drawn = torch.cat([parameter.detach().flatten() for parameter in others])
    assert drawn.abs().max() < 0.06 and abs(drawn.std() / 0.01 - 1) < 0.1 and decoder.attention.score.any()
    assert not any(parameter.any() for name, parameter in model.named_parameters() if name.endswith("bias"))


def test_tiny_transformer_has_the_initial_ranges_of_the_library(tmp_path):
    """Xavier, with a gain of 1 / sqrt 2 for queries, keys and values, and torch's linear layers for the others."""
    project = project_at(tmp_path, scale="small")
    (run, *_) = project.runs_of("anchors", "tiny-transformer", "multi30k-en-de-lowercased")
    model = build_model(project.run_spec(run).model, (50, 50))
    xavier, output = (nn.init.xavier_uniform_(torch.empty(128, 128), gain=gain) for gain in (2**-0.5, 1))
    for layer in (*model.encoder, *model.decoder):
        network = layer.feed_forward
        attentions = [child for child in layer.children() if isinstance(child, SelfAttention | CrossAttention)]
        drawn = [
            (network.inner.weight, nn.Linear(128, 256).weight),
            (network.outer.weight, nn.Linear(256, 128).weight),
            *((child.weight, xavier) for part in attentions for name, child in part.named_children() if name != "mix"),
            *((part.mix.output.weight, output) for part in attentions),
        ]
        assert len(drawn) == (4 if layer in model.encoder else 7)
        for ours, library in drawn:
            assert ours.std().item() == pytest.approx(library.std().item(), rel=0.02)
            assert ours.abs().max().item() == pytest.approx(library.abs().max().item(), rel=0.01)


def test_a_factor_is_all_that_changes():
    weights = []
    for changes in ({}, {"attention_init": 0.5, "feed_forward_init": 0.25}):
        torch.manual_seed(1)
        weights.append(dict(build_model(weighted_config(**changes), (50, 50)).named_parameters()))
    factors: dict[float, set[str]] = {}
    for name, weight in weights[0].items():
        if weight.all():
            (factor,) = (weights[1][name] / weight).unique().tolist()
            factors.setdefault(factor, set()).add(name.split(".")[-2])
    assert factors.keys() == {1.0, 0.5, 0.25}
    assert factors[0.25] == {"inner", "outer"} and factors[0.5] == {"qkv", "query", "kv"}


def test_three_way_tying_needs_one_vocabulary():
    with pytest.raises(UserError, match="one vocabulary"):
        build_model(transformer_config(), (30, 40))


def test_untied_model_takes_two_vocabularies():
    model = build_model(transformer_config(tie_embeddings="none"), (30, 40))
    assert model.src_embedding.weight.shape == (30, 32) and model.output_weight.shape == (40, 32)
