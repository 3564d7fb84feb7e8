"""Which files each product consists of, whether they are good, and what has to be made again where they are not.

A product is made again when the file that stands for it (`Layout.path`) is not there and something needs it: so that
file is stale when any other of the product is damaged or missing. What `free` removes is missed only by what needs it.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from os.path import exists, getsize
from pathlib import Path

from pipeline.core.artifacts import (
    Alignments,
    Averaged,
    DatasetArtifact,
    Encoded,
    Prepared,
    Product,
    Raw,
    RunId,
    Score,
    Spoken,
    Trained,
    Vocabulary,
    manifest_of,
)
from pipeline.core.digests import all_noted_files, noted_files
from pipeline.core.errors import UserError
from pipeline.core.files import NOTES, note_path
from pipeline.core.layout import DONE_FILE, IN_CORPUS, RESULTS, RUN_FILE, TELEMETRY_FILES
from pipeline.core.records.corpus import read_corpus
from pipeline.core.records.outputs import Manifest, ScoreFile
from pipeline.core.records.preparation import Vocabularies
from pipeline.core.records.training import TrainedRun
from pipeline.data.dataset import sources_of
from pipeline.data.fetch.download import wrong_size
from pipeline.data.fetch.raw_text import files_listed
from pipeline.data.fetch.transfer import mismatch
from pipeline.data.store.encoded_files import encoded_stores, stores_digest
from pipeline.workflow.file_checks import MARKS, FileCheck, cached_digest, check_file, damaged_notes
from pipeline.workflow.graph import Graph, flatten
from pipeline.workflow.runs import is_locked
from reprise.store.checkpoints_due import weights_due
from reprise.store.training_text import is_read_by_training_alone

READ_BESIDE: dict[type[Product], type[Product]] = {Vocabulary: Encoded, Encoded: Trained}
"""What is read wherever another product is, without being declared: that other one is stale, too."""


@dataclass
class Finding:
    """Of one product. stale: whole files that stand for what is damaged or missing."""

    product: Product
    checks: list[FileCheck] = field(default_factory=list)
    stale: set[Path] = field(default_factory=set)

    @property
    def is_bad(self) -> bool:
        """Whether it has to be made again; what a training told of itself alone is no reason to train again."""
        return bool(self.stale) or any(
            one.state in ("damaged", "missing") and is_needed(one.path) for one in self.checks
        )


def is_needed(path: Path) -> bool:
    return (
        path.parent.name not in ("checkpoints", NOTES) and path.name not in TELEMETRY_FILES and path.parent != RESULTS
    )


class Inspection:
    """Of what is wanted, and so has to be there, of other products, if they are, and of all that they are made from."""

    def __init__(self, graph: Graph, wanted: Iterable[Product], others: Iterable[Product] = ()):
        self.graph, self.project, self.layout = graph, graph.project, graph.project.layout
        self.wanted = set(wanted)
        self.checkpoints: dict[RunId, int] = defaultdict(int)
        """How many each run has to have."""
        cached_digest.cache_clear()
        products = graph.closure([*self.wanted, *others])
        self.found = {product: Finding(product, self.checks(product)) for product in products}
        for finding in self.found.values():
            finding.checks += damaged_notes(finding.checks)
        for product in products:
            if exists(self.layout.path(product)) and (self.lacks(product) or self.found[product].is_bad):
                self.found[product].stale.add(self.layout.target(product))
        for product in reversed(products):
            self.ask_of(product)

    def lacks(self, product: Product) -> bool:
        """Whether what is read beside a product that is there is bad, or was taken away."""
        beside = [one for one in self.needs(product) if READ_BESIDE.get(type(one)) is type(product)]
        for one in beside:
            if not self.found[one].checks and not exists(self.layout.path(one)):
                self.found[one].checks.append(check_file(self.layout.path(one)))
        return any(self.found[one].is_bad for one in beside)

    def needs(self, product: Product) -> list[Product]:
        return flatten(self.graph.inputs(product))

    def ask_of(self, product: Product) -> None:
        """What it has to be made from again, if it has to be."""
        finding, mark = self.found[product], self.layout.path(product)
        if product in self.wanted:
            finding.checks += self.missing(product)
        if not (finding.is_bad or any(one.state == "missing" and one.path == mark for one in finding.checks)):
            return
        self.wanted.update(self.needs(product))
        if manifest_of(product) is not product:
            finding.stale.add(self.layout.target(product))
        match product:
            case Averaged(run, decoding):
                read = self.project.decoding(run.paper, run.system, decoding)
                kept = self.project.run_spec(run).training.keep_checkpoints
                self.checkpoints[run] = max(
                    kept if read.averaged == "best" else read.average_last, self.checkpoints[run]
                )
            case Alignments(run, _):
                self.checkpoints[run] = self.project.run_spec(run).training.keep_checkpoints

    def missing(self, product: Product) -> list[FileCheck]:
        """What is not there, now that it is needed; of a product that is there it may have been freed."""
        finding, mark = self.found[product], self.layout.path(product)
        lost = self.lost_checkpoints(product.run, finding) if isinstance(product, Trained) else []
        if not exists(mark):
            return lost + ([] if mark in {one.path for one in finding.checks} else [check_file(mark)])
        if isinstance(product, Prepared):
            lost = [one for path in self.files(product) if (one := check_file(path)).state == "missing"]
            finding.stale |= {mark} if lost else set()
        return lost

    def lost_checkpoints(self, run: RunId, finding: Finding) -> list[FileCheck]:
        """Of those that a training, done or going on from where it is, would not write again."""
        folder, weights = self.layout.run(run), self.layout.weights(run)
        if is_locked(folder) or any(one.state == "unreadable" for one in finding.checks):
            return []
        good = {one.path for one in finding.checks if one.state == "good"}
        is_over = any(map(exists, (folder / DONE_FILE, weights)))
        training = self.project.run_spec(run).training
        needed = weights_due(training, folder, self.checkpoints[run], good, is_over)
        kept = [step for step in needed if folder / "checkpoints" / f"step-{step}.safetensors" in good]
        if kept == needed:
            return []
        finding.stale |= {folder / DONE_FILE, weights}
        finding.stale |= set(
            (folder / "checkpoints").glob("step-*.resume.safetensors")
        )  # it would go on behind the gap
        return [FileCheck(folder / "checkpoints", "missing", 0, f"{len(kept)} of the last {len(needed)} checkpoints")]

    def checks(self, product: Product) -> list[FileCheck]:
        """Check all files of a product that is here, and the manifest that lists it."""
        manifest = self.layout.target(product)
        is_listed = manifest_of(product) is not product and not self.is_absent(manifest)
        listed = [check_file(manifest, Manifest)] if is_listed else []
        return listed + self.own_checks(product)

    def own_checks(self, product: Product) -> list[FileCheck]:
        """Check all files of a product that is here."""
        mark = self.layout.path(product)
        if isinstance(product, Trained):
            return self.of_training(product.run)
        downloads = self.of_downloads(product.dataset) if isinstance(product, Raw) else []
        if self.is_absent(mark):
            return downloads
        try:
            match product:
                case Vocabulary():
                    return self.of_vocabulary(product)
                case Encoded():
                    return self.of_corpus(product)
                case Score():
                    return self.of_score(product)
        except (UserError, OSError):
            pass  # a record can't be read, or understood: which one, the files themselves tell
        found = [check_file(path, MARKS.get(type(product)) if path == mark else None) for path in self.files(product)]
        if isinstance(product, Prepared | Encoded) and exists(self.layout.path(Encoded(product.dataset))):
            found = self.without_freed(found, product.dataset)
        return self.of_view(mark) + downloads + found

    def without_freed(self, found: list[FileCheck], dataset: str) -> list[FileCheck]:
        """Leave out the missing files that `free` removes once a corpus is encoded."""
        form = self.project.dataset_records[dataset].form
        return [one for one in found if one.state != "missing" or not is_read_by_training_alone(one.path, form)]

    def of_view(self, mark: Path) -> list[FileCheck]:
        """Of the copies at the top of results/ of what the configured paper has there."""
        if mark.parent != self.layout.results / self.project.config.paper:
            return []
        copies = [(RESULTS / path.name, path) for path in (mark, mark.with_suffix(".md"))]
        return [
            FileCheck(view, "damaged", getsize(view), f"is no copy of {path}")
            for view, path in copies
            if exists(view) and exists(path) and view.read_bytes() != path.read_bytes()
        ]

    @staticmethod
    def is_absent(mark: Path) -> bool:
        """Return whether a product was not made yet, set aside or freed; what was deleted still has its note.

        `free` removes recordings and raw text with their marks, but not the notes of these.
        """
        freed = mark.name in (IN_CORPUS[Raw], IN_CORPUS[Spoken])
        return not exists(mark) and (freed or not exists(note_path(mark)))

    def files(self, product: Product) -> list[Path]:
        """The file that stands for a product, and those that were made with it."""
        mark = self.layout.path(product)
        if isinstance(product, DatasetArtifact):
            return sorted({mark, *self.corpus_files(product)})
        beside = {path for path in noted_files(mark.parent) if path.name.startswith(f"{mark.stem}.")}
        if isinstance(product, Score):
            trees = (self.layout.trees(product, words) for words in ("", ".aligned"))
            beside |= {path for path in trees if exists(note_path(path))}
        return sorted({mark, *beside})

    def corpus_files(self, product: DatasetArtifact) -> list[Path]:
        """The files of a product in the folder of its corpus, but for the one that stands for it.

        A file that belongs to no other product was made by the stage that encodes: those of speech prepare, too.
        """
        folder = self.layout.corpus(product.dataset)
        if isinstance(product, Encoded):
            before = [
                one for one in self.graph.closure([product]) if isinstance(one, DatasetArtifact) and one != product
            ]
            return sorted(set(all_noted_files(folder)) - {path for one in before for path in self.files(one)})
        spoken = [folder / "audio", folder / "manifests"]
        match product:
            case Raw():
                folders = [folder / "raw", *([] if exists(self.layout.path(Spoken(product.dataset))) else spoken)]
                found = sorted(
                    {path for one in folders for path in noted_files(one)} | files_listed(self.layout.path(product))
                )
                empty = not found and not any(map(exists, folders)) and not noted_files(folder)
                others = [path for path in noted_files(folder) if not path.name.startswith(("subwords", "spoken"))]
                return [folder / "raw"] if empty else found + others
            case Spoken():
                return [path for one in spoken for path in noted_files(one)]
            case Vocabulary():
                return [path for path in noted_files(folder) if path.name.startswith("subwords")]
        return noted_files(folder / "prepared")

    def of_downloads(self, dataset: str) -> list[FileCheck]:
        """Of the fetched files that are here: really hashed."""
        found = []
        for name, source in sources_of(self.project.dataset_records[dataset]).items():
            if exists(path := self.layout.downloads / name):
                one = check_file(path)
                if one.state == "good" and (fault := wrong_size(path, source) or mismatch(path, source.known_hash)):
                    one = replace(one, state="damaged", fault=fault)
                found.append(one)
        return found

    def of_vocabulary(self, product: Vocabulary) -> list[FileCheck]:
        mark, files = self.layout.path(product), self.files(product)
        record = mark.with_suffix(".json")
        if not exists(record):
            return [check_file(path) for path in {*files, record}]
        said = Vocabularies.read(record)
        digests = {mark: said.digest} | ({mark.with_suffix(".tgt.model"): said.tgt.digest} if said.tgt else {})
        return [check_file(path, None, digests.get(path)) for path in sorted({*files, *digests, record})]

    def of_corpus(self, product: Encoded) -> list[FileCheck]:
        """By the digest of all its files where there is none of each."""
        mark = self.layout.path(product)
        record = read_corpus(mark.parent)
        stores = encoded_stores(mark.parent, record.kind, record.splits)
        files = {path for store in stores for path in store}
        beside = [check_file(path) for path in sorted({*self.files(product)} - files)]
        found = [*map(check_file, sorted(files)), *self.without_freed(beside, product.dataset)]
        if any(one.state != "good" for one in found) or stores_digest(stores) == record.digest:
            return found
        fault = f"this or another file of {mark.parent} is not what was encoded"
        return [replace(one, state="damaged", fault=fault) if one.path in files else one for one in found]

    def of_score(self, product: Score) -> list[FileCheck]:
        """What it was counted on must be what is there now."""
        mark = self.layout.path(product)
        found = [check_file(path, ScoreFile if path == mark else None) for path in self.files(product)]
        for path, digest in ScoreFile.read(mark).inputs.items():
            if check_file(Path(path)).state == "good" and check_file(Path(path), None, digest).state == "damaged":
                found.append(FileCheck(mark, "damaged", getsize(mark), f"was counted on another {path}"))
        return found

    def of_training(self, run: RunId) -> list[FileCheck]:
        """Its specification, record, final weights and checkpoints; nothing of one that is going on."""
        folder, mark, weights = self.layout.run(run), self.layout.path(Trained(run)), self.layout.weights(run)
        if is_locked(folder):
            return []
        kept = [check_file(path) for path in sorted((folder / "checkpoints").glob("step-*.safetensors"))]
        told = [check_file(path) for name in TELEMETRY_FILES if exists(path := folder / name)]
        if self.is_absent(mark):
            return kept + told
        done = check_file(mark)
        digest = TrainedRun.read(mark).weights_digest if done.state == "good" else None
        return [done, check_file(folder / RUN_FILE), check_file(weights, None, digest), *kept, *told]
