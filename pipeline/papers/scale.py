"""Scales: rules that shrink a paper's settings so that sweeps keep their meaning."""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import count, islice
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from pipeline.config import DecodingConfig, ModelConfig, TrainingConfig
from pipeline.core.schema import NUMBER, Closed, Count, Number, shown, unknown
from pipeline.models.language_model.settings import FusionConfig

Factor = Annotated[float, Field(ge=1e-6, le=1e9, strict=False), NUMBER]


class Rule(Closed):
    """A rule for one setting. Exactly one of divide, multiply and set is given."""

    divide: Factor | None = Field(default=None, description="Divide the paper's value by this")
    multiply: Factor | None = Field(default=None, description="Multiply the paper's value by this")
    set: float | int | str | bool | None = Field(default=None, description="Replace the paper's value by this")
    minimum: Number | None = Field(default=None, description="Lower bound of the result")
    maximum: Number | None = Field(default=None, description="Upper bound of the result")
    why: str | None = Field(default=None, description="Reason, printed with the tables' deviations")

    @model_validator(mode="after")
    def check_operation(self):
        """Return the rule if it has one operation and bounds that fit.

        Raises:
            ValueError: It has no operation or several, or its bounds do not fit.
        """
        if sum(value is not None for value in (self.divide, self.multiply, self.set)) != 1:
            raise ValueError("needs exactly one of divide, multiply, set")
        if self.set is not None and (self.minimum is not None or self.maximum is not None):
            raise ValueError("set takes no minimum or maximum; remove them")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self

    def apply(self, value: Any) -> Any:
        """Return the scaled value. Whole numbers stay whole, and null stays null."""
        if value is None:
            return None
        if self.set is not None:
            return self.set
        scaled = value / self.divide if self.divide else value * self.multiply
        if self.minimum is not None:
            scaled = max(scaled, self.minimum)
        if self.maximum is not None:
            scaled = min(scaled, self.maximum)
        if isinstance(value, int):
            return max(1, round(scaled)) if value > 0 else 0
        return round(scaled, 12)  # 3 x 0.1 is 0.3


Job = Literal["prepare", "train", "decode", "score"]


class Resources(Closed):
    """Resources that a job of this scale requests."""

    threads: int = Field(default=1, ge=1, le=10_000, description="Processor cores")
    mem_mb: Count = Field(default=2000, description="Memory, MB")
    runtime: int = Field(default=60, ge=1, le=10**6, description="Time limit, minutes")
    gpus: int = Field(default=0, ge=0, le=10_000, description="GPUs per job")
    nodes: int = Field(default=1, ge=1, le=10_000, description="Number of machines")


class Rules(Closed):
    """Rules by section and key."""

    model: dict[str, Rule] = Field(default={}, description="Rules for keys of the model section")
    fusion: dict[str, Rule] = Field(default={}, description="Rules for keys of the fusion section")
    training: dict[str, Rule] = Field(default={}, description="Rules for keys of the training section")
    decoding: dict[str, Rule] = Field(default={}, description="Rules for keys of a decoding")


class SystemRules(Rules):
    """Rules for one system and its variants."""

    gpus: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        default=None, description="GPUs per training; null = as in resources"
    )

    def over(self, base: "SystemRules") -> "SystemRules":
        """Return these rules, completed by those of `base`."""
        rules = {section: getattr(base, section) | getattr(self, section) for section in Rules.model_fields}
        return self.model_copy(update=rules | {"gpus": self.gpus or base.gpus})


