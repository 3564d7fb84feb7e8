"""Check the files of each artifact, and find which target files are stale.

Snakemake rebuilds an artifact if its target file (`Layout.target`) is missing and something needs it. So the target
file is stale if any other file of the artifact is damaged or missing. Files that `free` removed are missing only if
needed.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from os.path import exists, getsize
from pathlib import Path

from pipeline.core import artifacts
from pipeline.core.digests import all_noted_files, noted_files
from pipeline.core.errors import UserError
from pipeline.core.files import NOTES, note_path
from pipeline.core.layout import DONE_FILE, IN_CORPUS, RESULTS, RUN_FILE, STATE_FILE, TELEMETRY_FILES
from pipeline.core.records.corpus import Vocabularies, read_corpus
from pipeline.core.records.outputs import Manifest, ScoreFile
from pipeline.core.records.training import TrainedRun
from pipeline.data.dataset import sources_of
from pipeline.data.encoded_files import encoded_stores, stores_digest
from pipeline.data.fetch import download, raw_text, transfer
from pipeline.outputs.manifest import part_of
from pipeline.workflow.file_checks import MARKS, FileCheck, cached_digest, check_file, damaged_notes
from pipeline.workflow.graph import Graph, flatten
from pipeline.workflow.live_work import LiveWork
from reprise.training_files import is_read_by_training_alone, weights_due

READ_BESIDE: dict[type[artifacts.Artifact], type[artifacts.Artifact]] = {
    artifacts.Vocabulary: artifacts.Encoded,
    artifacts.Encoded: artifacts.Trained,
}
"""Undeclared inputs: if the first artifact is bad, the second one is stale, too."""


@dataclass
class Finding:
    """The checks of one artifact.

    Attributes:
        checks: One check per file.
        stale: Intact files to set aside, so that Snakemake rebuilds the artifact.
        lacks_input: An undeclared input is bad or missing.
    """

    artifact: artifacts.Artifact
    checks: list[FileCheck] = field(default_factory=list)
    stale: set[Path] = field(default_factory=set)
    lacks_input: bool = False

    @property
    def is_bad(self) -> bool:
        """Return whether it must be rebuilt; damaged telemetry is no reason to train again."""
        return bool(self.stale) or any(
            check.state in ("damaged", "missing") and is_needed(check.path) for check in self.checks
        )


def is_needed(path: Path) -> bool:
    """Return whether a file is more than a checkpoint, a note, telemetry, events or a copy in results/."""
    beside = (*TELEMETRY_FILES, STATE_FILE)
    return path.parent.name not in ("checkpoints", NOTES) and path.name not in beside and path.parent != RESULTS


class Inspection:
    """Checks of wanted artifacts, which must exist, of other artifacts, if they exist, and of all their inputs.

    Attributes:
        wanted: Artifacts that must exist; the inputs of artifacts that must be rebuilt are added.
        checkpoints: Number of checkpoints that each run must have.
        work: Runs at work, whose trainings are not checked.
        found: The checks of each artifact.
    """

    def __init__(self, graph: Graph, wanted: Iterable[artifacts.Artifact], others: Iterable[artifacts.Artifact] = ()):
        self.graph, self.project, self.layout = graph, graph.project, graph.project.layout
        self.wanted, self.work = set(wanted), LiveWork(self.layout.work)
        self.checkpoints: dict[artifacts.RunId, int] = defaultdict(int)
        cached_digest.cache_clear()
        every = graph.closure([*self.wanted, *others])
        self.found = {artifact: Finding(artifact, self.checks(artifact)) for artifact in every}
        for finding in self.found.values():
            finding.checks += damaged_notes(finding.checks)
        for artifact in every:
            finding, mark = self.found[artifact], self.layout.path(artifact)
            finding.lacks_input = not self.is_absent(mark) and self.lacks_input(artifact)
            if exists(mark) and (finding.lacks_input or finding.is_bad):
                finding.stale.add(self.layout.target(artifact))
        for artifact in reversed(every):
            self.request_inputs(artifact)

    def lacks_input(self, artifact: artifacts.Artifact) -> bool:
        """Return whether an undeclared input of an artifact that was made is bad or missing."""
        beside = [need for need in self.needs(artifact) if READ_BESIDE.get(type(need)) is type(artifact)]
        for other in beside:
            if not self.found[other].checks and not exists(self.layout.path(other)):
                self.found[other].checks.append(check_file(self.layout.path(other)))
        return any(self.found[other].is_bad for other in beside)

    def needs(self, artifact: artifacts.Artifact) -> list[artifacts.Artifact]:
        """Return the declared inputs of an artifact."""
        return flatten(self.graph.inputs(artifact))

    def request_inputs(self, artifact: artifacts.Artifact) -> None:
        """Mark the inputs of an artifact as wanted if it must be rebuilt."""
        finding, mark = self.found[artifact], self.layout.path(artifact)
        if artifact in self.wanted:
            finding.checks += self.missing(artifact)
        if not (finding.is_bad or any(check.state == "missing" and check.path == mark for check in finding.checks)):
            return
        self.wanted.update(self.needs(artifact))
        if artifacts.manifest_of(artifact) is not artifact:
            finding.stale.add(self.layout.target(artifact))
        match artifact:
            case artifacts.Averaged(run, decoding):
                read = self.project.decoding(run.paper, run.system, decoding)
                kept = self.project.run_spec(run).training.keep_checkpoints
                self.checkpoints[run] = max(
                    kept if read.averaged == "best" else read.average_last, self.checkpoints[run]
                )
            case artifacts.Alignments(run, _):
                self.checkpoints[run] = self.project.run_spec(run).training.keep_checkpoints

    def missing(self, artifact: artifacts.Artifact) -> list[FileCheck]:
        """Check for missing files of an artifact that is needed; `free` may have removed them."""
        finding, mark = self.found[artifact], self.layout.path(artifact)
        lost = self.lost_checkpoints(artifact.run, finding) if isinstance(artifact, artifacts.Trained) else []
        if not exists(mark):
            return lost + ([] if mark in {check.path for check in finding.checks} else [check_file(mark)])
        if isinstance(artifact, artifacts.Prepared):
            checks = map(check_file, self.files(artifact))
            lost = [check for check in checks if check.state == "missing"]
            finding.stale |= {mark} if lost else set()
        return lost

    def lost_checkpoints(self, run: artifacts.RunId, finding: Finding) -> list[FileCheck]:
        """Return a check of lost checkpoints that the training would not write again; files to set aside are added."""
        folder, weights = self.layout.run(run), self.layout.weights(run)
        if self.work.reason(folder) or any(check.state == "unreadable" for check in finding.checks):
            return []
        good = {check.path for check in finding.checks if check.state == "good"}
        is_over = any(map(exists, (folder / DONE_FILE, weights)))
        training = self.project.run_spec(run).training
        needed = weights_due(training, folder, self.checkpoints[run], good, is_over)
        kept = [step for step in needed if folder / "checkpoints" / f"step-{step}.safetensors" in good]
        if kept == needed:
            return []
        finding.stale |= {folder / DONE_FILE, weights}
        # Otherwise the training would resume after the gap.
        finding.stale |= set((folder / "checkpoints").glob("step-*.resume.safetensors"))
        return [FileCheck(folder / "checkpoints", "missing", 0, f"{len(kept)} of the last {len(needed)} checkpoints")]

    def checks(self, artifact: artifacts.Artifact) -> list[FileCheck]:
        """Check all files of an artifact that is here, and the manifests that list it."""
        is_listed = artifacts.manifest_of(artifact) is not artifact
        return (self.check_manifests(self.layout.target(artifact)) if is_listed else []) + self.own_checks(artifact)

    def check_manifests(self, path: Path) -> list[FileCheck]:
        """Check a manifest and its incomplete version, whichever is here."""
        found = [] if self.is_absent(path) else [path]
        return [check_file(version, Manifest) for version in found + list(filter(exists, [part_of(path)]))]

    def own_checks(self, artifact: artifacts.Artifact) -> list[FileCheck]:
        """Check all files of an artifact that is here."""
        mark = self.layout.path(artifact)
        if isinstance(artifact, artifacts.Trained):
            return self.check_training(artifact.run)
        downloads = self.check_downloads(artifact.dataset) if isinstance(artifact, artifacts.Raw) else []
        if self.is_absent(mark):
            return downloads
        try:
            match artifact:
                case artifacts.Vocabulary():
                    return self.check_vocabulary(artifact)
                case artifacts.Encoded():
                    return self.check_corpus(artifact)
                case artifacts.Score():
                    return self.check_score(artifact)
        except (UserError, OSError):
            pass  # an unreadable record; the checks below report which one
        found = [check_file(path, MARKS.get(type(artifact)) if path == mark else None) for path in self.files(artifact)]
        if isinstance(artifact, artifacts.Prepared | artifacts.Encoded) and exists(
            self.layout.path(artifacts.Encoded(artifact.dataset))
        ):
            found = self.without_freed(found, artifact.dataset)
        return self.check_views(mark) + downloads + found

    def without_freed(self, found: list[FileCheck], dataset: str) -> list[FileCheck]:
        """Return `found` without missing files that `free` removes once the corpus of a dataset is encoded."""
        form = self.project.dataset_records[dataset].form
        return [check for check in found if check.state != "missing" or not is_read_by_training_alone(check.path, form)]

    def check_views(self, mark: Path) -> list[FileCheck]:
        """Return the faults of the copies at the top of results/ of a report of the configured paper."""
        if mark.parent != self.layout.results / self.project.config.paper:
            return []
        copies = [(RESULTS / path.name, path) for path in (mark, mark.with_suffix(".md"))]
        return [
            FileCheck(view, "damaged", getsize(view), f"is not a copy of {path}")
            for view, path in copies
            if exists(view) and exists(path) and view.read_bytes() != path.read_bytes()
        ]

    @staticmethod
    def is_absent(mark: Path) -> bool:
        """Return whether an artifact was not made yet, set aside or freed; a deleted file still has its note.

        `free` removes audio and raw text with their target files, but not the notes of these.
        """
        freed = mark.name in (IN_CORPUS[artifacts.Raw], IN_CORPUS[artifacts.Spoken])
        return not exists(mark) and (freed or not exists(note_path(mark)))

    def files(self, artifact: artifacts.Artifact) -> list[Path]:
        """Return the target file of an artifact, and the files that were made with it."""
        mark = self.layout.path(artifact)
        if isinstance(artifact, artifacts.DatasetArtifact):
            return sorted({mark, *self.corpus_files(artifact)})
        beside = {path for path in noted_files(mark.parent) if path.name.startswith(f"{mark.stem}.")}
        if isinstance(artifact, artifacts.Score):
            trees = (self.layout.trees(artifact, words) for words in ("", ".aligned"))
            beside |= {path for path in trees if exists(note_path(path))}
        return sorted({mark, *beside})

    def corpus_files(self, artifact: artifacts.DatasetArtifact) -> list[Path]:
        """Return the files of an artifact in the folder of its corpus, without its target file.

        Files of no other artifact belong to the encoded corpus, as encoding speech also prepares it.
        """
        folder = self.layout.corpus(artifact.dataset)
        if isinstance(artifact, artifacts.Encoded):
            before = [
                ancestor
                for ancestor in self.graph.closure([artifact])
                if isinstance(ancestor, artifacts.DatasetArtifact) and ancestor != artifact
            ]
            return sorted(set(all_noted_files(folder)) - {path for ancestor in before for path in self.files(ancestor)})
        spoken = [folder / "audio", folder / "manifests"]
        match artifact:
            case artifacts.Raw():
                folders = [
                    folder / "raw",
                    *([] if exists(self.layout.path(artifacts.Spoken(artifact.dataset))) else spoken),
                ]
                found = sorted(
                    {path for folder in folders for path in noted_files(folder)}
                    | raw_text.files_listed(self.layout.path(artifact))
                )
                empty = not found and not any(map(exists, folders)) and not noted_files(folder)
                others = [path for path in noted_files(folder) if not path.name.startswith(("subwords", "spoken"))]
                return [folder / "raw"] if empty else found + others
            case artifacts.Spoken():
                return [path for folder in spoken for path in noted_files(folder)]
            case artifacts.Vocabulary():
                return [path for path in noted_files(folder) if path.name.startswith("subwords")]
        return noted_files(folder / "prepared")

    def check_downloads(self, dataset: str) -> list[FileCheck]:
        """Hash the fetched files of a dataset."""
        found = []
        for name, source in sources_of(self.project.dataset_records[dataset]).items():
            if exists(path := self.layout.downloads / name):
                check = check_file(path)
                if check.state == "good" and (
                    fault := download.wrong_size(path, source) or transfer.mismatch(path, source.known_hash)
                ):
                    check = replace(check, state="damaged", fault=fault)
                found.append(check)
        return found

    def check_vocabulary(self, artifact: artifacts.Vocabulary) -> list[FileCheck]:
        """Check the subword models against their record."""
        mark, files = self.layout.path(artifact), self.files(artifact)
        record = mark.with_suffix(".json")
        if not exists(record):
            return [check_file(path) for path in {*files, record}]
        recorded = Vocabularies.read(record)
        tgt = {mark.with_suffix(".tgt.model"): recorded.tgt.digest} if recorded.tgt else {}
        digests = {mark: recorded.digest} | tgt
        return [check_file(path, None, digests.get(path)) for path in sorted({*files, *digests, record})]

    def check_corpus(self, artifact: artifacts.Encoded) -> list[FileCheck]:
        """Check an encoded corpus, whose record has one digest of all files."""
        mark = self.layout.path(artifact)
        record = read_corpus(mark.parent)
        stores = encoded_stores(mark.parent, record.kind, record.splits)
        files = {path for store in stores for path in store}
        beside = [check_file(path) for path in sorted({*self.files(artifact)} - files)]
        found = [*map(check_file, sorted(files)), *self.without_freed(beside, artifact.dataset)]
        if any(check.state != "good" for check in found) or stores_digest(stores) == record.digest:
            return found
        fault = f"this or another file of {mark.parent} differs from the encoded one"
        return [replace(check, state="damaged", fault=fault) if check.path in files else check for check in found]

    def check_score(self, artifact: artifacts.Score) -> list[FileCheck]:
        """Check that the scored inputs still match their recorded digests."""
        mark = self.layout.path(artifact)
        found = [check_file(path, ScoreFile if path == mark else None) for path in self.files(artifact)]
        for path, digest in ScoreFile.read(mark).inputs.items():
            if check_file(Path(path)).state == "good" and check_file(Path(path), None, digest).state == "damaged":
                found.append(FileCheck(mark, "damaged", getsize(mark), f"was computed from another {path}"))
        return found

    def check_training(self, run: artifacts.RunId) -> list[FileCheck]:
        """Check specification, record, final weights, checkpoints and events of a run that is not running."""
        folder, mark, weights = self.layout.run(run), self.layout.path(artifacts.Trained(run)), self.layout.weights(run)
        if self.work.reason(folder):
            return []
        kept = [check_file(path) for path in sorted((folder / "checkpoints").glob("step-*.safetensors"))]
        beside = [check_file(path) for name in TELEMETRY_FILES if exists(path := folder / name)]
        beside += map(check_file, sorted([*folder.glob(STATE_FILE), *folder.glob(f"jobs/*/{STATE_FILE}")]))
        if self.is_absent(mark):
            return kept + beside
        done = check_file(mark)
        digest = TrainedRun.read(mark).weights_digest if done.state == "good" else None
        return [done, check_file(folder / RUN_FILE), check_file(weights, None, digest), *kept, *beside]
