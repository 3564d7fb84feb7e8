"""Parameter counts against those that *Multi-channel Encoder* prints, with 30000 symbols a side, and of DL4MT."""

import pytest
from recurrent_models import dl4mt_config

from pipeline.models.architectures import build_model
from pipeline.models.recurrent.settings import RecurrentConfig
from pipeline.models.seq2seq import count_parameters_on_meta

# printed in Table 1, and what follows for 40000 symbols
TABLE_1 = {
    "rnn": (56_314_881, 71_674_881),
    "ntm": (59_988_995, 75_348_995),
    "emb": (58_416_131, 73_776_131),
    "ntm-emb": (63_135_747, 78_495_747),
    "ntm-rnn": (64_184_323, 79_544_323),
    "rnn-emb": (59_461_633, 74_821_633),
    "ntm-rnn-emb": (67_331_075, 82_691_075),
}
WIDTHS = {"d_embedding": 512, "d_state": 512, "d_attention": 1024, "d_readout": 512}


def count(config: RecurrentConfig, symbols: int) -> int:
    return count_parameters_on_meta(lambda: build_model(config, (symbols, symbols)))


@pytest.mark.parametrize("write", ["forget_update", "tanh_content"])
@pytest.mark.parametrize("blending", ["gate", "gru"])
@pytest.mark.parametrize("channels", TABLE_1)
def test_the_seven_systems_have_exactly_the_printed_parameters(channels, write, blending):
    settings = {"channels": channels, "memory_write": write, "blending": blending}
    config = RecurrentConfig(architecture="recurrent", **WIDTHS, **settings)
    assert tuple(count(config, symbols) for symbols in (30000, 40000)) == TABLE_1[channels]


def test_dl4mt_has_the_parameters_of_its_public_code():
    """Written out from the shapes in the tutorial's session 2: dim 1000, dim_word 620, 30000 words."""
    config = dl4mt_config(d_embedding=620, d_state=1000, d_attention=2000, d_readout=620)
    gru = 3 * (620 * 1000 + 1000 + 1000 * 1000)
    encoder = 2 * 30000 * 620 + 2 * gru + 2000 * 1000 + 1000
    attention = 1000 * 2000 + 2000 * 2000 + 2000 + 2000 + 1
    decoder = gru + 3 * (1000 * 1000 + 1000 + 2000 * 1000) + attention
    readout = (1000 + 620 + 2000) * 620 + 3 * 620 + 620 * 30000 + 30000
    assert count(config, 30000) == encoder + decoder + readout == 89_673_261
