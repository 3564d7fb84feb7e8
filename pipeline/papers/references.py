"""Checks of all references between files, made when a project is loaded, for all scales.

The types of record fields mark references (`analysis/reference_types.py`). So records of a new kind are checked too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from pipeline.analysis.cells.cell import RunCell, is_ours
from pipeline.analysis.cells.scores import MeasuredCell
from pipeline.analysis.reference_types import Named, Names, names_in
from pipeline.analysis.view import ScoredSplits
from pipeline.core.errors import UserError, count_of, one_line
from pipeline.core.records.outputs import TIMED_BESIDE
from pipeline.core.schema import MOST_FAULTS, unknown
from pipeline.data.dataset import LicensedPackages
from pipeline.metrics import metric_named, metric_names
from pipeline.papers.paper import SystemEntry
from pipeline.papers.scale import RECORDS, Job, Scale, rule_faults

if TYPE_CHECKING:
    from pipeline.config import DecodingConfig
    from pipeline.papers.project import Project

Faults = Iterator[str | None]


def check_references(project: Project) -> list[str]:
    """Check all names that refer to something.

    Returns:
        A warning for each system that nothing names, so that no target trains it.

    Raises:
        UserError: A name refers to nothing or, in a cycle, to itself; the message has one line for each fault.
    """
    references = References(project)
    for faults in (references.faults(), _circular_systems(project), _misused_decodings(project)):
        if found := dict.fromkeys(filter(None, faults)):
            more = [f"and {count_of(len(found) - MOST_FAULTS, 'more fault')}"] if len(found) > MOST_FAULTS else []
            raise UserError("\n".join(map(one_line, [*islice(found, MOST_FAULTS), *more])))
    return [
        f"workflow/papers/{paper}/paper.yaml: systems.{name}: nothing trains it; name it in the CSV of a table, in a "
        "figure or in a claim"
        for paper, record in project.papers.items()
        for name in record.systems
        if (paper, name) not in references.named_systems
    ]


class References:
    """References of a project. Its generators yield a message for each fault, and None if there is none."""

    def __init__(self, project: Project):
        self.project = project
        self.papers = project.papers
        self.scales: dict[str, Scale] = {
            name: project.scale if name == project.config.scale else project.load_scale(name) for name in project.scales
        }
        self.datasets = {*project.datasets, *(name for scale in self.scales.values() for name in scale.datasets)}
        self.named_datasets: set[str] = set()
        """Datasets that papers name, collected during the checks."""
        self.named_systems: set[tuple[str, str]] = set()
        """Papers and names of systems that something to be made names, collected during the checks."""

    def faults(self) -> Faults:
        """Yield the faults of all files."""
        yield from self._dataset_faults()
        for metric in self.project.floors:
            yield unknown(metric, metric_names(), "workflow/floors.yaml")
        for paper, record in self.papers.items():
            yield from self._record_faults(paper, record, f"workflow/papers/{paper}/paper.yaml")
            yield from self._record_faults(paper, self.project.claims[paper], f"workflow/papers/{paper}/claims.yaml")
            yield from self._decoding_faults(paper)
            yield from self._printed_row_faults(paper)
            yield from self._claimed_score_faults(paper)
        for name, scale in self.scales.items():
            file = f"workflow/scales/{name}.yaml" + (f" or {scale.base}.yaml" if scale.base else "")
            yield from self._scale_faults(scale, f"{file}: ")

    def _record_faults(self, paper: str, record: BaseModel, file: str) -> Faults:
        """Yield the faults of all names in a paper or its claims."""
        for named in names_in(record):
            where = f"{file}: {named.key}"
            if named.kind is Names.DATASET:
                self.named_datasets.add(named.name)
                yield from self._dataset_name_faults(named.name, where, self._scales_of(record, named))
            elif named.kind is Names.DECODING:
                decodings = {
                    decoding for owner in self._owners(paper, named) for decoding in self.papers[owner].decodings
                }
                yield unknown(named.name, decodings, where)
            elif named.kind is Names.TRAINED:
                yield self._trained_fault(named.name, paper, where)
            elif named.kind is Names.SYSTEM or (named.kind is Names.SYSTEMS and named.name != "*"):
                yield self._system_fault(named.name, paper, where, is_made=named.kind is Names.SYSTEM)
            elif named.kind is not Names.SYSTEMS:
                yield unknown(named.name, self._allowed(named.kind, paper), where)
            here = named.kind is Names.METRIC and self.project.config.scale in self._scales_of(record, named)
            if here and isinstance(named.holder, ScoredSplits):
                yield from self._score_faults(named.holder, f"{file}: {'.'.join(map(str, named.place[:-1]))}")

    def _score_faults(self, scored: ScoredSplits, where: str) -> Faults:
        """Yield a fault for each split that the scored dataset lacks, and for a metric that does not fit it."""
        try:
            record = self.project.dataset_records.get(self.project.stand_in(scored.scored_on or scored.dataset))
        except UserError:
            return  # an unknown name is reported elsewhere
        if record is None or scored.metric not in metric_names():
            return  # reported elsewhere; a faulty file where it is used
        for split in scored.splits:
            yield unknown(split, record.split_names, f"{where}.split: of dataset {record.name}")
        if not metric_named(scored.metric).reads.exist_for(record):
            fitting = [name for name in metric_names() if metric_named(name).reads.exist_for(record)]
            yield unknown(scored.metric, fitting, f"{where}.metric: of dataset {record.name} ({record.form})")

    def _allowed(self, kind: Names, paper: str) -> Iterable[str]:
        """Return the names that exist of one kind."""
        if kind is Names.METRIC:
            return metric_names()
        if kind is Names.SCALE:
            return self.scales
        if kind is Names.SCORE:
            return self.project.claims[paper].scores
        tables = (self.project.printed[paper][table] for table in self.papers[paper].layer_costs)
        return {row["layer"] for rows in tables for row in rows if row.get("layer")} | {*TIMED_BESIDE}

    def _scales_of(self, record: BaseModel, named: Named) -> Iterable[str]:
        """Return the scales at which a table, figure or claim that contains a name is built.

        Systems and scores are built only through others and have none.
        """
        section, entry = named.place[:2]
        if section in ("systems", "scores"):
            return ()
        return scales if (scales := getattr(getattr(record, str(section))[entry], "scales", None)) else self.scales

    def _owners(self, paper: str, named: Named) -> Iterable[str]:
        """Return the papers that can own a decoding: those of the systems beside it, or all if rows name them."""
        if isinstance(named.holder, SystemEntry):
            return [paper]
        own = {self._owner(found.name, paper) for found in names_in(named.holder) if found.kind is Names.SYSTEM}
        by_row = isinstance(named.holder, MeasuredCell) and named.place[-1] == "decoding"
        return self.papers if by_row or not own else own & set(self.papers)

    @staticmethod
    def _owner(system: str, paper: str) -> str:
        """Return the paper that owns a system written in `paper`."""
        return system.rpartition("/")[0] or paper

    def _system_fault(self, name: str, paper: str, where: str, is_made: bool = True) -> str | None:
        """Return the fault of a system, `name` or `other/name`, written in `paper`.

        Args:
            name: The system.
            paper: Where it is written.
            where: Start of the message.
            is_made: False if what names the system trains nothing, such as a deviation.
        """
        owner = self._owner(name, paper)
        own_name = name.removeprefix(f"{owner}/")
        if is_made:
            self.named_systems.add((owner, own_name))
        return unknown(owner, self.papers, where) or unknown(own_name, self.papers[owner].systems, where)

    def _dataset_name_faults(self, name: str, where: str, scales: Iterable[str] = ()) -> Faults:
        """Yield the faults of a dataset as the papers name it.

        Args:
            name: Name of the dataset.
            where: Start of the messages.
            scales: Scales at which a dataset without a file needs a stand-in.
        """
        fault = unknown(name, self.datasets, where)
        yield fault
        for scale in () if fault or name in self.project.datasets else scales:
            if scale in self.scales and name not in self.scales[scale].datasets:
                with_it = sorted(scale for scale in self.scales if name in self.scales[scale].datasets)
                yield f"{where}: {name!r} has no stand-in at scale {scale}, only at {', '.join(with_it)}"

    def _trained_fault(self, name: str, paper: str, where: str) -> str | None:
        """Return the fault of a reference `system@dataset`, written in `paper`."""
        system, at, dataset = name.partition("@")
        self.named_datasets.add(dataset)
        if not at:
            return f"{where}: {name!r}: write system@dataset"
        return self._system_fault(system, paper, where) or next(self._dataset_name_faults(dataset, where))

    def _decoding_faults(self, paper: str) -> Faults:
        """Yield the faults of language models in decodings and in systems' changes to decodings."""
        file = f"workflow/papers/{paper}/paper.yaml"
        named: list[tuple[str, dict[str, Any]]] = [
            (f"decodings.{name}", decoding.model_dump()) for name, decoding in self.papers[paper].decodings.items()
        ]
        for system, entry in self.papers[paper].systems.items():
            named += [(f"systems.{system}.decodings.{name}", keys) for name, keys in entry.decodings.items()]
        for key, settings in named:
            if isinstance(reference := settings.get("language_model"), str):
                yield self._trained_fault(reference, paper, f"{file}: {key}.language_model")
            for reference in settings.get("tuned_with") or ():
                yield self._trained_fault(reference, paper, f"{file}: {key}.tuned_with")

    def _printed_row_faults(self, paper: str) -> Faults:
        """Yield the faults of systems and decodings in rows of printed tables."""
        record, printed = self.papers[paper], self.project.printed[paper]
        for section in (record.tables, record.examples, record.transcripts):
            for name, entry in section.items():
                for number, row in enumerate(printed[name], start=2):
                    if is_ours(row):
                        where = f"workflow/papers/{paper}/{entry.printed}: row {number}"
                        yield from self._row_faults(paper, entry, row, where)
        for name, table in record.tables.items():
            ours = list(filter(is_ours, printed[name]))
            for key, cell in table.cells.items():
                if isinstance(cell, RunCell) and ours and not any(map(cell.systems, ours)):
                    where = f"workflow/papers/{paper}/paper.yaml: tables.{name}.cells.{key}"
                    fault = f"no row to run names a system in the column {cell.system} of {table.printed}"
                    yield f"{where}: {fault}; name one, or remove the cell"

    def _row_faults(self, paper: str, entry: BaseModel, row: dict[str, str], where: str) -> Faults:
        """Yield the faults of one row of a printed table."""
        cells = getattr(entry, "cells", {"": entry})
        columns = sorted({getattr(cell, "system", "system") for cell in cells.values()})
        if not any(row.get(column) for column in columns):
            yield f"{where}: {' or '.join(columns)}: names no system to run; name one, or change the source"
        for cell in cells.values():
            column = getattr(cell, "system", "system")
            if row.get(column):
                fault = self._system_fault(row[column], paper, f"{where}: {column}")
                yield fault
                if isinstance(cell, MeasuredCell) and not cell.decodings_of(row):
                    yield f"{where}: {cell.decoding_column}: names no decoding of {row[column]}; name one"
                for decoding in () if fault else _row_decodings(cell, row):
                    owner = self._owner(row[column], paper)
                    yield unknown(decoding, self.papers[owner].decodings, f"{where}: decoding of {row[column]}")

    def _claimed_score_faults(self, paper: str) -> Faults:
        """Yield the faults of scores: their decoding and datasets, for each system that a claim compares."""
        claims = self.project.claims[paper]
        for name, claim in claims.claims.items():
            named = list(names_in(claim))
            where = f"workflow/papers/{paper}/claims.yaml: scores"
            scores = {
                reference.name: claims.scores[reference.name] for reference in named if reference.name in claims.scores
            }
            for key, score in scores.items() if any(reference.kind is Names.SCORE for reference in named) else ():
                if self.project.config.scale in (claim.scales or self.scales):
                    yield from self._score_faults(score, f"{where}.{key}, of claim {name}")
                for dataset in filter(None, (score.dataset, score.scored_on)):
                    yield from self._dataset_name_faults(
                        dataset, f"{where}.{key}, of claim {name}", claim.scales or self.scales
                    )
                for term in named:
                    owner = self._owner(term.name, paper)
                    if term.kind is Names.SYSTEM and owner in self.papers and not getattr(term.holder, "decodings", ()):
                        place = f"{where}.{key}.decoding, of {term.name} in claim {name}"
                        yield unknown(score.decoding, self.papers[owner].decodings, place)

    def _scale_faults(self, scale: Scale, where: str) -> Faults:
        """Yield the faults of a scale."""
        for job in set(get_args(Job)) - set(scale.resources):
            yield f"{where}resources.{job}: missing key"
        for name, stand_in in scale.datasets.items():
            yield unknown(name, self.named_datasets, f"{where}datasets")
            yield unknown(stand_in, self.project.datasets, f"{where}datasets.{name}")
        systems = {f"{paper}/{system}" for paper, record in self.papers.items() for system in record.systems}
        yield from rule_faults(scale, where)
        yield from (unknown(name, systems, f"{where}seeds") for name in scale.seeds)
        for name, rules in scale.systems.items():
            yield unknown(name, systems, f"{where}systems")
            yield from rule_faults(rules, f"{where}systems.{name}.")
            paper = self.papers.get(name.partition("/")[0])
            if paper and paper.as_published and any(getattr(rules, section) for section in RECORDS):
                yield f"{where}systems.{name}: is trained as published; remove its rules"

    def _dataset_faults(self) -> Faults:
        """Yield the faults of other datasets that a dataset names, and of packages in config.yaml."""
        records = self.project.dataset_records
        for name, record in records.items():
            if gap := getattr(record, "gap", None):
                where = f"workflow/datasets/{name}.yaml: gap.source"
                yield unknown(gap.source, self.project.datasets, where)
        licensed = {name: record for name, record in records.items() if isinstance(record, LicensedPackages)}
        needing = {name for name, record in licensed.items() if record.otherwise}
        for name in needing:
            where = f"workflow/datasets/{name}.yaml: otherwise"
            yield unknown(licensed[name].otherwise, set(self.project.datasets) - needing, where)
        packages = {package for record in licensed.values() for package in record.packages}
        for package in self.project.config.licensed:
            yield unknown(package, packages, "config.yaml: licensed")


