"""Comparability of measured numbers with printed ones, derived from what was run and never declared.

A number is comparable if four conditions hold. The dataset is the paper's own, and its test set lost no lines. The
metric is the printed one; perplexity per subword is not, because it depends on the paper's own subwords. No rule of the
scale changed the run. No deviation of the row's system changes one of these.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pipeline.analysis.cells.cell import Cell, PrintedTable, Row
from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView
from pipeline.config import DecodingConfig, RunSpec
from pipeline.core.artifacts import Artifact, RunId, Score, Trained
from pipeline.data.dataset.base import BpeSubwords, TokenisedRecord
from pipeline.metrics.error_rates import PERPLEXITY
from pipeline.papers.paper import Deviation, TableEntry
from pipeline.papers.project import Project

SECTIONS = ("model", "fusion", "training")
MACHINE_SETTINGS = frozenset(
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
"""Settings of trainings and decodings that affect speed, memory and disk use, but not what is computed."""


@dataclass(frozen=True)
class Reason:
    """A reason why a number is not comparable with the printed one.

    Attributes:
        subject: Part shared by several reasons, e.g. the scale; empty for a stand-in dataset.
        detail: Part of this reason alone.
    """

    subject: str
    detail: str

    @property
    def is_stand_in(self) -> bool:
        """Return whether the reason is a stand-in dataset."""
        return not self.subject


def format_reasons(reasons: Sequence[Reason]) -> str:
    """Format reasons as text, grouped by subject."""
    details: dict[str, dict[str, None]] = {}
    for reason in reasons:
        details.setdefault(reason.subject, {})[reason.detail] = None
    return "; ".join(f"{subject} {', '.join(shared)}".strip() for subject, shared in details.items())


class PrintedProject(Project):
    """A project at printed size: every dataset stands for itself, and no rule of a scale applies."""

    def __init__(self, project: Project):
        self.__dict__.update(project.__dict__)
        ruleless: dict[str, Any] = {section: {} for section in (*SECTIONS, "decoding", "systems")}
        self.scale = project.scale.model_copy(update=ruleless)
        self.clear_caches()

    def stand_in(self, dataset: str) -> str:
        """Return `dataset` itself."""
        return dataset


class Comparability:
    """Comparison of the runs of one paper's tables with the runs that the paper describes."""

    def __init__(self, project: Project, paper: str):
        self.project, self.printed, self.paper = project, PrintedProject(project), paper
        self.changes = cache(self._find_changes)

    def reasons(self, entry: TableEntry, table: PrintedTable, index: int, cell: Cell) -> list[Reason]:
        """Return why the cell in row `index` isn't comparable with its printed number; empty if it is or has no run."""
        sources = cell.comparability_sources(table, index)
        found = (
            reason for source, row in sources for reason in self._source_reasons(entry, table.folders, source, row)
        )
        return list(dict.fromkeys(found))

    def _source_reasons(self, entry: TableEntry, folders: RunFolders, cell: Cell, row: Row) -> Iterator[Reason]:
        """Yield why one source of a cell is not comparable."""
        used, named = (
            list(cell.needs(PaperView(project, self.paper), row)) for project in (self.project, self.printed)
        )
        for ours, theirs in zip(used, named, strict=True):
            yield from self.changes(ours, theirs)
        for artifact in used:
            if isinstance(artifact, Score) and (score := folders.score(artifact)) and score.left_out:
                yield Reason(f"{score.test_set} lacks", f"{score.left_out} of {score.lines + score.left_out} lines")
        metric, printed = cell.compared_metric, entry.printed_metrics.get(cell.printed or "")
        if used and cell.printed and metric and metric != printed:
            yield Reason(f"{cell.printed} is", f"printed in {printed or 'no metric named'}, measured in {metric}")
        if cell.printed and metric == PERPLEXITY.name and any(map(self._predicts_subwords, used)):
            yield Reason("perplexity is", "per subword, and the paper's subwords are others")
        for where, deviation in self.deviations(cell.systems(row)) if used else ():
            for changed in deviation.changes:
                yield Reason(f"deviation {where} changes the", changed)

    def _predicts_subwords(self, artifact: Artifact) -> bool:
        """Return whether an artifact is a score of a model whose output symbols are subwords, not words or others."""
        record = self.project.dataset_records[artifact.run.dataset] if isinstance(artifact, Score) else None
        return isinstance(record, TokenisedRecord) and isinstance(record.tgt_subwords or record.subwords, BpeSubwords)

    def deviations(self, systems: set[str]) -> Iterator[tuple[str, Deviation]]:
        """Yield the deviations that concern some systems, of this paper and of the papers that own them.

        Yields:
            The number of the deviation, with the name of another paper, and the deviation.
        """
        owned: dict[str, set[str]] = {self.paper: set(systems)}
        for owner, system in (self.project.locate(system, self.paper) for system in sorted(systems)):
            owned.setdefault(owner, set()).add(system)
        for paper, names in owned.items():
            for number, deviation in enumerate(self.project.papers[paper].deviations, start=1):
                if deviation.concerns(names):
                    yield (str(number) if paper == self.paper else f"{number} of {paper}"), deviation

    def _find_changes(self, used: Artifact, named: Artifact) -> tuple[Reason, ...]:
        """Return how a needed artifact differs from the paper's; cached for all cells."""
        match used, named:
            case Trained(ours), Trained(theirs):
                return tuple(self._run_changes(ours, theirs))
            case Score(ours, _, decoding, _, where), Score(theirs, _, _, _, wanted):
                return (*_stand_in_reasons(where, wanted), *self._decoding_changes(ours, theirs, decoding))
        return ()

    def _run_changes(self, used: RunId, named: RunId) -> Iterator[Reason]:
        """Yield how a run and the runs whose weights it loads differ from the paper's."""
        yield from _stand_in_reasons(used.dataset, named.dataset)
        ours, theirs = self.project.run_spec(used), self.printed.run_spec(named)
        for section in SECTIONS:
            here, there = (_section_settings(spec, section) for spec in (ours, theirs))
            for key in sorted(key for key in here if here[key] != there[key]):
                if key not in MACHINE_SETTINGS | _idle_settings(theirs):
                    yield self._scale_reason(f"{section}.{key}")
        for taken in zip(
            self.project.weight_sources(used).values(), self.printed.weight_sources(named).values(), strict=True
        ):
            yield from self._run_changes(*taken)

    def _scale_reason(self, setting: str) -> Reason:
        """Return the reason that the scale changes a setting."""
        return Reason(f"scale {self.project.config.scale} changes", setting)

    def _decoding_changes(self, used: RunId, named: RunId, name: str) -> Iterator[Reason]:
        """Yield how a decoding, the interval of its averaged checkpoints or its language model differ."""
        pair = ((self.project, used), (self.printed, named))
        here, there = (project.decoding(run.paper, run.system, name) for project, run in pair)
        for key in sorted(DecodingConfig.model_fields.keys() - MACHINE_SETTINGS):
            if getattr(here, key) != getattr(there, key):
                yield self._scale_reason(f"decoding.{key}")
        ours, theirs = (project.run_spec(run).training.checkpoint_every for project, run in pair)
        if there.reads_checkpoints and ours != theirs:
            yield self._scale_reason("training.checkpoint_every")
        models = [project.decoding_language_model(run, name) for project, run in pair]
        if models[0] and models[1]:
            yield from self._run_changes(models[0], models[1])


def _idle_settings(spec: RunSpec) -> set[str]:
    """Return the settings that do not affect the weights of this run."""
    training, idle = spec.training, {"checkpoint_every"}
    if training.schedule != "plateau" and training.patience is None:
        idle.add("validate_every")
    return idle if training.branch_warmup_steps else idle | {"branch_lr_factor"}


def _section_settings(spec: RunSpec, section: str) -> dict[str, Any]:
    """Return one section of a run's settings; empty if it has none."""
    settings = getattr(spec, section)
    return settings.model_dump() if settings else {}


def _stand_in_reasons(used: str | None, named: str | None) -> list[Reason]:
    """Return the reason that one dataset stands in for another, if it does."""
    return [] if used == named else [Reason("", f"`{used}` stands in for {named}")]
