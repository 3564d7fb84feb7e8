"""Every setting of a run: its name, type, range, default and meaning. The only place where a key is spelled.

The JSON schemas under `workflow/schemas/` are generated from these classes (`python -m pipeline schemas`).
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from pipeline.errors import UserError


class Closed(BaseModel):
    """A frozen record that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=())


Probability = Annotated[float, Field(ge=0, lt=1, strict=False)]
Count = Annotated[int, Field(ge=1)]


class TransformerConfig(Closed):
    """Attention Is All You Need, section 3 and Table 3."""

    architecture: Literal["transformer"] = Field(description="Post-norm Transformer (Vaswani et al. 2017)")
    num_layers: Count = Field(description="N: layers per stack")
    d_model: Count = Field(description="Width of embeddings and of every sub-layer's output")
    d_ff: Count = Field(description="Inner width of the feed-forward sub-layer")
    num_heads: Count = Field(description="h: attention heads")
    d_k: Count | None = Field(default=None, description="Key width of a head; null = d_model / num_heads")
    d_v: Count | None = Field(default=None, description="Value width of a head; null = d_model / num_heads")
    dropout: Probability = Field(default=0.1, description="P_drop: sub-layer outputs and embedding sums")
    attention_dropout: Probability = Field(default=0.0, description="Dropout of attention weights")
    relu_dropout: Probability = Field(default=0.0, description="Dropout inside the feed-forward sub-layer")
    positions: Literal["sinusoid", "learned"] = Field(
        default="sinusoid", description="Position encoding (row E: learned)"
    )
    max_positions: Count = Field(default=256, description="Rows of a learned position table, in subwords")
    tie_embeddings: Literal["three-way", "none"] = Field(
        default="three-way", description="Whether source, target and pre-softmax matrices are one"
    )

    @model_validator(mode="after")
    def heads_divide_width(self):
        if (self.d_k is None or self.d_v is None) and self.d_model % self.num_heads:
            raise ValueError(f"num_heads {self.num_heads} must divide d_model {self.d_model}, or set d_k and d_v")
        return self

    @property
    def key_width(self) -> int:
        return self.d_k or self.d_model // self.num_heads

    @property
    def value_width(self) -> int:
        return self.d_v or self.d_model // self.num_heads


class WeightedTransformerConfig(TransformerConfig):
    """Weighted Transformer Network, section 3."""

    architecture: Literal["weighted_transformer"] = Field(description="Branched attention (Ahmed et al. 2017)")
    num_branches: Count | None = Field(default=None, description="M: branches; null = num_heads")
    ffn_mode: Literal["split", "shared"] = Field(
        default="split", description="Each branch owns d_ff / M units, or all branches share one full-width network"
    )
    normalisation: Literal["projection", "softmax"] = Field(
        default="projection", description="How kappa and alpha are kept on the simplex"
    )
    weights: Literal["learned", "random"] = Field(default="learned", description="kappa, alpha in training")
    merged: bool = Field(default=False, description="One variable serves as both kappa and alpha")
    top_k: Count | None = Field(default=None, description="Only the k heaviest branches are summed; null = all")
    branched_attention: Literal["cross", "self"] = Field(
        default="cross", description="Which attention of a decoder layer is branched"
    )

    @model_validator(mode="after")
    def branches_divide_width(self):
        if self.ffn_mode == "split" and self.d_ff % self.branches:
            raise ValueError(f"num_branches {self.branches} must divide d_ff {self.d_ff} when ffn_mode is split")
        if self.top_k is not None and self.top_k > self.branches:
            raise ValueError(f"top_k {self.top_k} exceeds the {self.branches} branches")
        return self

    @property
    def branches(self) -> int:
        return self.num_branches or self.num_heads


ModelConfig = Annotated[TransformerConfig | WeightedTransformerConfig, Field(discriminator="architecture")]


