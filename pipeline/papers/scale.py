"""Scales: by which rule a paper's settings become smaller, so that what a sweep compares keeps its meaning."""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import count, islice
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from pipeline.config import DecodingConfig, ModelConfig, TrainingConfig
from pipeline.core.schema import NUMBER, Closed, Count, Number, shown, unknown
from pipeline.models.fusion.settings import FusionConfig

Factor = Annotated[float, Field(ge=1e-6, le=1e9, strict=False), NUMBER]


class Rule(Closed):
    """What becomes of one number. Exactly one of divide, multiply and set."""

    divide: Factor | None = Field(default=None, description="Divide the paper's value by this")
    multiply: Factor | None = Field(default=None, description="Multiply the paper's value by this")
    set: float | int | str | bool | None = Field(default=None, description="Put this in the place of the paper's value")
    minimum: Number | None = Field(default=None, description="Never less than this")
    maximum: Number | None = Field(default=None, description="Never more than this")
    why: str | None = Field(default=None, description="Printed with the tables' deviations")

    @model_validator(mode="after")
    def one_operation(self):
        if sum(value is not None for value in (self.divide, self.multiply, self.set)) != 1:
            raise ValueError("needs exactly one of divide, multiply, set")
        if self.set is not None and (self.minimum is not None or self.maximum is not None):
            raise ValueError("set needs no minimum or maximum")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self

    def apply(self, value: Any) -> Any:
        """The scaled value; whole numbers stay whole. A setting the paper leaves unset (null) stays so."""
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
    """What a job of this scale asks of the machine; the workflow passes it on."""

    threads: int = Field(default=1, ge=1, le=10_000, description="Processor cores")
    mem_mb: Count = Field(default=2000, description="Memory, MB")
    runtime: int = Field(default=60, ge=1, le=10**6, description="Time limit, minutes")
    gpus: int = Field(default=0, ge=0, le=10_000, description="GPUs a task group uses")
    nodes: int = Field(default=1, ge=1, le=10_000, description="Machines")


class Rules(Closed):
    """Rules by section."""

    model: dict[str, Rule] = Field(default={}, description="Rules for keys of the model section")
    fusion: dict[str, Rule] = Field(default={}, description="Rules for keys of the fusion section")
    training: dict[str, Rule] = Field(default={}, description="Rules for keys of the training section")
    decoding: dict[str, Rule] = Field(default={}, description="Rules for keys of a decoding")


class SystemRules(Rules):
    """Rules for one system and what differs from it."""

    gpus: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        default=None, description="GPUs of a training; null = those of all trainings"
    )


class Scale(Rules):
    """How big the world is: `workflow/scales/<scale>.yaml`."""

    description: str
    base: str | None = Field(default=None, min_length=1, description="The scale whose entries this has but for its own")
    datasets: dict[str, str] = Field(default={}, description="What stands in for each dataset the papers name")
    systems: dict[str, SystemRules] = Field(
        default={}, description="Rules in the place of those, for `paper/system` and what differs from it"
    )
    seeds: dict[str, Count] = Field(
        default={}, description="Trainings of `paper/system` with a seed each, where config.yaml asks for fewer"
    )
    resources: dict[Job, Resources] = Field(default={}, description="By kind of job: prepare, train, decode, score")

    def over(self, base: "Scale") -> "Scale":
        """This scale with the entries of `base` that it has not; a system is wholly one's or the other's."""
        sections = type(self).model_fields.keys() - {"description", "base"}
        return self.model_copy(update={name: getattr(base, name) | getattr(self, name) for name in sections})

    def seeds_of(self, system: str, asked: list[int]) -> list[int]:
        """Those of the trainings of a system: the ones asked for, and the smallest others up to its number here."""
        others = (seed for seed in count(1) if seed not in asked)
        return [*asked, *islice(others, max(0, self.seeds.get(system, 0) - len(asked)))]

    def training_gpus(self, lineage: Iterable[str]) -> int:
        """GPUs that a training takes. lineage: as for `scaled`."""
        own = [gpus for name in lineage if name in self.systems and (gpus := self.systems[name].gpus)]
        return own[-1] if own else self.resources["train"].gpus

    def scaled(self, section: str, settings: dict[str, Any], lineage: Iterable[str]) -> dict[str, Any]:
        """`settings` of one section after this scale's rules; a rule for a key that is not there does nothing.

        lineage: names of the system and its bases, the outermost base first.
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
"""What a section may be: of a model, the settings of any architecture."""
FIXED = {"architecture", "kind"}
"""Keys that say which record it is."""
NUMBERS = (1, 2, 64, 0.5)
"""One of these is allowed for each setting that is a number."""


def rule_faults(rules: Rules, where: str) -> Iterator[str]:
    """A line for each rule for a key that no section has, or that gives a setting a value of another type."""
    for section, records in RECORDS.items():
        keys = {key for record in records for key in record.model_fields} - FIXED
        for key, rule in getattr(rules, section).items():
            place = f"{where}{section}.{key}"
            if fault := unknown(key, keys, place):
                yield fault
            else:
                settings = [setting(record, key) for record in records if key in record.model_fields]
                yield from value_faults(rule, settings, place)


def value_faults(rule: Rule, settings: list[TypeAdapter], place: str) -> Iterator[str]:
    if rule.set is not None:
        if all(faults := [fault_of(one, rule.set) for one in settings]):
            yield f"{place}.set: {' or '.join(dict.fromkeys(faults))}, got {shown(rule.set)}"
    elif all(fault_of(one, number) for one in settings for number in NUMBERS):
        yield f"{place}: no number, so it can't be {'divided' if rule.divide else 'multiplied'}; use set"


@cache
def setting(record: type[BaseModel], key: str) -> TypeAdapter:
    """What one setting of a record may be."""
    field = record.model_fields[key]
    kind: Any = Annotated[field.annotation, field]
    return TypeAdapter(kind, config=ConfigDict(strict=True))


def fault_of(allowed: TypeAdapter, value: Any) -> str:
    """What a setting says of a value that is not allowed; empty where it is."""
    try:
        allowed.validate_python(value)
    except ValidationError as error:
        return error.errors()[0]["msg"]
    return ""
