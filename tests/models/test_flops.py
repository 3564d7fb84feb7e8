import pytest
from small_models import VOCAB, pairs
from torch.utils.flop_counter import FlopCounterMode

from pipeline.models.build import build_model
from pipeline.models.flops import training_flops


def test_count_equals_the_products_of_a_step(config):
    """Against torch's own counter; the Weighted Transformer's products of parameters do not grow with the batch."""
    model, batch = build_model(config, (VOCAB, VOCAB)), pairs([10] * 64, [12] * 64)
    with FlopCounterMode(display=False) as counter:
        model.loss(batch, 0.1).loss.backward()
    ours = training_flops(config, VOCAB, 640, 768, 10, 12)
    products = len(getattr(model, "blocks", [])) * 6 * 32 * 8 * 48
    products *= 4 if getattr(config, "ffn_mode", "") == "shared" else 1
    assert counter.get_total_flops() == pytest.approx(ours + products, rel=0.02)