class Scale(Rules):
    """Sizes of all runs: `workflow/scales/<scale>.yaml`."""

    description: str = Field(description="What the scale is for, on which data and machine")
    base: str | None = Field(
        default=None,
        min_length=1,
        description="Scale whose entries and rules apply where this file has none of its own",
    )
    datasets: dict[str, str] = Field(default={}, description="Stand-in for each dataset that the papers name")
    systems: dict[str, SystemRules] = Field(
        default={}, description="Rules that replace those above for `paper/system` and its variants"
    )
    seeds: dict[str, Count] = Field(
        default={}, description="Minimum number of seeds of `paper/system`; applies if config.yaml asks for fewer"
    )
    resources: dict[Job, Resources] = Field(
        default={}, description="Resources by kind of job: prepare, train, decode, score"
    )

    def over(self, base: "Scale") -> "Scale":
        """Return this scale, completed by the entries of `base` and, for each system, by its rules."""
        sections = type(self).model_fields.keys() - {"description", "base"}
        entries = {name: getattr(base, name) | getattr(self, name) for name in sections}
        both = self.systems.keys() & base.systems.keys()
        entries["systems"] |= {name: self.systems[name].over(base.systems[name]) for name in both}
        return self.model_copy(update=entries)

    def seeds_of(self, system: str, asked: list[int]) -> list[int]:
        """Return the seeds of a system: those asked for, then the smallest others up to the scale's number."""
        others = (seed for seed in count(1) if seed not in asked)
        return [*asked, *islice(others, max(0, self.seeds.get(system, 0) - len(asked)))]

    def training_gpus(self, lineage: Iterable[str]) -> int:
        """Return the GPUs per training."""
        own = [gpus for name in lineage if name in self.systems and (gpus := self.systems[name].gpus)]
        return own[-1] if own else self.resources["train"].gpus

    def scaled(self, section: str, settings: dict[str, Any], lineage: Iterable[str]) -> dict[str, Any]:
        """Return one section of settings after the rules of this scale.

        Args:
            section: Name of the section.
            settings: Values by key; rules for other keys are ignored.
            lineage: Names of the system and its bases, the outermost base first.
        """
        rules: dict[str, Rule] = dict(getattr(self, section))
        for name in lineage:
            if name in self.systems:
                rules |= getattr(self.systems[name], section)
        return {key: rules[key].apply(value) if key in rules else value for key, value in settings.items()}


RECORDS: dict[str, tuple[type[BaseModel], ...]] = {
    "model": get_args(get_args(ModelConfig)[0]),
    "fusion": (FusionConfig,),
    "training": (TrainingConfig,),
    "decoding": (DecodingConfig,),
}
"""Records of each section; a model has those of any architecture."""
FIXED = {"architecture", "kind"}
"""Keys that select the record, which no rule can change."""
NUMBERS = (1, 2, 64, 0.5)
"""Every numeric setting allows at least one of these."""


def rule_faults(rules: Rules, where: str) -> Iterator[str]:
    """Yield a message, beginning with `where`, for each of the `rules` with an unknown key or a wrong type."""
    for section, records in RECORDS.items():
        keys = {key for record in records for key in record.model_fields} - FIXED
        for key, rule in getattr(rules, section).items():
            place = f"{where}{section}.{key}"
            if fault := unknown(key, keys, place):
                yield fault
            else:
                settings = [_setting_validator(record, key) for record in records if key in record.model_fields]
                yield from _rule_value_faults(rule, settings, place)


def _rule_value_faults(rule: Rule, settings: list[TypeAdapter], place: str) -> Iterator[str]:
    """Yield a message if no record allows the rule's value."""
    if rule.set is not None:
        if all(faults := [_value_fault(setting, rule.set) for setting in settings]):
            yield f"{place}.set: {' or '.join(dict.fromkeys(faults))}, got {shown(rule.set)}"
    elif all(_value_fault(setting, number) for setting in settings for number in NUMBERS):
        yield f"{place}: not a number, so it can't be {'divided' if rule.divide else 'multiplied'}; use set"


@cache
def _setting_validator(record: type[BaseModel], key: str) -> TypeAdapter:
    """Return the validator of one setting of a record."""
    field = record.model_fields[key]
    kind: Any = Annotated[field.annotation, field]
    return TypeAdapter(kind, config=ConfigDict(strict=True))


def _value_fault(allowed: TypeAdapter, value: Any) -> str:
    """Return why a value is not allowed; empty if it is."""
    try:
        allowed.validate_python(value)
    except ValidationError as error:
        return error.errors()[0]["msg"]
    return ""
