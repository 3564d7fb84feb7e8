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


def test_cpu_job_asks_for_no_gpu():
    assert resources().as_submitit()["gpus_per_node"] is None


@pytest.mark.parametrize(
    ("gres", "gpus", "asked", "tasks"),
    [
        ("gpu:a100:8", "8", "gpu:a100:8", 8),
        ("gpu:a100:8", "1", "gpu:a100:1", 1),
        ("gpu:h100:4", "8", "gpu:h100:4", 4),
        ("gpu:h100", "8", "gpu:h100:8", 8),
        ("gpu:4", "8", "gpu:4", 4),
        ("gpu", "2", "gpu:2", 2),
        ("gpu:1g.10gb:7", "1", "gpu:1g.10gb:1", 1),
        ("gpu:a100:8(S:0-1)", "8", "gpu:a100:8", 8),
    ],
)
def test_gpus_have_the_site_type_and_at_most_a_node_of_them(gres, gpus, asked, tasks):
    given = resources("--gpus", gpus, f"--sbatch=--partition=p --gres={gres}").as_submitit()
    assert (given["additional_parameters"]["gres"], given["gpus_per_node"], given["ntasks_per_node"]) == (
        *(asked, None, tasks),
    )


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


def test_two_nodes_of_four_hold_eight():
    given = resources("--gpus", "8", "--nodes", "2", "--sbatch=--gres=gpu:h100:4").as_submitit()
    assert (given["additional_parameters"]["gres"], given["ntasks_per_node"], given["nodes"]) == ("gpu:h100:4", 4, 2)


def test_a_job_without_gpus_asks_for_none_of_a_type():
    assert "gres" not in resources("--sbatch=--gres=gpu:a100:8").as_submitit()["additional_parameters"]


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


def test_misspelt_option_is_refused():
    with pytest.raises(UserError, match="'-q'"):
        parse_options("-q long")


def test_an_option_whose_quotes_are_left_open_is_refused():
    with pytest.raises(UserError, match="No closing quotation"):
        parse_options("--comment='two words")


def test_an_option_that_comes_twice_is_refused():
    with pytest.raises(UserError, match="'--gres': is repeated"):
        parse_options("--gres=gpu:a100:8 --gres=tmpdisk:100")


def test_site_excludes_are_kept_beside_unfit_nodes():
    asked = resources("--sbatch=--partition=p --exclude=bad1,bad2").as_submitit(["n7", "n8"])
    assert asked["exclude"] == "bad1,bad2,n7,n8" and "exclude" not in asked["additional_parameters"]
    assert resources().as_submitit()["exclude"] is None
