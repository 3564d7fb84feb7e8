import pytest
from recurrent_models import CONFIGS
from small_models import VOCAB, pairs
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from pipeline.models.architectures import build_model
from pipeline.models.settings import BatchShape, training_flops

ROWS = 32
SHAPE = BatchShape(VOCAB, src_positions=10 * ROWS, tgt_positions=12 * ROWS, src_length=10, tgt_length=12)


def test_count_equals_the_products_of_a_step(config):
    """Against torch's own counter; the Weighted Transformer's products of parameters do not grow with the batch."""
    model, batch = build_model(config, (VOCAB, VOCAB)), pairs([10] * ROWS, [12] * ROWS)
    with FlopCounterMode(display=False) as counter:
        model.loss(batch, 0.1).loss.backward()
    ours = training_flops(config, SHAPE)
    merged = getattr(config, "residuals", "") == "block"
    products = len(getattr(model, "blocks", [])) * 6 * 32 * 8 * 48 * merged
    products *= 4 if getattr(config, "ffn_mode", "") == "shared" else 1
    assert counter.get_total_flops() == pytest.approx(ours + products, rel=0.02)


class ProductCounter(TorchDispatchMode):
    """Multiply-adds of matmuls, those in place among them, which torch's counter passes over."""

    def __init__(self):
        super().__init__()
        self.products = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name.removeprefix("aten::").rstrip("_")
        if name in ("mm", "bmm", "mv", "addmm", "addmv", "baddbmm"):
            left, right = args[:2] if name in ("mm", "bmm", "mv") else args[1:3]
            self.products += left.numel() * (right.shape[-1] if "mm" in name else 1)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", CONFIGS)
def test_flops_equal_the_counted_matmuls_of_a_training_step(name):
    wide = {"d_embedding": 24, "d_readout": 28}
    if CONFIGS[name].architecture == "recurrent":
        wide |= {"d_state": 24, "d_attention": 40}
    config = CONFIGS[name].model_copy(update=wide)
    model, batch = build_model(config, (VOCAB, VOCAB)), pairs([10] * ROWS, [12] * ROWS)
    with ProductCounter() as counter:
        model.loss(batch, 0.1).loss.backward()
    assert 2 * counter.products == pytest.approx(training_flops(config, SHAPE), rel=0.02)
