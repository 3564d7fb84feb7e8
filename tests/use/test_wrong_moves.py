"""Wrong commands, folders and files of datasets end in one line with the fault and the remedy."""

import re
import shutil
from pathlib import Path

import pytest
import yaml
from fabricated import touch
from real_project import ROOT, load_once, real_project

import reprise
from pipeline.core.errors import UserError
from pipeline.core.layout import RUN_FILE, WEIGHTS_FILE
from pipeline.core.program import Parser
from pipeline.papers.project import load_project, require_project
from pipeline.workflow.graph import Graph, datasets_in
from pipeline.workflow.rules import RuleFunctions
from reprise.__main__ import main

WRONG = {
    "archive": (["translate", "base.tar"], "base.tar: neither a folder nor .*first `reprise unpack`"),
    "archive in a folder": (["translate", "/tmp/a.tar"], "/tmp/a.tar: neither a folder nor .*first `reprise unpack`"),
    "no scores": (
        ["show", "multichannel", "table3"],
        r"table3: is no table of scores; `snakemake \S* ?-- \S+/table3.md` writes",
    ),
    "misspelt paper": (["show", "atention"], "TARGET: unknown name 'atention'; allowed: .*did you mean 'attention'"),
    "misspelt table": (["show", "tabel3"], "TARGET: unknown name 'tabel3'; allowed: .*did you mean 'table3'"),
    "misspelt table of a paper": (
        ["show", "attention", "tabel3"],
        "attention TABLE: unknown name 'tabel3'; allowed: claims, .*did you mean 'table3'",
    ),
    "table of no paper": (["show", "table2", "table3"], "TARGET: unknown name 'table2'; allowed: anchors, "),
    "file of another scale": (
        ["show", "--set", "scale=demo", "results/small/attention/table3.csv"],
        "the configured scale is demo; add .*--set scale=small",
    ),
    "no recording": (["transcribe", "coldfusion/ctc", "config.yaml", "no.wav"], "^error: no.wav: no such file"),
    "no archive": (["unpack", "base.tar"], "base.tar: no such file; `reprise pack RUN FILE.tar` writes one"),
    "folder": (["new", "dataset", "calls", "--recordings", "."], r"\.: is a folder; name a table with the columns"),
    "setting as target": (
        ["make", "--set", "scale=small", "mirror=/files", "weighted"],
        "mirror=/files: is a setting; write `--set mirror=/files`, with one --set for each",
    ),
    "setting as paper": (["status", "--set", "scale=demo", "seeds=2"], "seeds=2: is a setting; write `--set seeds=2`"),
    "setting as run": (["translate", "--set", "scale=demo", "seeds=1", "a/b"], "seeds=1: is a setting; write `--set"),
    "setting as file": (
        ["pack", "a/b", "paper=x.tar"],
        "paper=x.tar: is a setting; .*with one --set for each; write `./paper=x.tar` if it is a file",
    ),
    "setting as file with a space": (
        ["pack", "a/b", "paper=my x.tar"],
        "paper=my x.tar: is a setting; write `--set 'paper=my x.tar'`.*; write `'./paper=my x.tar'` if it is a file",
    ),
    "setting too many": (["compare", "a", "b", "--set", "scale=demo", "seeds=1"], "seeds=1: is a setting; write"),
    "setting with a space": (["verify", "work=my dir"], "work=my dir: is a setting; write `--set 'work=my dir'`"),
    "dataset of other papers": (
        ["translate", "attention/base/wmt14-de-en", "--set", "scale=demo"],
        "datasets of base at scale demo: unknown name 'wmt14-de-en'; allowed: grammar-en-de, .*, wmt14-en-de, ",
    ),
    "no table": (
        ["new", "dataset", "calls", "--recordings", "calls.tsv"],
        "^error: calls.tsv: can't be read: No such file or directory; name a table in UTF-8 with the columns",
    ),
    "zero seeds": (["status", "--set", "seeds=0"], "seeds: Input should be a valid list or greater than or equal to 1"),
    "no cores": (["make", "weighted", "--cores", "zero"], "--cores zero: must be a number, at least 1, or `all`"),
    "brace": (["status", "--set", "work='a{b'"], "work: 'a{b': no rule can have a brace or a line break in a path"),
    "no mapping": (["status", "--set", "licensed=/corpora"], "licensed: Input should be a mapping, {key: value}"),
}
UNKNOWN_OPTIONS = {
    "setting as option": (["status", "--scale", "small"], "--scale; for a key of config.yaml, write `--set scale=…`"),
    "misspelt": (["verify", "--repiar"], "--repiar; did you mean '--repair'?"),
    "no setting": (["unlock", "--to", "de"], "--to de; options are --help, --force"),
    "neither": (["verify", "--to=de"], "--to=de; options are --help, --root, --set, --repair"),
    "of snakemake": (["status", "--config", "scale=small"], "--config; write `--set KEY=VALUE` for each setting"),
    "word": (["unlock", "table2"], "table2; options are --help, --force"),
}
"""Arguments that argparse itself refuses: it prints the usage first."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("workflow", "config.yaml", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    load_once(monkeypatch, tmp_path, ROOT)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_argument_is_explained_in_one_line(name, folder, capsys):
    arguments, message = WRONG[name]
    assert main(arguments) == 1
    (error,) = capsys.readouterr().err.splitlines()
    with pytest.raises(UserError, match=message):
        raise UserError(error)


@pytest.mark.parametrize(
    ("words", "end"),
    [
        ([], "error: name a command; `reprise --help` lists them\n"),
        (["pack", "attention/base"], "required: OUT; OUT: Folder to write, or a file NAME.tar\n"),
        (
            ["new"],
            "required: {dataset,paper}, NAME; {dataset,paper}: Kind of thing to create; NAME: Lower-case letters, "
            "digits and `-`\n",
        ),
        (["translat"], "unknown command 'translat'; did you mean 'translate'?; `reprise --help` lists the commands\n"),
        (
            ["weighted"],
            "unknown command 'weighted'; to make that paper, write `reprise make weighted`; `reprise --help` lists the "
            "commands\n",
        ),
        (["help"], "unknown command 'help'; `reprise --help` lists the commands\n"),
        (
            ["--set", "scale=small", "status"],
            "--set: name the command before its options; `reprise --help` lists the commands\n",
        ),
        (["--", "status"], "--: name the command before its options; `reprise --help` lists the commands\n"),
    ],
)
def test_missing_or_unknown_word_is_named_with_its_remedy(words, end, folder, capsys):
    with pytest.raises(SystemExit, match=r"^2$"):
        main(words)
    assert capsys.readouterr().err.endswith(end)


@pytest.mark.parametrize("name", UNKNOWN_OPTIONS)
def test_unknown_option_is_explained_after_the_usage(name, folder, capsys):
    arguments, message = UNKNOWN_OPTIONS[name]
    with pytest.raises(SystemExit, match=r"^2$"):
        main(arguments)
    command = f"reprise {arguments[0]}"
    usage, _, error = capsys.readouterr().err.partition(f"\n{command}: ")
    assert usage.startswith(f"usage: {command} ")
    assert error == f"error: unrecognized arguments: {message}\n"


def test_file_named_like_a_setting_is_no_setting(folder, tmp_path, capsys):
    arguments = ["translate", "attention/none", "work=x.txt"]
    for word, is_setting in (("work=x.txt", True), ("./work=x.txt", False)):
        assert main([*arguments[:2], word]) == 1
        assert ("is a setting" in capsys.readouterr().err) is is_setting
    (tmp_path / "work=x.txt").touch()
    assert main(arguments) == 1
    assert "is a setting" not in capsys.readouterr().err


def test_help_of_a_missing_argument_has_single_percent_signs(capsys):
    parser = Parser()
    parser.add_argument("share", metavar="SHARE", help="Share in %%")
    with pytest.raises(SystemExit):
        parser.parse_args([])
    assert capsys.readouterr().err.endswith("; SHARE: Share in %\n")


@pytest.mark.parametrize(
    ("target", "remedy"),
    [
        ("Table2", "write results/table2.csv"),
        ("table2.csv", "write results/table2.csv"),
        ("figure3", "write results/demo/weighted/figure3.svg"),
        ("scale=small", "is a setting; write `--config scale=small --` before the targets"),
        ("weighted.html", "such as results/table2.csv, and results/site/index.html"),
        ("results/demo/weighted", "or the paper: `snakemake -- weighted`"),
        ("results/small/weighted", "or --set scale=small (reprise)"),
    ],
)
def test_name_or_folder_of_a_result_is_corrected(target, remedy):
    rules = RuleFunctions(real_project())
    assert re.fullmatch(rules.unknown_targets(), target)
    with pytest.raises(UserError) as raised:
        rules.refuse_target({"target": target})
    assert str(raised.value).endswith(remedy) and rules.refusal == str(raised.value)


def test_file_with_an_ending_that_no_rule_makes_is_refused():
    made = ("demo/weighted/table2.csv", "demo/weighted/figure2.svg", "demo/attention/table1.svg", "table2.md")
    unmade = ["demo/weighted/table2.pdf", "demo/weighted/table2.svg", "table2.svg"]
    pattern = RuleFunctions(real_project()).unknown_targets()
    assert [name for name in (*made, *unmade) if re.fullmatch(pattern, f"results/{name}")] == unmade


FAULTY = "grammar-smoke-trees"
WITH_ROOT = [["show"], ["verify"], ["free"], ["site"]]


@pytest.mark.parametrize(
    "words",
    [["status"], ["results"], ["translate", "attention/base"], ["make", "all"], ["new", "paper", "mine"], *WITH_ROOT],
)
def test_no_command_takes_another_folder_for_an_empty_project(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 1
    said = capsys.readouterr().err
    assert "error: no project here" in said
    assert ("or name the folder of a run or model" in said) is (words[0] == "translate")
    assert not list(tmp_path.iterdir())
    if words in WITH_ROOT:
        assert main([*words, "--root", str(tmp_path)]) == 1
        assert f"error: no project in {tmp_path}" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["status"], ["make", "all"], ["free", "--remove", "old-runs"]])
def test_no_command_works_on_a_clone_with_code_of_its_own(tmp_path, monkeypatch, capsys, words):
    """Other code may take all runs of the clone for old ones."""
    for name in ("config.yaml", "workflow/papers/README.md", "pipeline/__init__.py"):
        touch(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert main(words) == 1
    assert f"error: this program has the code of {ROOT}, and the project here has its own" in capsys.readouterr().err
    shutil.rmtree("pipeline")
    shutil.copytree(ROOT / "pipeline", "pipeline")
    require_project(Path(), "")


def test_run_with_other_settings_is_reported_and_not_used(root, refused):
    project = load_project(root, {"scale": "smoke"})
    run = project.runs_of("attention", "base", "wmt14-en-de")[0]
    old = project.layout.run(run).with_name("seed1-0123 abcd")
    touch(old / WEIGHTS_FILE)
    for name in ("attention/base/wmt14-en-de", "attention/base"):
        said = refused("translate", name, "--set", "scale=smoke")
        assert "seed1-0123 abcd is trained: name this folder to use it" in said
    (old / RUN_FILE).write_text(yaml.safe_dump(project.run_yaml(run)))
    said = refused("compare", old, old, "--set", "scale=smoke")
    assert f"trained, not decoded; no current report reads it; `reprise score '{old}' --split test" in said


def test_faulty_dataset_blocks_only_the_reports_that_need_it(root, caplog, capsys):
    graph = Graph(load_project(root, {"scale": "smoke"}))
    reports = graph.reports(graph.project.papers)
    without = [report for report in reports if FAULTY not in datasets_in(graph.closure([report]))]
    misspell_kind(root, FAULTY)
    broken = Graph(load_project(root, {"scale": "smoke"}))
    found = broken.readable(broken.project.papers)
    names = [[(type(report), report.paper) for report in each] for each in (found, without)]
    assert names[0] == names[1] and 0 < len(without) < len(reports)
    assert f"{FAULTY}.yaml: missing key 'kind'; artifacts that need this dataset are left out" in caplog.text
    assert main(["status", "--no-forecast", "--set", "scale=smoke"]) == 0
    assert "no Snakemake is running; to continue: " in capsys.readouterr().out


def misspell_kind(root, dataset):
    path = root / f"workflow/datasets/{dataset}.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("kind:", "knd:", 1), encoding="utf-8")


def test_command_on_a_faulty_dataset_reports_its_fault(root, refused):
    misspell_kind(root, "grammar-smoke-en-de")
    for command, name in (
        ("results", "weighted"),
        ("translate", "attention/base"),
        ("translate", "attention/base/wmt14-en-de"),
    ):
        assert "grammar-smoke-en-de" in refused(command, name, "--set", "scale=smoke")


def test_a_notebook_completes_what_is_here_by_name():
    assert {"open_run", "table", "claims", "curves"} <= set(dir(reprise))
