"""Jobs that stand in for a training if its result does not matter; they need no torch.

They read the same `run.yaml`, so that the launcher sees no difference. Files in the run folder change what
`count_steps` does: `pace` holds the seconds of a step, `fail-at` the step at which it raises an error.
"""

import hashlib
import json
import os
import signal
import time
from pathlib import Path

from tracing import CHECKPOINT_EVERY, record_step

from pipeline.config import load_run
from pipeline.core.json_csv import write_json
from pipeline.core.layout import WEIGHTS_FILE
from pipeline.training.specification import run_key


def count_steps(run: Path) -> None:
    """Each step hashes the last one's digest: a step lost or done twice changes the end."""
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGUSR2):
        signal.signal(number, lambda received, frame: asked.append(received))
    max_steps = load_run(run / "run.yaml").training.max_steps
    step, digest = newest(run)
    print(f"starting at step {step} of {max_steps}", flush=True)
    while step < max_steps:
        time.sleep(number_in(run / "pace", 0.05))
        step, digest = step + 1, hashlib.sha256(digest.encode()).hexdigest()
        record_step(run, step)
        if step == number_in(run / "fail-at", -1):
            raise ValueError(f"the toy fails at step {step} as it was told to")
        if asked or step % CHECKPOINT_EVERY == 0:
            write_json(run / "checkpoints" / f"step-{step}.safetensors", {"step": step, "digest": digest})
        if asked:
            raise SystemExit(75)
    (run / WEIGHTS_FILE).write_text(digest)
    write_json(run / "done.json", {"key": run_key(run), "steps": step, "weights_digest": digest})


def newest(run: Path) -> tuple[int, str]:
    paths = sorted((run / "checkpoints").glob("step-*.safetensors"), key=lambda path: int(path.stem.split("-")[1]))
    state = json.loads(paths[-1].read_text()) if paths else {"step": 0, "digest": ""}
    return state["step"], state["digest"]


def number_in(path: Path, otherwise: float) -> float:
    return float(path.read_text()) if path.exists() else otherwise


def expected_digest(steps: int) -> str:
    digest = ""
    for _ in range(steps):
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return digest


def tell_rank(run: Path) -> None:
    """Write what the job's wrapper says of this task; the first one waits for the others before it is done."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    write_json(run / f"rank-{os.environ['RANK']}.json", {name: os.environ[name] for name in names})
    while os.environ["RANK"] == "0" and len(list(run.glob("rank-*.json"))) < int(os.environ["WORLD_SIZE"]):
        time.sleep(0.05)
    if os.environ["RANK"] == "0":
        write_json(run / "done.json", {"key": run_key(run)})
