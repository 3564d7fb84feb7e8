"""Files in results/ that can be requested, and error messages for those that cannot."""

import json
import re
import shlex
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath
from typing import TypeVar

from pipeline.core.artifacts import Artifact, Report, Table
from pipeline.core.errors import UserError, one_line, without_secrets
from pipeline.core.layout import RESULTS
from pipeline.core.schema import unknown
from pipeline.core.yaml_file import load_yaml, yaml_text
from pipeline.papers.config_file import Config, expanded, require_work
from pipeline.papers.project import Project
from pipeline.workflow.graph import Graph

AnyArtifact = TypeVar("AnyArtifact", bound=Artifact)

PLANS = {"plan", "cost"}
"""Files about all papers of a scale; rules of these names always rewrite them."""
TEXTS, PICTURES = ("csv", "md"), ("svg", "png")


RULE = re.compile(r"^(?:rule|use rule \w+ as) (\w+)\b", re.MULTILINE)


def names_of_rules(root: Path) -> set[str]:
    """Return the names of all rules, which papers must not have."""
    files = [root / "Snakefile", root / "workflow/Snakefile", *(root / "workflow/rules").glob("*.smk")]
    texts = [file.read_text(encoding="utf-8") for file in files if file.exists()]
    return {"all", *(name for text in texts for name in RULE.findall(text))}  # a loop in the Snakefile makes `all`


def refuse_names_of_rules(project: Project) -> None:
    """Refuse a paper with the name of a rule.

    Raises:
        UserError: A paper has such a name.
    """
    if taken := sorted(names_of_rules(project.root) & set(project.papers)):
        raise UserError(f"workflow/papers/{taken[0]}: is the name of a Snakemake rule; rename the folder")


def refuse_odd_folders(project: Project) -> None:
    """Refuse folders that Snakemake cannot handle.

    Raises:
        UserError: The work folder cannot be used, or a path is not UTF-8.
    """
    require_work(project.config, project.root)
    for folder in (project.root.resolve(), project.layout.work.resolve()):
        if re.search("[\ud800-\udfff]", str(folder)):
            raise UserError(f"{one_line(str(folder))}: its name has bytes that are not UTF-8; choose another place")


def unknown_target(project: Project, target: str, rules: Collection[str]) -> str | None:
    """Return why no rule makes `target`, with the existing names; None if a rule may, or if it is no result.

    Args:
        project: The project.
        target: A file or name.
        rules: Names of the rules, for targets that are no path.
    """
    match PurePosixPath(target).parts:
        case [name]:
            return unknown_word(project, name, rules)
        case ["results", paper, file] if paper in project.papers:
            return f"{target}: write the scale too: results/{project.config.scale}/{paper}/{file}"
        case ["results", "site", *page] if page != ["index.html"]:
            return f"{target}: is made with the whole site, by `{snakemake_command(project, 'site')}`"
        case ["results", "site", _]:
            return None
        case ["results", file]:
            return unknown_report(project, project.config.paper, file, target, pictures=False)
        case ["results", scale, paper] if paper in project.papers:
            folder = f"{target}: is a folder; request a file in it, or the paper: `{snakemake_command(project, paper)}`"
            return wrong_scale(project, scale, target) or folder
        case ["results", scale, file]:
            written = f"{target}: rewritten each time by `{snakemake_command(project, PurePosixPath(file).stem)}`"
            return wrong_scale(project, scale, target) or unknown_name(file, PLANS, TEXTS, target) or written
        case ["results", scale, paper, file]:
            return (
                wrong_scale(project, scale, target)
                or unknown(paper, project.papers, target)
                or unknown_report(project, paper, file, target)
            )
    return None


def unknown_word(project: Project, target: str, rules: Collection[str]) -> str | None:
    """Return why a target without a folder is not made, with the nearest one that is.

    Args:
        project: The project.
        target: A name, or a file without its folder.
        rules: Names of the rules.

    Returns:
        None if a rule may make it, or for a file that resembles no result.
    """
    name, record = PurePosixPath(target).stem.lower(), project.papers[project.config.paper]
    if name in {*record.tables, *record.examples, *record.transcripts, *record.layer_costs}:
        return f"target {target}: write results/{name}.csv"
    if name in record.figures:
        return f"target {target}: write results/{project.config.scale}/{project.config.paper}/{name}.svg"
    if "." in target:
        return None
    key, equals, _ = target.partition("=")
    if equals and key in Config.model_fields:
        return f"target {target}: is a setting; write `--config {shlex.quote(target)} --` before the targets"
    fault = unknown(target, rules, f"target {target}")
    if fault and "did you mean" not in fault:
        fault = f"{fault}; or a file, such as results/table2.csv"
    return fault or not_here(project, target)


def scale_hint(scale: str) -> str:
    """Return how to select another scale."""
    return f"; add --config scale={scale} (snakemake) or --set scale={scale} (reprise)"


