import shutil

import pytest
import yaml
from made_records import parallel_corpus
from run_folders import change_settings

from pipeline.core.errors import UserError
from pipeline.core.json_csv import write_json
from pipeline.training.specification import run_key


def test_run_key_depends_on_settings_not_key_order(new_run):
    run = new_run()
    key, spec = run_key(run), yaml.safe_load((run / "run.yaml").read_text())
    (run / "run.yaml").write_text(yaml.safe_dump(dict(reversed(spec.items())), sort_keys=False))
    assert run_key(run) == key
    change_settings(run, seed=2)
    assert run_key(run) != key


def test_the_key_follows_what_the_corpus_holds_where_it_lies(new_run, tmp_path):
    run, corpus, keys = new_run(), tmp_path / "encoded", []
    change_settings(run, corpus=str(corpus))
    for digest in ("one", "other", "one"):
        parallel_corpus(7, digest=digest).write(corpus / "corpus.json")
        keys.append(run_key(run))
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.parametrize("part", ["initial", "language_model"])
def test_the_key_follows_the_runs_whose_weights_are_taken(new_run, part):
    """Neither the name of their folder nor its place counts."""
    run, taken, keys = new_run(), new_run("taken"), []
    lm = {"architecture": "language_model", "num_layers": 1, "embedding_width": 4, "hidden_width": 4}

    def take(folder) -> None:
        fused = {"fusion": {"kind": "cold", "width": 5}, "language_model": {"run": str(folder), "model": lm}}
        change_settings(run, **({"initial": str(folder)} if part == "initial" else fused))

    take(taken)
    for seed in (1, 2, 1):
        change_settings(taken, seed=seed)
        keys.append(run_key(run))
    take(shutil.copytree(taken, taken.with_name("moved")))
    assert keys[0] == keys[2] == run_key(run) != keys[1]


def test_a_corpus_without_digest_is_refused(new_run, tmp_path):
    run = new_run()
    write_json(tmp_path / "corpus.json", parallel_corpus(7).model_dump(exclude={"digest"}))
    change_settings(run, corpus=str(tmp_path))
    with pytest.raises(UserError, match=r"corpus\.json: has no `parallel.digest`; .*encode the corpus"):
        run_key(run)
