"""Records of probes: analyses of trained models and of their layers."""

from pydantic import Field

from pipeline.core.records.record import Record
from pipeline.core.records.training import Machine
from pipeline.core.schema import Closed


class GateValue(Closed):
    """Mean of a gate over words of a kind; None without words."""

    value: float | None
    words: int


class Gates(Record):
    """`gates.json`; the .npz file beside it holds the statistics of each sentence, by `<channel>.<kind>`."""

    dataset: str
    test_sets: list[str]
    lines: int
    gates: dict[str, dict[str, GateValue]] = Field(description="Gate values by channel and kind of word")
    statistics: str
    weights_digest: str


class AttentionMap(Record):
    """Attention weights of some heads of one encoder layer on one sentence."""

    rule: str = Field(description="Rule that chose the sentence")
    split: str
    sentence: int = Field(description="Its place in the split, from 0")
    tokens: list[str]
    query: int | None = Field(description="Position of the query word; None = all")
    pronoun: bool = Field(description="The query word is a pronoun")
    layer: int = Field(description="Number of the layer, from 1")
    layers: int
    heads: list[int] = Field(description="Numbers of the heads, from 0")
    weights: list[list[list[float]]] = Field(description="Attention weights, shape (heads, queries, keys)")
    weights_digest: str


class AlignmentMaps(Record):
    """Alignments of a recogniser at each kept checkpoint."""

    split: str
    utterances: int = Field(description="Number of utterances in the mean entropy")
    utterance: int = Field(description="Number of the utterance of the maps, from 0")
    text: str = Field(description="Transcript of that utterance")
    steps: list[int] = Field(description="Training step of each checkpoint")
    entropy: list[float] = Field(description="Mean entropy of a character's alignment at each checkpoint, nats")
    maps: list[list[list[float]]] = Field(
        description="Attention weights, shape (checkpoints, characters, encoder positions)"
    )
    weights_digest: str


TIMED_BESIDE = ("additive attention", "attention of one head", "attention of eight heads")
"""Layers of section 3.2 of Attention Is All You Need that are timed beside the types of its Table 1."""


class LayerTime(Closed):
    """Times of a forward pass of a layer type on n positions of width d."""

    layer: str
    n: int
    d: int
    seconds: list[float] = Field(description="Seconds of each repeat")


class LayerCosts(Machine, Record):
    """`layer_times.json`."""

    times: list[LayerTime]
    matmul_flops_per_s: float = Field(description="Sustained FLOP/s in float32; a multiply-add counts as 2")
    kernel: int = Field(description="Positions that a convolution reads")
    window: int = Field(description="Positions that restricted self-attention reads")
    on_processor: bool
    provenance: dict[str, str | int]


class ModelSize(Closed):
    """Number of parameters of a system."""

    system: str
    vocab: int = Field(description="Size of the vocabulary")
    parameters: int = Field(description="Trainable parameters")


class ModelSizes(Record):
    """Sizes of a paper's systems at the paper's own size."""

    sizes: list[ModelSize]