def _row_decodings(cell: Any, row: dict[str, str]) -> list[str]:
    """Return the decodings of a row in a measured column, or in a table of texts."""
    if isinstance(cell, MeasuredCell):
        return cell.decodings_of(row)
    return [cell.decoding] if getattr(cell, "decoding", None) else []


def _circular_systems(project: Project) -> Faults:
    """Yield a fault for each system that is based on itself or loads its own weights."""
    for paper, record in project.papers.items():
        for system in record.systems:
            try:
                if _loads_itself(project, (paper, system, ""), ()):
                    yield f"workflow/papers/{paper}/paper.yaml: systems.{system}: it loads its own weights, in a circle"
            except UserError as error:  # its bases form a cycle
                yield str(error)


def _loads_itself(project: Project, run: tuple[str, str, str], dependents: tuple[tuple[str, str, str], ...]) -> bool:
    """Return whether a run needs itself to be trained first."""
    if run in dependents:
        return True
    sources: dict[str, tuple[str, str, str]] = {}
    for name, entry in project.lineage(*run[:2]).items():
        for key in ("language_model", "initial"):
            if reference := getattr(entry, key):
                system, _, dataset = reference.partition("@")
                sources[key] = (*project.locate(system, name.partition("/")[0]), dataset)
    return any(_loads_itself(project, source, (*dependents, run)) for source in sources.values())


