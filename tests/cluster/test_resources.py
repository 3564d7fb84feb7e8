"""Resources are handed on as they were written, or refused with a reason."""

import re
from dataclasses import fields

import pytest

from pipeline.cluster.resources import ResourceOptions, Resources, parse_options
from pipeline.core.errors import UserError
from pipeline.stages import parse


def resources(*options: str) -> Resources:
    """The resources that the options of `launch` ask for."""
    args = parse(["launch", "--run", "x", *options])
    return ResourceOptions(**{field.name: getattr(args, field.name) for field in fields(ResourceOptions)}).resources()


def test_gpus_are_spread_over_nodes_with_one_task_each():
    asked = resources("--gpus", "8", "--nodes", "2").as_submitit()
    assert (asked["nodes"], asked["ntasks_per_node"], asked["gpus_per_node"]) == (2, 4, 4)
    assert resources().as_submitit()["gpus_per_node"] is None


@pytest.mark.parametrize(
    ("gres", "gpus", "nodes", "asked", "tasks"),
    [
        ("gpu:a100:8", "8", "1", "gpu:a100:8", 8),
        ("gpu:a100:8", "1", "1", "gpu:a100:1", 1),
        ("gpu:a100:8", "0", "1", None, 1),
        ("gpu:h100:4", "8", "1", "gpu:h100:4", 4),
        ("gpu:h100:4", "8", "2", "gpu:h100:4", 4),
        ("gpu:h100", "8", "1", "gpu:h100:8", 8),
        ("gpu:4", "8", "1", "gpu:4", 4),
        ("gpu", "2", "1", "gpu:2", 2),
        ("gpu:1g.10gb:7", "1", "1", "gpu:1g.10gb:1", 1),
        ("gpu:a100:8(S:0-1)", "8", "1", "gpu:a100:8", 8),
    ],
)
def test_gpus_have_the_site_type_and_at_most_a_node_of_them(gres, gpus, nodes, asked, tasks):
    given = resources("--gpus", gpus, "--nodes", nodes, f"--sbatch=--partition=p --gres={gres}").as_submitit()
    assert (given["additional_parameters"].get("gres"), given["gpus_per_node"]) == (asked, None)
    assert (given["ntasks_per_node"], given["nodes"]) == (tasks, int(nodes))


@pytest.mark.parametrize(
    ("gres", "gpus", "asked"),
    [
        ("gpu:a100:4,tmpdisk:100", "1", "gpu:a100:1,tmpdisk:100"),
        ("nvme:100,gpu:v100:1,craynetwork:0", "8", "gpu:v100:1,nvme:100,craynetwork:0"),
        ("gpu:a100:4(S:0,2),tmpdisk:100G", "2", "gpu:a100:2,tmpdisk:100G"),
        ("gpu,gpu_mem:40G", "2", "gpu:2,gpu_mem:40G"),
        ("gpu:a100:4,tmpdisk:100", "0", "tmpdisk:100"),
    ],
)
def test_other_gres_of_a_site_are_requested_unchanged(gres, gpus, asked):
    given = resources("--gpus", gpus, f"--sbatch=--gres={gres}").as_submitit()
    assert (given["additional_parameters"]["gres"], given["gpus_per_node"]) == (asked, None)


@pytest.mark.parametrize(
    "gres", ["gpu:a100:4,gpu:v100:4", "tmpdisk:100", "gpu:a100:four:4", "gpu:a100:4 ", "a100:8", ""]
)
def test_gres_without_one_kind_of_gpu_are_refused_in_words(gres):
    with pytest.raises(UserError, match=re.escape(f"--gres={gres}: name one kind of GPU, as gpu:TYPE:NUMBER")):
        resources("--gpus", "1", f"--sbatch='--gres={gres}'")


@pytest.mark.parametrize("options", [("--gpus", "3", "--nodes", "2"), ("--tasks", "3", "--nodes", "2")])
def test_uneven_spread_is_refused(options):
    with pytest.raises(UserError, match="can't be spread evenly"):
        resources(*options)


@pytest.mark.parametrize(("minutes", "warning_s"), [(1, 10), (6, 60), (18, 180), (1440, 180)])
def test_warning_leaves_most_of_a_short_limit(minutes, warning_s):
    assert resources("--runtime-min", str(minutes)).warning_s == warning_s


def test_further_options_reach_sbatch():
    asked = resources("--sbatch=--qos=long --exclusive --comment='two words'").as_submitit()
    wanted = {"requeue": True, "qos": "long", "exclusive": True, "comment": "two words"}
    assert asked["additional_parameters"] == wanted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-q long", "'-q'"),
        ("--comment='two words", "No closing quotation"),
        ("--gres=gpu:a100:8 --gres=tmpdisk:100", "'--gres': is repeated"),
    ],
)
def test_options_that_sbatch_would_misread_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        parse_options(options)


def test_site_excludes_are_kept_beside_unfit_nodes():
    asked = resources("--sbatch=--partition=p --exclude=bad1,bad2").as_submitit(["n7", "n8"])
    assert asked["exclude"] == "bad1,bad2,n7,n8" and "exclude" not in asked["additional_parameters"]
    assert resources().as_submitit()["exclude"] is None
