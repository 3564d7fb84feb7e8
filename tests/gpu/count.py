"""Count every case on fake CUDA tensors and print a table of them; `--show CASE` says by which operators and where.

    PYTHONPATH=.:tests/helpers python tests/gpu/count.py [--show "base, 8 GPUs"]

A process of its own: torch must know its fake device before it is imported.
"""

import argparse
import csv
import gc
import sys
import tempfile
from pathlib import Path

import fake_device
from cases import DECODINGS, TRAININGS
from roofline import CARDS, device_seconds, update_seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--show", help="the case to say more of")
    shown = parser.parse_args().show
    with tempfile.TemporaryDirectory() as folder:
        fake_device.load(fake_device.build(Path(folder)))
        import decodings
        import trainings

        gc.freeze()
        gc.set_threshold(100_000)  # else it takes an eighth of the processor time
        counts = {name: trainings.count(case) for name, case in TRAININGS.items() if shown in (None, name)}
        counts |= {name: decodings.count(case) for name, case in DECODINGS.items() if shown in (None, name)}
    if shown:
        show(counts[shown])
    table = csv.DictWriter(sys.stdout, ["case", *next(iter(counts.values())).row()], lineterminator="\n")
    table.writeheader()
    table.writerows({"case": name} | found.row() for name, found in counts.items())


def show(counts) -> None:
    for what in (counts.operators, counts.places):
        print(*(f"{number:6} {name}" for name, number in what.most_common()), sep="\n", file=sys.stderr)
    for card in CARDS:
        taken = f"{1e3 * update_seconds(counts.kernels, CARDS[card]):.1f} ms"
        print(
            f"{card}: {taken}, of them {1e3 * device_seconds(counts.kernels, CARDS[card]):.1f} on the device",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
