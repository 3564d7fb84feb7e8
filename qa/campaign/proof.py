"""Two campaigns of one project: one undisturbed on this machine, one through Slurm with faults."""

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from subprocess import run

from pipeline.cluster.state import read_starts
from pipeline.core.artifacts import Artifact
from pipeline.core.provenance import ROOT
from qa.campaign.campaign import Campaign, Watch
from qa.campaign.checks import contradictions, differing, steps_done_twice, too_often
from qa.campaign.faults import NODES, Fault, clock_step
from qa.campaign.project import make_project, set_paces
from qa.campaign.served import served
from qa.campaign.weather import Weather

sys.path.append(str(ROOT / "tests/helpers"))
from warm import warm_programs

HERE = ("--cores", "2", "--config", "scale=paper")


@dataclass
class Proof:
    """The outcome: unexplained `problems`, none if all is well, and `counts` of events."""

    problems: list[str]
    counts: dict[str, object]


def fetched_projects(
    folder: Path, seconds: Callable[[str], float], targets: tuple[Artifact, ...] = ()
) -> tuple[Path, Path]:
    """Make two projects (calm, struck) with all data fetched. From then on there is no server, and none may be needed.

    Args:
        folder: To make them in.
        seconds: How long a training of `struck` takes, by paper/system/dataset/seed1.
        targets: What data is needed for; all reports if there are none.
    """
    archives = folder / "archives"
    with served(archives) as address:
        struck = make_project(folder / "struck", archives, address, targets)
        fetching = Campaign(struck, targets)
        fetching.targets = fetching.raw if targets else ["fetch"]
        fetching.drive(*HERE)
    calm = folder / "calm"
    shutil.copytree(struck, calm, symlinks=True)
    set_paces(calm, lambda _: 0.0)
    set_paces(struck, seconds)
    return calm, struck


def nodes_that_reach_servers_here(folder: Path) -> list[str]:
    """Return whether nodes reach servers on this machine; false if they have a network of their own."""
    with served(folder) as address:
        connect = f"(exec 3<>/dev/tcp/{address.removeprefix('http://').replace(':', '/')}) 2>/dev/null && echo reached"
        asked = f"{connect}; cut -f 2 /proc/net/route | grep -x 00000000; echo asked"  # a default route
        said = {
            node: run(["srun", f"--nodelist={node}", "bash", "-c", asked], capture_output=True, text=True, check=True)
            for node in NODES
        }
        return [node for node, done in said.items() if done.stdout != "asked\n"]


def undisturbed(calm: Path, targets: tuple[Artifact, ...]) -> Path:
    """Run the undisturbed campaign, and return its folder.

    Raises:
        AssertionError: It did not end well at the first start.
    """
    campaign = Campaign(calm, targets, warm_programs(calm))
    campaign.drive(*HERE)
    assert campaign.lives == [0], campaign.lives
    return calm


def prove(
    struck: Path,
    calm: Callable[[], Path],
    targets: tuple[Artifact, ...],
    faults: Sequence[Fault],
    looks: int,
    seed: int,
) -> Proof:
    """Disturb the campaign in `struck` by faults and a training that always fails, and compare it with a calm one.

    Args:
        struck: Folder of the project to disturb.
        calm: Returns the folder of the undisturbed campaign once that has ended.
        targets: What both make.
        faults: What happens, in random order.
        looks: How often partial reports are read while it runs.
        seed: Of the order and the moments of the faults.
    """
    campaign = Campaign(struck, targets)
    campaign.let_fail(Random(seed).choice(campaign.alone()))
    if clock_step in faults:
        campaign.let_clock_be_set()
    networked = nodes_that_reach_servers_here(struck.parent / "archives")
    watch, weather = Watch(), Weather(campaign, faults, looks, seed)
    try:
        watch.start()
        weather.start()
        campaign.drive()
        weather.end()
    finally:
        campaign.end()
        watch.stop()
    problems = [f"two jobs at a time: {name}" for name in sorted(watch.doubled)]
    problems += [*too_often(campaign), *differing(campaign, calm()), *contradictions(weather.seen, campaign)]
    return Proof(problems, counts_of(campaign, weather, watch) | {"nodes with a network": len(networked)})


def counts_of(campaign: Campaign, weather: Weather, watch: Watch) -> dict[str, object]:
    lines = [line for folder in campaign.runs.values() for line in read_starts(folder)]
    submitted = [len(campaign.jobs(run)) for run in campaign.runs]
    return {
        "trainings": len(campaign.runs),
        "of them failing for ever": campaign.broken.folder,
        **{f"fault: {name}": count for name, count in sorted(weather.struck.items())},
        "faults that came too late": len(weather.events) - weather.struck.total() - len(weather.seen),
        "looks at partial reports": len(weather.seen),
        "lives of the driver": len(campaign.lives),
        "jobs submitted for trainings": sum(submitted),
        "of them ended by Slurm or dead without a word": sum(len(campaign.mute(run)) for run in campaign.runs),
        "trainings submitted more than once": sum(count > 1 for count in submitted),
        "starts of trainings": sum(line.event == "start" for line in lines),
        "updates computed twice": steps_done_twice(campaign),
        "jobs that ran at a time, at most": watch.most,
        "crashes of the controller by itself": watch.crashes,
        "reports": len(campaign.reports),
    }
