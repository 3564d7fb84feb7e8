import subprocess
import sys

import pytest
import yaml
from made_records import parallel_corpus

from pipeline.errors import UserError
from pipeline.files import write_json
from pipeline.training.key import run_key


def test_the_key_follows_every_setting_and_the_corpus_but_not_the_order_of_keys(new_run, tmp_path, copy_corpus):
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


def test_a_corpus_without_digest_is_refused(new_run, tmp_path):
    run = new_run()
    spec = yaml.safe_load((run / "run.yaml").read_text())
    content = parallel_corpus(7).model_dump(exclude={"digest"})
    write_json(tmp_path / "corpus.json", content)
    (run / "run.yaml").write_text(yaml.safe_dump(spec | {"corpus": str(tmp_path)}))
    with pytest.raises(UserError, match=r"corpus\.json: has no `parallel.digest`; .*encode the corpus"):
        run_key(run)


def test_the_key_needs_no_torch():
    code = "import sys, pipeline.training.key; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
