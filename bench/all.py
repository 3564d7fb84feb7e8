"""Run all CPU benchmarks of docs/measured/cpu-speed.md against plain PyTorch and, if installed, CTranslate2.

    python bench/all.py
    python bench/all.py --rounds 3 --threads 1

Each measurement prints one line: its name, a figure, and the speedup over the rival. With one thread, figures are CPU
time, so other load on the machine matters little. Rivals take turns within a round, so that a slow moment affects all.
The goals are for two quiet cores of an AMD EPYC.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

BENCH = Path(__file__).parent
Row = tuple[str, str, str, str]
"""Columns: name, figure, ratio to its rival, and goal."""
GOALS = {
    "transformer fp32": "2 x plain",
    "transformer bf16": "4 x plain in float32",
    "split": "at most 1.15 x the Transformer's step",
    "literal": "at most 1.3 x its operations",
    "ours fp32": "1 x CTranslate2",
    "ours bf16": "1.2 x CTranslate2",
    "ctc": "134 times real time",
    "attention": "506 times real time",
    "joint": "400 times real time",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    common = ["--threads", str(args.threads), "--rounds", str(args.rounds)]
    print("| what | figure | ratio | goal |\n|---|---|---|---|")
    for row in rows(common, "cpu_ratio" if args.threads == 1 else "ratio"):
        print(f"| {' | '.join(row)} |", flush=True)


def rows(common: list[str], ratio: str) -> Iterator[Row]:
    for line in lines("train_step.py", *common):
        yield training(line, ratio)
    for line in lines("train_step.py", "--shape", "demo", *common):
        name, updates = line["system"], 1 / line["best_cpu_s" if ratio == "cpu_ratio" else "step_s"]
        yield f"demo, {name}", f"{updates:.0f} updates/s", f"{line[f'{ratio}_plain_fp32']} x plain", ""
    for line in lines("train_recognisers.py", *common):
        heard = f"{line['times_real_time_a_core']} times real time a core"
        yield (
            f"recogniser, {line['system']}",
            heard,
            f"{line[f'{ratio}_plain']} x plain",
            GOALS.get(line["system"].split()[0], ""),
        )
    for shape, sentences in (("small", 100), ("base", 25)):
        for line in lines("decode.py", "--shape", shape, "--sentences", str(sentences), *common):
            rate, rivals = f"{line['sentences_per_second']} sentences/s", f"{line['ratio']} x plain"
            if "ratio_ct2" in line:
                rivals += f", {line['ratio_ct2']} x CTranslate2"
            yield f"beam 4, {shape}, {line['search']}", rate, rivals, GOALS.get(line["search"], "")
    for line in lines("train_recurrent.py", *common):
        if "best_cpu_s" in line:
            name = f"recurrent, {line['system']} {line['precision']}"
            yield name, f"{line['best_cpu_s']} s a step", f"{line[f'{ratio}_plain']} x plain", ""
    for line in lines("batched_seeds.py"):
        goal = "" if line["system"].endswith(" 1") else "half of one alone"
        yield f"seeds at once, {line['system']}", f"{line['of_one_seed_ms']} ms a seed's update", "", goal


def training(line: dict, ratio: str) -> Row:
    name, figure = line["system"], f"{line['target_tokens_per_s']} tokens/s"
    rivals = f"{line[f'{ratio}_plain_fp32']} x plain in float32"
    if "share_of_floor" in line:
        figure += f", {line['share_of_floor']} of its products' floor"
    if f"{ratio}_transformer" in line:
        rivals += f", {1 / line[f'{ratio}_transformer']:.2f} x the Transformer's step, "
        rivals += f"{line['over_operations']} x its operations"
    return f"training, {name}", figure, rivals, GOALS.get(name, GOALS.get(name.split()[0], ""))


def lines(script: str, *arguments: str) -> Iterator[dict]:
    """Run a bench and yield its lines as it prints them."""
    with subprocess.Popen([sys.executable, BENCH / script, *arguments], stdout=subprocess.PIPE, text=True) as bench:
        yield from map(json.loads, bench.stdout or ())
    if bench.returncode:
        raise SystemExit(f"{script} failed")


if __name__ == "__main__":
    main()
