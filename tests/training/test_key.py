import shutil
import subprocess
import sys

import pytest
import yaml
from made_records import parallel_corpus

from pipeline.core.errors import UserError
from pipeline.core.json_csv import write_json
from pipeline.training.specification import run_key


def test_run_key_depends_on_settings_and_corpus_not_key_order(new_run, tmp_path, copy_corpus):
    run = new_run()
    key = run_key(run)
    spec = yaml.safe_load((run / "run.yaml").read_text())
    (run / "run.yaml").write_text(yaml.safe_dump(dict(reversed(spec.items())), sort_keys=False))
    assert run_key(run) == key
    (run / "run.yaml").write_text(yaml.safe_dump(spec | {"seed": 2}))
    assert run_key(run) != key
    other = tmp_path / "encoded"
    parallel_corpus(7, digest="another").write(other / "corpus.json")
    (run / "run.yaml").write_text(yaml.safe_dump(spec | {"corpus": str(other)}))
    assert run_key(run) != key


def test_the_key_follows_what_the_corpus_holds_where_it_lies(new_run, tmp_path):
    run, corpus = new_run(), tmp_path / "encoded"
    spec = yaml.safe_load((run / "run.yaml").read_text())
    (run / "run.yaml").write_text(yaml.safe_dump(spec | {"corpus": str(corpus)}))
    keys = []
    for digest in ("one", "other", "one"):
        parallel_corpus(7, digest=digest).write(corpus / "corpus.json")
        keys.append(run_key(run))
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.parametrize("part", ["initial", "language_model"])
def test_the_key_follows_the_runs_whose_weights_are_taken(new_run, part):
    """Neither the name of their folder nor its place counts."""
    run, taken = new_run(), new_run("taken")
    spec, other = (yaml.safe_load((folder / "run.yaml").read_text()) for folder in (run, taken))
    lm = {"architecture": "language_model", "num_layers": 1, "embedding_width": 4, "hidden_width": 4}
    added = {"initial": str(taken)}
    if part == "language_model":
        added = {"fusion": {"kind": "cold", "width": 5}, "language_model": {"run": str(taken), "model": lm}}
    (run / "run.yaml").write_text(yaml.safe_dump(spec | added))
    keys = []
    for seed in (1, 2, 1):
        (taken / "run.yaml").write_text(yaml.safe_dump(other | {"seed": seed}))
        keys.append(run_key(run))
    moved = shutil.copytree(taken, taken.with_name("moved"))
    (run / "run.yaml").write_text((run / "run.yaml").read_text().replace(str(taken), str(moved)))
    assert keys[0] == keys[2] == run_key(run) != keys[1]


def test_a_corpus_without_digest_is_refused(new_run, tmp_path):
    run = new_run()
    spec = yaml.safe_load((run / "run.yaml").read_text())
    content = parallel_corpus(7).model_dump(exclude={"digest"})
    write_json(tmp_path / "corpus.json", content)
    (run / "run.yaml").write_text(yaml.safe_dump(spec | {"corpus": str(tmp_path)}))
    with pytest.raises(UserError, match=r"corpus\.json: has no `parallel.digest`; .*encode the corpus"):
        run_key(run)


def test_the_key_needs_no_torch():
    code = "import sys, pipeline.training.specification; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
