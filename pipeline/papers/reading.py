"""Readings: interpretations of an ambiguous passage, each expressed as settings of systems."""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from pipeline.analysis.reference_types import NewName, SystemName
from pipeline.core.errors import UserError
from pipeline.core.schema import Closed, require_known

if TYPE_CHECKING:
    from pipeline.papers.project import Project


class Interpretation(Closed):
    """One interpretation of the passage."""

    means: str = Field(description="What the interpretation means in practice")
    support: str = Field(description="Evidence for and against it in the text")
    settings: dict[str, Any] = Field(
        min_length=1, description="Settings of its systems by `section.key`; of a list, any value"
    )

    def fits(self, settings: dict[str, Any]) -> bool:
        """Return whether settings, by `section.key`, follow this interpretation."""
        return all(
            settings[key] in (accepted if isinstance(accepted, list) else [accepted])
            for key, accepted in self.settings.items()
        )


class Reading(Closed):
    """An ambiguous passage with its interpretations. Every interpretation is run by some system, side by side."""

    where: str = Field(description="Section or equation")
    passage: str = Field(description="Words of the passage, quoted briefly")
    choices: dict[NewName, Interpretation] = Field(min_length=2, description="Interpretations by name")
    of: SystemName | None = Field(
        default=None, description="System whose variants the passage concerns; null = all systems"
    )
    default: NewName = Field(description="Interpretation that all other systems follow")
    why: str = Field(description="Reason for the default, from the text")
    chosen: Literal["before results", "after results"] = Field(description="When the default was chosen")

    def choice_of(self, settings: dict[str, Any], where: str) -> str | None:
        """Return the name of the interpretation that a system follows.

        Args:
            settings: Settings of the system by `section.key`.
            where: Start of the error message.

        Returns:
            None if the system lacks one of the settings.

        Raises:
            UserError: The settings follow no interpretation.
        """
        keys = sorted({key for choice in self.choices.values() for key in choice.settings})
        if not settings.keys() >= set(keys):
            return None
        if fitting := [name for name, choice in self.choices.items() if choice.fits(settings)]:
            return fitting[0]
        raise UserError(f"{where}{', '.join(f'{key} {settings[key]}' for key in keys)} fits no choice; add one")


def system_readings(project: "Project", paper: str, system: str) -> dict[str, str]:
    """Return the interpretations that a system follows, by reading.

    Raises:
        UserError: The system follows no interpretation of a reading that concerns it.
    """
    owner, name = project.locate(system, paper)
    lineage, found = project.lineage(owner, name), {}
    sections = [section for section in ("model", "fusion", "training") if project.settings(owner, name, section)]
    full = {section: project.full_section(owner, name, section).model_dump() for section in sections}
    settings = {f"{section}.{key}": value for section in full for key, value in full[section].items()}
    for key, reading in project.papers[paper].readings.items():
        if not reading.of or "/".join(project.locate(reading.of, paper)) in lineage:
            where = f"workflow/papers/{paper}/paper.yaml: readings.{key}: system {system}: "
            found[key] = reading.choice_of(settings, where)
    return {key: choice for key, choice in found.items() if choice}


def check_readings(project: "Project", paper: str) -> None:
    """Check that the default of each reading exists and that some system follows each interpretation.

    Raises:
        UserError: One of these does not hold.
    """
    record = project.papers[paper]
    tried = {choice for system in record.systems for choice in system_readings(project, paper, system).items()}
    for name, reading in record.readings.items():
        where = f"workflow/papers/{paper}/paper.yaml: readings.{name}"
        require_known(reading.default, reading.choices, f"{where}.default")
        if missing := [choice for choice in reading.choices if (name, choice) not in tried]:
            raise UserError(f"{where}.choices.{missing[0]}: no system has its settings")
