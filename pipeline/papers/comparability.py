"""Whether a number of ours can be set against the printed one, derived from what was run and never declared.

It can if the dataset is the one that the paper names, the metric is the printed one, no rule of the scale changed what
was run, and no deviation of the row's system changes one of these.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pipeline.analysis.cells.cell import Cell, PrintedTable, Row
from pipeline.analysis.view import PaperView
from pipeline.config import DecodingConfig, RunSpec
from pipeline.core.artifacts import Product, RunId, Score, Trained
from pipeline.papers.paper import Deviation, TableEntry
from pipeline.papers.project import Project

SECTIONS = ("model", "fusion", "training")
OF_THE_MACHINE = frozenset(
    {
        "micro_batch_tokens",
        "micro_batch_frames",
        "precision",
        "keep_checkpoints",
        "tensorboard",
        "cuda_graphs",
        "batch_tokens",
    }
)
"""Settings of trainings and decodings that say how a machine does the work and what it keeps, not what work it is."""


@dataclass(frozen=True)
class Reason:
    """Why a number is not comparable with the printed one."""

    subject: str
    """What several reasons share, e.g. the scale; empty for data that stands in."""
    detail: str

    @property
    def is_stand_in(self) -> bool:
        return not self.subject


def in_words(reasons: Sequence[Reason]) -> str:
    """Reasons of one subject together."""
    details: dict[str, dict[str, None]] = {}
    for reason in reasons:
        details.setdefault(reason.subject, {})[reason.detail] = None
    return "; ".join(f"{subject} {', '.join(shared)}".strip() for subject, shared in details.items())


class AsPrinted(Project):
    """A project as its papers have it: every dataset by its own name, and no rule of a scale."""

    def __init__(self, project: Project):
        self.__dict__.update(project.__dict__)
        ruleless: dict[str, Any] = {section: {} for section in (*SECTIONS, "decoding", "systems")}
        self.scale = project.scale.model_copy(update=ruleless)
        self.forget()

    def stand_in(self, dataset: str) -> str:
        return dataset


class Comparability:
    """Sets what is run for the tables of one paper beside what the paper has for the same."""

    def __init__(self, project: Project, paper: str):
        self.project, self.printed, self.paper = project, AsPrinted(project), paper
        self.changes = cache(self._changes)

    def reasons(self, entry: TableEntry, table: PrintedTable, index: int, cell: Cell) -> list[Reason]:
        """Why the cell in row `index` is not comparable; none if it is, or where nothing is run."""
        sources = cell.comparability_sources(table, index)
        found = (reason for source, row in sources for reason in self.part_reasons(entry, source, row))
        return list(dict.fromkeys(found))

    def part_reasons(self, entry: TableEntry, cell: Cell, row: Row) -> Iterator[Reason]:
        used, named = (list(cell.needs(PaperView(one, self.paper), row)) for one in (self.project, self.printed))
        for ours, theirs in zip(used, named, strict=True):
            yield from self.changes(ours, theirs)
        metric, printed = cell.compared_metric, entry.printed_metrics.get(cell.printed or "")
        if used and cell.printed and metric and metric != printed:
            yield Reason(f"{cell.printed} is", f"printed in {printed or 'no metric named'}, measured in {metric}")
        for where, deviation in self.deviations(cell.systems(row)) if used else ():
            for changed in deviation.changes:
                yield Reason(f"deviation {where} changes the", changed)

    def deviations(self, systems: set[str]) -> Iterator[tuple[str, Deviation]]:
        """Those of this paper by number, and those of the papers that own the systems."""
        owned: dict[str, set[str]] = {self.paper: set(systems)}
        for owner, system in (self.project.locate(system, self.paper) for system in sorted(systems)):
            owned.setdefault(owner, set()).add(system)
        for paper, names in owned.items():
            for number, deviation in enumerate(self.project.papers[paper].deviations, start=1):
                if deviation.concerns(names):
                    yield (str(number) if paper == self.paper else f"{number} of {paper}"), deviation

    def _changes(self, used: Product, named: Product) -> tuple[Reason, ...]:
        """How something that is needed differs from the same as the paper has it; found once for all cells."""
        match used, named:
            case Trained(ours), Trained(theirs):
                return tuple(self.run_changes(ours, theirs))
            case Score(ours, _, decoding, _, where), Score(theirs, _, _, _, wanted):
                return (*stands_in(where, wanted), *self.decoding_changes(ours, theirs, decoding))
        return ()

    def run_changes(self, used: RunId, named: RunId) -> Iterator[Reason]:
        """Of a training and of those that it takes weights from."""
        yield from stands_in(used.dataset, named.dataset)
        ours, theirs = self.project.run_spec(used), self.printed.run_spec(named)
        for section in SECTIONS:
            here, there = (settings_of(spec, section) for spec in (ours, theirs))
            for key in sorted(key for key in here if here[key] != there[key]):
                if key not in OF_THE_MACHINE | without_effect(theirs):
                    yield self.by_scale(f"{section}.{key}")
        for taken in zip(self.project.taken(used).values(), self.printed.taken(named).values(), strict=True):
            yield from self.run_changes(*taken)

    def by_scale(self, setting: str) -> Reason:
        return Reason(f"scale {self.project.config.scale} changes", setting)

    def decoding_changes(self, used: RunId, named: RunId, name: str) -> Iterator[Reason]:
        """Of a decoding, the distance of the checkpoints that it averages, and its language model."""
        pair = ((self.project, used), (self.printed, named))
        here, there = (project.decoding(run.paper, run.system, name) for project, run in pair)
        for key in sorted(DecodingConfig.model_fields.keys() - OF_THE_MACHINE):
            if getattr(here, key) != getattr(there, key):
                yield self.by_scale(f"decoding.{key}")
        ours, theirs = (project.run_spec(run).training.checkpoint_every for project, run in pair)
        if there.reads_checkpoints and ours != theirs:
            yield self.by_scale("training.checkpoint_every")
        models = [project.decoding_language_model(run, name) for project, run in pair]
        if models[0] and models[1]:
            yield from self.run_changes(models[0], models[1])


def without_effect(spec: RunSpec) -> set[str]:
    """Settings that decide nothing of what this run learns."""
    training, idle = spec.training, {"checkpoint_every"}
    if training.schedule != "plateau" and training.patience is None:
        idle.add("validate_every")
    return idle if training.branch_warmup_steps else idle | {"branch_lr_factor"}


def settings_of(spec: RunSpec, section: str) -> dict[str, Any]:
    """One section of a run; empty where it has none."""
    settings = getattr(spec, section)
    return settings.model_dump() if settings else {}


def stands_in(used: str | None, named: str | None) -> list[Reason]:
    return [] if used == named else [Reason("", f"`{used}` stands in for {named}")]
