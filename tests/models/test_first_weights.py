"""Initial weights of a Transformer if a recipe draws its matrices otherwise than the authors' code."""

import pytest
import torch
from planning_project import project_at
from small_models import weighted_config
from torch import nn

from pipeline.models.architectures import build_model
from pipeline.models.transformer.multi_head_attention import CrossAttention, SelfAttention


def test_tiny_transformer_has_the_initial_ranges_of_the_library(tmp_path):
    """Xavier, with a gain of 1 / sqrt 2 for queries, keys and values, and torch's linear layers for the others."""
    project = project_at(tmp_path, scale="small")
    (run, *_) = project.runs_of("anchors", "tiny-transformer", "multi30k-en-de-lowercased")
    config = project.run_spec(run).model
    model = build_model(config, (50, 50))
    xavier, output = (nn.init.xavier_uniform_(torch.empty(128, 128), gain=gain) for gain in (2**-0.5, 1))
    for layer in (*model.encoder, *model.decoder):
        network, readers = layer.feed_forward, (SelfAttention, CrossAttention)
        attentions = [child for child in layer.children() if isinstance(child, readers)]
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
    torch.manual_seed(1)
    plain = build_model(weighted_config(), (50, 50))
    torch.manual_seed(1)
    scaled = build_model(weighted_config(attention_init=0.5, feed_forward_init=0.25), (50, 50))
    after = dict(scaled.named_parameters())
    factors = {
        name: (after[name] / parameter).unique().tolist()
        for name, parameter in plain.named_parameters()
        if parameter.all()
    }
    assert {tuple(found) for found in factors.values()} == {(1.0,), (0.5,), (0.25,)}
    assert {name.split(".")[-2] for name, found in factors.items() if found == [0.25]} == {"inner", "outer"}
    assert {name.split(".")[-2] for name, found in factors.items() if found == [0.5]} == {"qkv", "query", "kv"}