def _misused_decodings(project: Project) -> Faults:
    """Yield a fault for each decoding that a system makes invalid, and for each wrongly named language model."""
    for paper, record in project.papers.items():
        for system in record.systems:
            for name in record.decodings:
                where = f"workflow/papers/{paper}/paper.yaml: systems.{system}, decodings.{name}"
                try:
                    decoding = project.decoding(paper, system, name)
                except UserError as error:
                    yield str(error)
                    continue
                for other in decoding.tuned_with:
                    yield from (
                        f"{where}.tuned_with: {fault}"
                        for fault in _tuning_faults(project, paper, name, other, decoding)
                    )
                if reference := decoding.language_model:
                    owner, model = project.locate(reference.partition("@")[0], paper)
                    architecture = project.settings(owner, model, "model").get("architecture")
                    if architecture != "language_model":
                        what = f"{reference!r} is not a language model (architecture {architecture})"
                        yield f"{where}.language_model: {what}"


def _tuning_faults(project: Project, paper: str, name: str, other: str, decoding: DecodingConfig) -> Iterator[str]:
    """Yield the faults of a further run that chooses the weights of a decoding.

    Args:
        project: The project.
        paper: Paper that names the run.
        name: Name of the decoding.
        other: The run, as `system@dataset`.
        decoding: Settings of the decoding with the system that names the run.
    """
    owner, system = project.locate(other.partition("@")[0], paper)
    try:
        further = project.decoding(owner, system, name)
    except UserError as error:
        yield f"{other!r}: {error}"
        return
    if further.tuned_with:
        yield f"{other!r} is itself tuned with others; set decodings.{name}.tuned_with: [] in it"
    if (further.lm_weights, further.word_bonuses) != (decoding.lm_weights, decoding.word_bonuses):
        yield f"{other!r} tries other weights; give both systems the same lm_weights and word_bonuses"
