"""Results as the stages leave them, with made-up texts that are really scored, for pages to be made of."""

import math
import random
from pathlib import Path

import numpy as np
import soundfile
from fabricated import append, folder_of, write_failure, write_training
from made_records import decoded, progress_line

from pipeline.core.artifacts import Parse, RunId, Score, Transcript, Translation
from pipeline.core.records.outputs import Scored
from pipeline.core.records.training import SampleLine
from pipeline.data.sequence_store import write_tokens
from pipeline.data.speech.manifest import Utterance, manifest_path, write_manifest
from pipeline.data.text.vocabulary import Alphabet
from pipeline.data.trees.linearisation import Repairs
from pipeline.data.trees.trees import parse_tree
from pipeline.metrics import write_score
from pipeline.metrics.brackets import Parses
from pipeline.metrics.error_rates import Transcripts
from pipeline.metrics.metric import MetricInputs, Texts, Translations
from pipeline.papers.project import Project
from pipeline.report.site import outputs
from pipeline.report.site.output_set import output_sets
from pipeline.report.site.pages import Pages
from pipeline.report.site.papers import write_paper
from pipeline.report.site.runs import write_run
from pipeline.report.site.site_data import SiteData, paper_page, run_page

WORDS = ["the", "old", "baker", "of", "our", "town", "sold", "a", "warm", "loaf", "to", "first", "guest", "train"]
SENTENCES, RATE = 40, 16_000
TREE = "(TOP (S (NP (DT the) (NN dog)) (VP (VBD barked)) (. .)))"


def make_results(project: Project, marker: str = "warm") -> None:
    """Two systems of each form, one run that failed; `marker` stands in every text."""
    make_translations(project, marker)
    make_transcripts(project, marker)
    make_parses(project)
    failed = project.runs_of("weighted", "A", "wmt14-en-de")[0]
    write_failure(folder_of(project, failed), "micro-batch of 3 x 9 tokens does not fit <b>")


def begun_site(project: Project, out: Path) -> Pages:
    """Return the pages of a site that has only its assets; a whole site takes seconds."""
    pages = Pages(out, SiteData(project, False))
    pages.assets()
    return pages


def page_of_paper(project: Project, out: Path, paper: str) -> str:
    """Write the pages of a paper, and return the main one."""
    write_paper(begun_site(project, out), paper)
    return (out / paper_page(paper)).read_text(encoding="utf-8")


def page_of_run(project: Project, out: Path, run: RunId) -> str:
    """Write the page of a run, and return it."""
    write_run(begun_site(project, out), run, {})
    return (out / run_page(run)).read_text(encoding="utf-8")


def pages_of_outputs(project: Project, out: Path) -> list[str]:
    """Write the pages of all outputs, and return them."""
    pages = begun_site(project, out)
    for output_set in output_sets(pages.site):
        outputs.write_outputs(pages, output_set)
    return [path.read_text(encoding="utf-8") for path in out.glob("outputs-*.html")]


def sentences(marker: str) -> list[str]:
    generator = random.Random(1)
    return [" ".join([marker, *generator.choices(WORDS, k=generator.randint(2, 20))]) for _ in range(SENTENCES)]


def spoilt(lines: list[str], share: float) -> list[str]:
    generator = random.Random(2)
    kept = ([word for word in line.split() if generator.random() > share] or ["a"] for line in lines)
    return [" ".join(words) for words in kept]


def write_lines(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def train(project: Project, run: RunId, marker: str, loss: float) -> None:
    losses = [loss + math.exp(-step) for step in range(5)]
    write_training(project, run, losses, losses)
    progress = [progress_line(10 * step, loss + 1 / step, max_steps=500, lr=step * 1e-5) for step in range(1, 51)]
    append(folder_of(project, run), progress)
    line = SampleLine(step=100, source=marker, reference=marker, hypothesis=f"{marker} a")
    (folder_of(project, run) / "samples.jsonl").write_text(line.line())


def write_scored(project: Project, score: Score, inputs: MetricInputs, lines: int) -> None:
    record = Scored(
        dataset=score.scored_on or score.run.dataset,
        split=score.split,
        test_set=f"toy {score.split}",
        lines=lines,
        references="toy",
    )
    path = project.layout.path(score)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_score(path, inputs, record)


def make_translations(project: Project, marker: str) -> None:
    references = sentences(marker)
    prepared = project.layout.corpus(project.stand_in("wmt14-en-de")) / "prepared"
    for name in ("dev.en", "dev.de", "dev.tok.en", "dev.tok.de", "train.tok.de"):
        write_lines(prepared / name, references)
    for system, share in (("attention/C1", 0.5), ("C", 0.1)):
        run = project.runs_of("weighted", system, "wmt14-en-de")[0]
        train(project, run, marker, 2 + share)
        artifact = Translation(run, "final", "dev")
        lines = spoilt(references, share)
        write_lines(project.layout.path(artifact), lines)
        write_lines(project.layout.text(artifact), lines)
        decoded(lines=len(lines)).write(project.layout.path(artifact).with_suffix(".json"))
        texts = Texts(lines, [references])
        for decoding in ("final", "uniform") if system == "C" else ("final",):
            write_scored(project, Score(run, "scores", decoding, "dev"), Translations(texts, texts), len(lines))


def make_transcripts(project: Project, marker: str) -> None:
    spoken = [line.lower() for line in sentences("film")]
    dataset = project.stand_in("target")
    corpus, alphabet = project.layout.corpus(dataset), Alphabet()
    (corpus / "audio").mkdir(parents=True, exist_ok=True)
    soundfile.write(corpus / "audio/toy.wav", 0.1 * np.sin(np.arange(2 * SENTENCES * RATE) / 20), RATE)
    utterances = [
        Utterance(corpus / "audio/toy.wav", text, "reader", "film", 2.0, 2.0 * number)
        for number, text in enumerate(spoken)
    ]
    write_manifest(manifest_path(corpus, "test"), utterances)
    (corpus / "encoded").mkdir(parents=True, exist_ok=True)
    with write_tokens(corpus / "encoded/test.tgt", len(alphabet)) as writer:
        writer.append(*alphabet.flat(spoken))
    for system, share in (("attention-source", 0.4), ("CF4", 0.1)):
        run = project.runs_of("coldfusion", system, "source")[0]
        train(project, run, marker, 1 + share)
        lines = spoilt(spoken, share)
        write_lines(project.layout.path(Transcript(run, "final", "test", dataset)), lines)
        write_scored(project, Score(run, "scores", "final", "test", dataset), Transcripts(spoken, lines), len(lines))


def make_parses(project: Project) -> None:
    prepared = project.layout.corpus(project.stand_in("wsj")) / "prepared"
    run = project.runs_of("attention", "parsing", "wsj")[0]
    train(project, run, "dog", 1.0)
    split, decoding = "test", "parsing"
    score = Score(run, "scores", decoding, split)
    write_lines(prepared / f"{split}.tok.en", ["the dog barked ."] * SENTENCES)
    write_lines(prepared / f"{split}.trees", [TREE] * SENTENCES)
    write_lines(project.layout.path(Parse(run, decoding, split)), ["(S"] * SENTENCES)
    write_lines(project.layout.trees(score), [TREE] * SENTENCES)
    gold = [parse_tree(TREE, "toy")] * SENTENCES
    write_scored(project, score, Parses(gold, gold, [Repairs()] * SENTENCES, gold), SENTENCES)
