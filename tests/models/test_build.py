import pytest
from small_models import transformer_config, weighted_config

from pipeline.core.errors import UserError
from pipeline.models.architectures import build_model


def test_three_way_tying_needs_one_vocabulary():
    with pytest.raises(UserError, match="one vocabulary"):
        build_model(transformer_config(), (30, 40))


def test_untied_model_takes_two_vocabularies():
    model = build_model(transformer_config(tie_embeddings="none"), (30, 40))
    assert model.src_embedding.weight.shape == (30, 32) and model.output_weight.shape == (40, 32)


def test_branches_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match="num_branches 6 must divide d_model 32"):
        weighted_config(num_branches=6)