def changed_settings(project: Project, **other: str) -> list[str]:
    """Return `KEY=VALUE`, quoted for a shell, of each setting that differs from config.yaml.

    Commands are shown on pages and in reports, so a password in the address of a mirror is masked.
    """
    there = expanded(load_yaml(project.root / "config.yaml") or {})  # as the configuration has it
    config = project.config.model_dump() | other
    texts = {key: yaml_text(value) if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    texts["mirror"] = without_secrets(texts["mirror"])
    return [shlex.quote(f"{key}={texts[key]}") for key, value in config.items() if there.get(key, value) != value]


def config_options(project: Project, **other: str) -> str:
    """Return the Snakemake options that select this configuration, with some settings replaced."""
    return f" --config {' '.join(words)}" if (words := changed_settings(project, **other)) else ""


def set_options(project: Project, **other: str) -> str:
    """Return the `--set` options that select this configuration."""
    return "".join(f" --set {word}" for word in changed_settings(project, **other))


def reprise_command(project: Project, stage: str, **other: str) -> str:
    """Return the `reprise` command that runs a `stage` with this configuration and `other` settings."""
    return f"reprise {stage}{set_options(project, **other)}"


def snakemake_command(project: Project, target: object, **other: str) -> str:
    """Return the command that makes a `target` with this configuration and `other` settings."""
    return f"snakemake{config_options(project, **other)} -- {shlex.quote(str(target))}"


def not_here(project: Project, paper: str) -> str | None:
    """Return why a paper without tables at this scale is no target, with its scales; None for other targets."""
    if paper not in project.papers or project.tables_here(paper):
        return None
    return f"{paper} {only_at(scales)}" if (scales := scales_of(project, paper)) else None


def scales_of(project: Project, paper: str) -> list[str]:
    """Return the scales that tables of a paper are restricted to."""
    return sorted({scale for table in project.papers[paper].tables.values() for scale in table.scales or ()})


def scale_with_tables(project: Project, paper: str) -> str:
    """Return the current scale, or the first one with tables of a paper if only others have some."""
    others = [] if project.tables_here(paper) else scales_of(project, paper)
    return others[0] if others else project.config.scale


def unknown_report(project: Project, paper: str, file: str, target: str, pictures: bool = True) -> str | None:
    """Return why a paper has no report in `file` for a `target`, or None; `pictures` allows those."""
    record, name = project.papers[paper], PurePosixPath(file).stem
    pictured = {*record.figures, *record.layer_costs} if pictures else set()
    names = {*record.tables, *record.examples, *record.transcripts, *record.layer_costs, *pictured, "claims"}
    endings = (*TEXTS, *PICTURES) if name in pictured else TEXTS
    if fault := unknown_name(file, names, endings, target):
        return fault
    scales = other_scales(project, paper, name)
    return f"{target}: {name} {only_at(scales)}" if scales else None


def other_scales(project: Project, paper: str, table: str) -> list[str]:
    """Return the scales at which a table is made, if the current one is not among them."""
    scales = getattr(project.papers[paper].tables.get(table), "scales", None) or [project.config.scale]
    return [] if project.config.scale in scales else scales


def only_at(scales: list[str]) -> str:
    """Return that something is made at some scales only."""
    return f"is made at scale {' and '.join(scales)} only{scale_hint(scales[0])}"


def unknown_name(file: str, names: Iterable[str], endings: Iterable[str], target: str) -> str | None:
    """Return what is wrong with a `file` for a `target`, by allowed `names` and `endings` without dots, or None."""
    path = PurePosixPath(file)
    return unknown(path.stem, names, target) or unknown(path.suffix.removeprefix("."), endings, f"{target}: ending")


def wrong_scale(project: Project, scale: str, target: str) -> str | None:
    """Return what is wrong with the `scale` of a `target`, or None."""
    if fault := unknown(scale, project.scales, target):
        return fault
    if scale != project.config.scale:
        return f"{target}: the configured scale is {project.config.scale}{scale_hint(scale)}"
    return None


def reports_asked_for(graph: Graph, target: str) -> list[Report]:
    """Return the reports that a target names, including tables that are made on request.

    Raises:
        UserError: The target is no report.
    """
    project = graph.project
    tables = [Table(paper, name) for paper in project.papers for name in project.tables_here(paper)]
    every: dict[Report, None] = dict.fromkeys([*graph.reports(project.papers), *tables])
    otherwise = (
        f"neither a paper, nor `all`, nor a result; if a rule makes it, `{snakemake_command(project, target)}` does"
    )
    return reports_of_paper(graph, target) or artifacts_in_file(project, target, every, otherwise)


def reports_of_paper(graph: Graph, name: str) -> list[Report] | None:
    """Return the reports of a paper, or of `all` papers.

    Returns:
        None if `name` is neither a paper nor `all`, or if the paper has no report at this scale.

    Raises:
        UserError: All of its reports need a dataset whose file is faulty.
    """
    papers = graph.project.reproduced if name == "all" else [name] if name in graph.project.papers else []
    found = graph.readable(papers)
    if graph.reports(papers) and not found:
        fault, *_ = graph.project.dataset_records.faults.values()
        raise fault
    return found or None


def artifacts_in_file(
    project: Project, name: str, artifacts: Iterable[AnyArtifact], otherwise: str
) -> list[AnyArtifact]:
    """Return those of some artifacts that lie in a file, whatever its ending.

    Args:
        project: The project.
        name: The file.
        artifacts: Artifacts to choose from.
        otherwise: The message for a file that resembles none of them.

    Returns:
        The artifacts; at least one.

    Raises:
        UserError: None of them is there. The message suggests what may have been meant.
    """
    path = Path(name).with_suffix("")
    if path.parent == RESULTS:  # a view of the configured paper's report
        path = project.layout.results / project.config.paper / path.name
    layout, named_path = project.layout, Path(name)
    if found := [
        artifact
        for artifact in artifacts
        if layout.path(artifact).with_suffix("") == path or layout.target(artifact) == named_path
    ]:
        return found
    fault = unknown_target(project, name, ["all", *project.papers])
    raise UserError(fault or f"{name}: {otherwise}")
