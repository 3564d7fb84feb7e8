"""From raw trees to a score: words and symbols with a vocabulary each, through training, beam search and rebuilding."""

import json

import torch
import yaml
from treebank_records import treebank_record

from pipeline.data.dataset import TreebankRecord, load_one_of
from pipeline.data.text.encode import encode
from pipeline.data.text.subwords import learn_vocabularies
from pipeline.data.trees.prepare_trees import prepare_trees
from pipeline.data.trees.trees import parse_tree, words
from pipeline.decoding.decode_split import translate
from pipeline.grammar.splits import write_splits
from pipeline.outputs.score import score_parses
from pipeline.training.job import train_run

SIZES = {"train": 60, "dev": 4, "test": 6}
SUBWORDS = {"kind": "bpe", "vocab_size": 120, "sample_pairs": 1000}
GENERATOR = {"domain": "film", "sizes": SIZES, "seed": 1}
DATASET = treebank_record(kind="grammar-treebank", generator=GENERATOR, subwords=SUBWORDS)
MODEL = {"architecture": "transformer", "num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}
TRAINING = {"max_steps": 3, "warmup_steps": 2, "validate_every": 3, "checkpoint_every": 3}
TRAINING |= {"tokens_per_update": 512, "micro_batch_tokens": 512, "max_length": 256}
RUN = {"paper": "toy", "system": "parsing", "dataset": "toy", "scale": "toy", "seed": 1}
RUN |= {"model": MODEL | {"tie_embeddings": "none"}, "training": TRAINING}


def test_parsing_of_grammar_trees_runs_end_to_end(tmp_path):
    torch.set_num_threads(1)
    dataset, corpus, run = tmp_path / "toy-trees.yaml", tmp_path / "corpus", tmp_path / "run"
    dataset.write_text(yaml.safe_dump(DATASET), encoding="utf-8")
    write_splits(corpus, ["en"], SIZES, "film", seed=1)
    record = load_one_of(dataset, TreebankRecord, "a treebank")
    prepare_trees(record, corpus)
    learn_vocabularies(record, corpus)
    sizes = encode(record, corpus, processes=1)
    assert sizes.vocab_size != sizes.tgt_vocab_size
    run.mkdir()
    (run / "run.yaml").write_text(yaml.safe_dump(RUN | {"corpus": str(corpus / "encoded")}), encoding="utf-8")
    train_run(run, device="cpu", threads=1)
    decoding = '{"beam_size": 3, "length_penalty": 0.3, "max_extra_length": 5}'
    written = {"weights": run / "model.safetensors", "split": "test", "decoding": decoding, "threads": 1}
    translate(**written, out=run / "test.tok")
    scored = {"dataset": dataset, "prepared": corpus / "prepared", "sequences": run / "test.tok"}
    trees = {"trees": run / "test.trees", "aligned_trees": run / "test.aligned.trees"}
    score_parses(**scored, **trees, out=run / "test.json")
    score = json.loads((run / "test.json").read_text(encoding="utf-8"))
    assert score["lines"] == SIZES["test"] and 0 <= score["metrics"]["f1"]["value"] <= 100
    sentences = (corpus / "prepared/test.tok.en").read_text(encoding="utf-8").split("\n")[:-1]
    for written in trees.values():
        parses = written.read_text(encoding="utf-8").split("\n")[:-1]
        assert [" ".join(words(parse_tree(tree, ""))) for tree in parses] == sentences
