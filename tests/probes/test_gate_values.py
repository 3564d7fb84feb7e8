"""Kinds of source words are found where the grammar put them, and the record has the gates' means over them."""

import json

import numpy as np
import pytest
import torch
import yaml
from grammar_sentences import generate
from made_records import parallel_corpus
from run_folders import write_settings, write_weights

from pipeline.config import load_run
from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT
from pipeline.data.batches.parallel_batches import ParallelSplit
from pipeline.data.sequence_store import write_tokens
from pipeline.data.text.subwords import train
from pipeline.data.text.vocabulary import Subwords
from pipeline.decoding.trained_model import TrainedModel
from pipeline.metrics import read_statistics
from pipeline.models.architectures import build_model
from pipeline.probes.gate_values import covered, kinds_of, measure_gates

SPLITS = {"test": slice(40), "test2": slice(40, 60)}
MODEL = {"architecture": "recurrent", "channels": "ntm-rnn-emb", "init_scale": 0.5, "d_attention": 6}
MODEL |= dict.fromkeys(("d_embedding", "d_state", "d_readout"), 6)


def test_a_phrase_covers_the_words_in_it_however_it_is_parted():
    assert covered(["他", "蒙在", "鼓里", "了"], ["蒙在鼓里"]) == {1, 2}
    assert covered(["他", "蒙在鼓里了"], ["蒙在鼓里"]) == set()
    assert covered(["anna", "keller", "看见", "ann"], ["Anna Keller"]) == {0, 1}
    assert covered(["ann", "看见", "anna"], ["Ann"]) == {0}


def test_kinds_are_of_known_words_and_idioms_come_first():
    record = {"names": [{"text": "Anna Keller"}, {"text": "Zoe"}], "idioms": [{"zh": ["把", "蒙在鼓里"]}]}
    words = ["anna", "keller", "把", "zoe", "蒙", "在", "鼓里", "的", "狗", "。"]
    vocabulary = ["的", "在", "。", "anna", "keller", "鼓里", "蒙", "把"]
    assert kinds_of(words, record, vocabulary) == {
        "names": [0, 1],
        "rare_names": [1],
        "idioms": [4, 5, 6],
        "function_words": [7],
    }


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A corpus folder of the grammar with two test sets, Chinese alone, and its dataset file."""
    folder = tmp_path_factory.mktemp("corpus")
    sentences = generate("film", 60, 5)
    lines = [" ".join(sentence.zh_words).lower() for sentence in sentences]
    words = {word for line in lines for word in line.split(" ")}
    (folder / "subwords.model").write_bytes(train("word", iter(lines), len(words) + 4, "toy"))
    other = (" ".join(f"other-{word}" for word in line.split(" ")) for line in lines)
    (folder / "subwords.tgt.model").write_bytes(train("word", other, len(words) + 4, "toy"))
    subwords = Subwords(folder / "subwords.model")
    (folder / "prepared").mkdir()
    for split, chosen in SPLITS.items():
        with open(folder / f"{split}.phenomena.jsonl", "w", encoding="utf-8") as handle:
            handle.writelines(json.dumps(sentence.phenomena) + "\n" for sentence in sentences[chosen])
        text = "".join(f"{line}\n" for line in lines[chosen])
        (folder / f"prepared/{split}.tok.zh").write_text(text, encoding="utf-8")
        ids = subwords.encode(lines[chosen])
        for side in ("src", "tgt"):
            with write_tokens(folder / f"encoded/{split}.{side}", len(subwords)) as store:
                store.append(np.concatenate(ids), np.array([len(sentence) for sentence in ids]))
    parallel_corpus(len(subwords), src="zh", tgt="en").write(folder / "encoded/corpus.json")
    dataset = yaml.safe_load((ROOT / "workflow/datasets/grammar-zh-en.yaml").read_text())
    dataset |= {"test_set": "toy", "further_test_sets": ["toy2"], "expected": {}, "size": None}
    dataset["generator"] = {"domain": "film", "sizes": {"train": 1, "dev": 1, "test": 40, "test2": 20}, "seed": 5}
    (folder / "toy.yaml").write_text(json.dumps(dataset))
    return folder


def write_run(folder, corpus, **changes):
    write_settings(folder, corpus / "encoded", MODEL | changes, {"sentences_per_update": 2})
    symbols = len(Subwords(corpus / "subwords.model"))
    torch.manual_seed(1)
    model = build_model(load_run(folder / "run.yaml").model, (symbols, symbols)).eval()
    write_weights(folder, model)
    return model


def gate_values(folder, corpus):
    trained = TrainedModel.load(folder / "model.safetensors", threads=1)
    measure_gates(trained, corpus / "toy.yaml", folder / "gates.json")


def test_means_are_those_of_the_gates_at_the_places_of_each_kind(corpus, tmp_path):
    model = write_run(tmp_path, corpus)
    gate_values(tmp_path, corpus)
    record = json.loads((tmp_path / "gates.json").read_text())
    assert record["test_sets"] == ["toy", "toy2"] and record["lines"] == 60 and set(record["gates"]) == {"rnn", "emb"}
    vocabulary = Subwords(corpus / "subwords.model").words
    gates, places = [], []
    for name in SPLITS:
        lines = (corpus / f"prepared/{name}.tok.zh").read_text(encoding="utf-8").splitlines()
        facts = map(json.loads, (corpus / f"{name}.phenomena.jsonl").read_text(encoding="utf-8").splitlines())
        split = ParallelSplit(corpus / "encoded", name)
        for number, (line, fact) in enumerate(zip(lines, facts, strict=True)):
            with torch.no_grad():
                gates.append(model.channel_gates(split.batch(np.array([number])))["emb"][0].mean(-1))
            places.append(kinds_of(line.split(" "), fact, vocabulary))
    for kind in ("names", "rare_names", "idioms", "function_words"):
        values = [value for gate, found in zip(gates, places, strict=True) for value in gate[found[kind]].tolist()]
        measured = record["gates"]["emb"][kind]
        assert measured["words"] == len(values) > 0
        assert measured["value"] == pytest.approx(np.mean(values), abs=1e-6)
        rows = read_statistics(tmp_path / "gates.json", f"emb.{kind}")
        assert rows.shape == (60, 2) and rows[:, 1].tolist() == [len(found[kind]) for found in places]


def test_a_model_of_one_channel_has_no_gate(corpus, tmp_path):
    write_run(tmp_path, corpus, channels="rnn")
    with pytest.raises(UserError, match="no gate between channels"):
        gate_values(tmp_path, corpus)
