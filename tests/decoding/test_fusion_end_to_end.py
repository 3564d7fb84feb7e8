"""Train, fuse and score the papers' own recognisers, on a corpus of noise.

A recogniser is fused with the language model of its seed, decoding replaces it by another, and weights are chosen.
"""

from pathlib import Path

import numpy as np
import pytest
import yaml
from made_records import text_corpus
from speech_runs import FEATURES, write_corpus

from pipeline.__main__ import main
from pipeline.config import DecodingConfig, load_run
from pipeline.core.artifacts import Encoded, RunId, Score, Trained, Transcript, Tuned
from pipeline.core.digests import ROOT
from pipeline.core.json_csv import read_json
from pipeline.data.encoded_files import NOISE_STEM
from pipeline.data.sequence_store import write_frames
from pipeline.decoding.trained_model import TrainedModel
from pipeline.decoding.tune import choose_weights
from pipeline.papers.project import load_project
from pipeline.training.run_model import build_initial_model
from pipeline.training.tensor_file import read_tensor_file
from pipeline.workflow.graph import Graph, flatten

SOURCE, TARGET, FULL, OTHER = (
    f"grammar-smoke-{name}" for name in ("speech-source", "speech-target", "text-full", "text-target")
)
SHORT = {"max_steps": 2, "validate_every": 2, "checkpoint_every": 2, "sentences_per_update": 4}


class Workflow:
    """Makes products by the stages' commands, each after all that the graph says it is made from."""

    def __init__(self, work: Path):
        self.project = load_project(ROOT, {"scale": "smoke", "work": str(work), "seeds": [3, 7]})
        self.graph, self.layout = Graph(self.project), self.project.layout
        corpora = [Encoded(dataset) for dataset in (SOURCE, TARGET, FULL, OTHER)]
        for seed, corpus in enumerate(corpora):
            folder = write_corpus(self.layout.path(corpus).parent, seed, mean=float(seed))
            with write_frames(folder / NOISE_STEM) as noises:
                noises.append(np.random.default_rng(seed).normal(0, 1, (40, FEATURES)))
            if corpus.dataset in (FULL, OTHER):
                text_corpus(digest=corpus.dataset).write(folder / "corpus.json")
        self.behind = {product for corpus in corpora for product in self.graph.closure([corpus])}
        self.made: list = []

    def make(self, target) -> None:
        for product in self.graph.closure([target]):
            if product not in self.behind and product not in self.made:
                assert all(self.layout.path(source).exists() for source in flatten(self.graph.inputs(product)))
                self.run(product)
                self.made.append(product)

    def run(self, product) -> None:
        out, inputs, run = self.layout.path(product), self.graph.inputs(product), product.run
        match product:
            case Trained():
                settings = self.project.run_yaml(run)
                settings["training"] |= SHORT
                out.parent.mkdir(parents=True)
                (out.parent / "run.yaml").write_text(yaml.safe_dump(settings))
                stage("train", "--run", out.parent, "--threads", 1, "--device", "cpu")
            case Tuned():
                trained = TrainedModel.load(self.layout.weights(run), threads=1)
                choose_weights(trained, self.decoding(product), self.layout.run(inputs["language_model"].run), out)
            case Transcript():
                options = [
                    "--weights",
                    self.layout.weights(run),
                    "--decoding",
                    self.decoding(product).model_dump_json(),
                ]
                options += ["--corpus", self.layout.path(Encoded(product.scored_on)).parent, "--split", product.split]
                if "language_model" in inputs:
                    options += ["--language-model", self.layout.run(inputs["language_model"].run)]
                if "tuned" in inputs:
                    options += ["--tuned", self.layout.path(inputs["tuned"])]
                stage("transcribe", *options, "--out", out, "--threads", 1)
            case Score():
                files = ["--transcripts", self.layout.path(inputs["transcript"])]
                files += ["--corpus", self.layout.path(inputs["scored_on"]).parent]
                files += ["--dataset", ROOT / f"workflow/datasets/{product.scored_on}.yaml"]
                stage("score-speech", *files, "--split", "test", "--out", out)

    def decoding(self, product) -> DecodingConfig:
        config = self.project.decoding(product.run.paper, product.run.system, product.decoding)
        return config.model_copy(update={"beam_size": 2})


def stage(*words: object) -> None:
    assert main([*map(str, words)]) == 0


def run_of(system: str, dataset: str, seed: int = 7) -> RunId:
    return RunId("coldfusion", system, dataset, seed)


@pytest.fixture(scope="module")
def workflow(tmp_path_factory):
    return Workflow(tmp_path_factory.mktemp("work"))


@pytest.mark.parametrize("decoding", ["swapped", "swapped-ngrams"])
def test_fused_recogniser_is_scored_with_another_language_model(workflow, decoding):
    target = Score(run_of("CF4", SOURCE), "scores", decoding, "test", TARGET)
    workflow.make(target)
    cold, lm, other = run_of("CF4", SOURCE), run_of("lm-full", FULL), run_of("lm-target", OTHER)
    made = [workflow.made.index(product) for product in (Trained(lm), Trained(cold), target)]
    assert made == sorted(made) and workflow.made.index(Trained(other)) < made[-1]
    trained_runs = {product.run for product in workflow.made if isinstance(product, Trained)}
    assert {run for run in trained_runs if run.seed == 7} == {cold, lm, other}
    fused = build_initial_model(load_run(workflow.layout.run(cold) / "run.yaml"))
    trained, _ = read_tensor_file(workflow.layout.weights(lm))
    held = fused.language_model.state_dict()
    assert trained and all(held[name].equal(weight) for name, weight in trained.items())
    scores = read_json(workflow.layout.path(target))
    assert scores["dataset"] == TARGET
    assert scores["training"] == read_json(workflow.layout.path(Trained(cold)))["weights_digest"]


def test_shallow_fusion_weights_are_tuned_before_decoding(workflow):
    run = run_of("attention-source", SOURCE, seed=3)
    target = Transcript(run, "shallow", "test", TARGET)
    workflow.make(target)
    lm = run_of("lm-full", FULL, seed=3)
    kinds = [(type(product).__name__, getattr(product.run, "system", None)) for product in workflow.made]
    assert kinds[-2:] == [("Tuned", run.system), ("Transcript", run.system)]
    assert {product.run for product in workflow.made if product.run.seed == 3} == {run, lm}
    tuned, used = (read_json(workflow.layout.path(one).with_suffix(".json")) for one in (workflow.made[-2], target))
    for weight in ("lm_weight", "word_bonus"):
        assert used["decoding"][weight] == tuned[weight]
