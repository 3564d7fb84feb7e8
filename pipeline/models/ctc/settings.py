"""Settings of the CTC recogniser."""

from typing import Literal

from pydantic import Field

from pipeline.schema import Closed, Count


class CTCConfig(Closed):
    """Cold Fusion, Table 3, first row: Deep Speech 2's shape, trained with CTC."""

    architecture: Literal["ctc"] = Field(description="Convolutions, bidirectional GRUs, CTC (Amodei et al. 2015)")
    features: Count = Field(default=40, description="Log-mel filter banks of a frame")
    channels: Count = Field(default=32, description="Channels of both convolutions over time and frequency")
    num_layers: Count = Field(default=5, description="Bidirectional GRU layers")
    hidden_width: Count = Field(default=800, description="Units of a GRU layer, each direction; not printed")