class TrainingConfig(Closed):
    """How a model is trained. Token counts are target subwords, padding included."""

    max_steps: Count = Field(description="Updates")
    warmup_steps: Count = Field(description="Updates of linear warm-up (eq. 3)")
    lr_factor: float = Field(default=1.0, gt=0, strict=False, description="Multiplier of the schedule")
    adam_beta1: Probability = 0.9
    adam_beta2: Probability = 0.98
    adam_eps: float = Field(default=1e-9, gt=0, strict=False)
    label_smoothing: Probability = Field(default=0.1, description="eps_ls: mass spread over the other symbols")
    tokens_per_update: Count = Field(description="Tokens a side and update, whatever the number of devices")
    micro_batch_tokens: Count = Field(
        default=8192, description="Tokens a side that a device holds at once; the rest is accumulated"
    )
    max_length: Count = Field(default=256, description="Longer pairs (subwords a side) are left out and counted")
    clip_norm: float | None = Field(default=None, gt=0, strict=False, description="Global gradient norm; null = none")
    validate_every: Count = Field(description="Updates between validations")
    checkpoint_every: Count = Field(description="Updates between checkpoints kept for averaging")
    keep_checkpoints: Count = Field(default=20, description="Checkpoints kept, newest first")
    precision: Literal["fp32", "bf16"] = Field(default="fp32", description="Autocast of matrix products")
    branch_warmup_steps: Count | None = Field(default=None, description="Warm-up of kappa and alpha (400 as printed)")
    branch_lr_factor: float = Field(
        default=1.0, gt=0, strict=False, description="Multiplier of the schedule of kappa and alpha"
    )
    branch_freeze_steps: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Last updates during which kappa and alpha are frozen (10000 as printed)"
    )
    compile: bool = Field(default=False, description="torch.compile (pays off on GPUs only)")


class DecodingConfig(Closed):
    """How a trained model is turned into text."""

    beam_size: Count = 4
    length_penalty: float = Field(default=0.6, ge=0, strict=False, description="alpha of ((5+|Y|)/6)^alpha")
    length_normalisation: Literal["gnmt", "length", "none"] = "gnmt"
    max_extra_length: Count = Field(default=50, description="Output may exceed the source by so many subwords")
    average_last: Count = Field(default=1, description="Checkpoints averaged; 1 = the final weights alone")
    branch_weights: Literal["learned", "random", "uniform"] = Field(
        default="learned", description="kappa and alpha of a Weighted Transformer at test time (its Table 3)"
    )
    branch_weights_seed: int = Field(default=1, description="Seed of random branch weights")
    batch_tokens: Count = Field(default=4096, description="Source subwords decoded at once")


class RunSpec(Closed):
    """One system on one dataset with one seed at one scale: all that training reads (`run.yaml`)."""

    paper: str
    system: str
    dataset: str
    scale: str
    seed: Annotated[int, Field(ge=0)]
    corpus: str = Field(description="Folder of the encoded corpus")
    model: ModelConfig
    training: TrainingConfig

    @property
    def name(self) -> str:
        return f"{self.paper}/{self.system} seed {self.seed}"


def validate(kind: Any, value: Any, where: str) -> Any:
    """`value` as a `kind`, a record class or an annotated union of them.

    Raises:
        UserError: with file, key, value and what is allowed, one line a fault.
    """
    adapter = TypeAdapter(kind)
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        schema = adapter.json_schema()
        lines = [
            f"{where}: {'.'.join(map(str, fault['loc'])) or 'file'}: {explain(fault, schema)}"
            for fault in error.errors()
        ]
        raise UserError("\n".join(lines)) from error


def explain(fault: dict, schema: dict) -> str:
    """One pydantic fault in words that name the value and what is allowed."""
    if fault["type"] == "extra_forbidden":
        return f"unknown key; allowed: {', '.join(allowed_keys(schema, fault['loc'][:-1]))}"
    if fault["type"] == "missing":
        return "missing key"
    got = "" if isinstance(fault["input"], dict) else f", got {fault['input']!r}"
    return fault["msg"].removeprefix("Value error, ") + got


def allowed_keys(schema: dict, location: tuple) -> list[str]:
    """Keys of the record at `location` in a JSON schema; the tag of a union counts as a step."""
    records = alternatives(schema, schema)
    for step in location:
        inner = []
        for record in records:
            if isinstance(step, int):
                inner.append(record.get("items"))
            elif step in record.get("properties", {}):
                inner.append(record["properties"][step])
            elif step in {value.get("const") for value in record.get("properties", {}).values()}:
                inner.append(record)
            else:
                inner.append(record.get("additionalProperties"))
        records = [option for part in inner if part for option in alternatives(part, schema)]
    return sorted({key for record in records for key in record.get("properties", {})})


def alternatives(part: dict, schema: dict) -> list[dict]:
    """`part` with its references and unions resolved."""
    if "$ref" in part:
        return alternatives(schema["$defs"][part["$ref"].rsplit("/", 1)[-1]], schema)
    options = part.get("anyOf", part.get("oneOf"))
    return [part] if options is None else [one for option in options for one in alternatives(option, schema)]


def load_yaml(path: Path) -> Any:
    """Raises UserError when `path` is missing or is not YAML."""
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not valid YAML: {error}") from error


def load_run(path: Path) -> RunSpec:
    """Read a `run.yaml`. Raises UserError on unknown keys, bad values or a missing file."""
    return validate(RunSpec, load_yaml(path), str(path))
