"""Try hostile archives, servers and files: each case ends within seconds, in correct content or in one clear line.

python -m qa.chaos.hostile --archives 200 --servers 200 --files 400 [--seed 7]
python -m qa.chaos.hostile --seed 7 --only archives --case 12
"""

import argparse
import contextlib
import hashlib
import logging
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline.core.errors import UserError
from qa.chaos.server import ROOT

sys.path.append(str(ROOT / "tests/helpers"))
import packed_model

from pipeline.data.dataset import Source
from pipeline.data.fetch import transfer, web
from pipeline.data.fetch.download import fetch
from qa.chaos.hostile import archives, files, servers

LONGEST_S = 5.0
"""Limit of a case: CPU seconds, or wall-clock seconds with a server."""
HOPELESS_S = 60
ESCAPED = Path("/tmp/escape-of-the-hostile-suite")
IMPATIENT = {
    "FIRST_PAUSE_S": 0.0,
    "LONGEST_PAUSE_S": 0.05,
    "SILENCE_S": 0.3,
    "SLOWEST_S": 0.3,
    "ANSWER_S": 0.3,
    "ATTEMPTS": 2,
}
Works = list[Callable[[], object]]


def archive_case(rng: random.Random, folder: Path, model: Path) -> Works:
    path = folder / "a"
    path.write_bytes(archives.archive(rng))
    return archives.read_everywhere(path, folder / "out")


def server_case(rng: random.Random, folder: Path, model: Path) -> Works:
    known = {"sha256": hashlib.sha256(servers.CONTENT).hexdigest()}
    known |= rng.choice([{}, {"bytes": len(servers.CONTENT)}])

    def fetched(*paths: str) -> None:
        with servers.serving(rng) as url:
            source = Source(urls=[f"{url}/{path}" for path in paths], **known)
            found = fetch(paths[0], source, folder / f"out{len(paths)}", None)
            assert found.read_bytes() == servers.CONTENT, "other content than the checksum's"

    def despite() -> None:
        try:
            fetched("bad", "good")
        except UserError as error:
            raise AssertionError(f"the good address was not used: {error}") from error

    return [lambda: fetched("bad"), despite]


def file_case(rng: random.Random, folder: Path, model: Path) -> Works:
    return files.model_case(rng, model, folder) if rng.random() < 0.4 else files.text_case(rng, folder)


CASES = {"archives": archive_case, "servers": server_case, "files": file_case}


class Hang(BaseException):
    """A case that does not end."""


@contextlib.contextmanager
def alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(HOPELESS_S)
    try:
        yield
    finally:
        signal.alarm(0)


def end_of(work: Callable[[], object], clock: Callable[[], float]) -> str:
    """Return how it ends: read, refused, or what is wrong with it."""
    began = clock()
    try:
        with alarm():
            work()
        end = "read"
    except UserError as error:
        end = "refused" if str(error).count("\n") <= 3 else f"of several lines: {error}"
    except AssertionError as error:
        end = f"undetected: {error}"
    except Hang:
        return f"hangs: {HOPELESS_S} s"
    except Exception:
        end = "traceback: " + traceback.format_exc()
    took = clock() - began
    return end if took < LONGEST_S else f"hangs: {took:.1f} s"


def outside(folder: Path) -> list[str]:
    """Return what lies where no archive may write."""
    allowed = {"a", "out", "out1", "out2", "d", "model", *files.TEXTS}
    found = [path.name for path in folder.iterdir() if path.name not in allowed]
    return found + [str(path) for path in (ESCAPED, folder.parent / "escape") if path.exists()]


def run(kind: str, seed: int, numbers: range | list[int], model: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of each case of a kind with each of its ends."""
    clock = time.monotonic if kind == "servers" else time.process_time
    for number in numbers:
        rng = random.Random(f"{seed} {kind} {number}")
        with tempfile.TemporaryDirectory() as above:
            folder = Path(above) / "case"
            folder.mkdir()
            for work in CASES[kind](rng, folder, model):
                yield number, end_of(work, clock)
            if found := outside(folder):
                yield number, f"outside: {found}"


@contextlib.contextmanager
def impatient() -> Iterator[None]:
    """Have downloads give up within seconds."""
    before = {
        (module, name): getattr(module, name)
        for module in (transfer, web)
        for name in IMPATIENT
        if hasattr(module, name)
    }
    for module, name in before:
        setattr(module, name, IMPATIENT[name])
    try:
        yield
    finally:
        for (module, name), value in before.items():
            setattr(module, name, value)


def made_model(folder: Path) -> Path:
    """Write a packed model of random weights."""
    folder.mkdir()
    return packed_model.pack(folder)


def main() -> int:
    """Run cases of each kind; the exit status is 1 when one failed."""
    parser = argparse.ArgumentParser(prog="python -m qa.chaos.hostile", description=__doc__.split("\n")[0])
    for kind, count in (("archives", 200), ("servers", 200), ("files", 400)):
        parser.add_argument(f"--{kind}", type=int, default=count, help="number of cases")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", choices=[*CASES])
    parser.add_argument("--case", type=int, help="run only the case with this number")
    args = parser.parse_args()
    print(f"hostile cases with SEED={args.seed}", flush=True)
    logging.disable()
    warnings.simplefilter("ignore")  # of zipfile, about names that stand twice
    failed = 0
    with impatient(), tempfile.TemporaryDirectory() as scratch:
        model = made_model(Path(scratch) / "model")
        for kind in [args.only] if args.only else CASES:
            numbers = range(1, getattr(args, kind) + 1) if args.case is None else [args.case]
            ends = Counter[str]()
            for number, end in run(kind, args.seed, numbers, model):
                ends[end.partition(":")[0]] += 1
                if end not in ("read", "refused"):
                    failed += 1
                    print(f"{kind} {number}: {end}", flush=True)
            print(f"{kind}: {len(numbers)} cases; " + ", ".join(f"{end} {count}" for end, count in ends.items()))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
