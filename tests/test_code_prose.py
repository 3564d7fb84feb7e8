"""Check that docstrings, comments and messages in code are plain English, and that commit subjects are short."""

import ast
import io
import re
import shutil
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from prose import BANNED, long_sentences
from syntax import statements

from pipeline.core.provenance import ROOT

FOLDERS = ("pipeline", "reprise", "qa", "workflow")
FILES = [ROOT / "Snakefile", ROOT / "workflow" / "Snakefile"]
FILES += sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".smk"))
FRAGMENT = re.compile(r"(Of|What|Whether|Where|Those|That|As|By|With|Which|How)\b")
"""First words of a clause that depends on another."""
SECTION = re.compile(r"^ *(Args|Returns|Raises|Yields):$", re.MULTILINE)
ITEM = re.compile(r"\n\s*\n|\n\s*(?=[-*|] |\d+\. |[\w*, ]+: )")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
CHECKED_SINCE = "4c2e80fe"
"""Commit of release 0.2.0; subjects of earlier commits are exempt."""
LONGEST_SUBJECT = 72


def comments(source: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def strings(module: ast.Module) -> list[str]:
    """Return the strings of a module that have two words or more, without the names in f-strings."""
    found = [node.value for node in ast.walk(module) if isinstance(node, ast.Constant)]
    return [text for text in found if isinstance(text, str) and len(text.split()) > 1]


def docstrings(module: ast.Module) -> Iterator[str]:
    """Yield the docstrings of a module, and the strings that document its constants."""
    for node in statements(module):
        for line in node.body if isinstance(node, DOCUMENTED) else []:
            match line:
                case ast.Expr(ast.Constant(str(text))):
                    yield text


def paragraphs(docstring: str) -> list[str]:
    """Return the paragraphs, items and described arguments of a docstring, without tables and code."""
    found = ITEM.split(SECTION.sub("", docstring))
    return [text for text in found if not re.search(r"\S {2,}\S|^\s*\||\\\n", text)]


def faults(path: Path) -> list[str]:
    """Return banned words, long sentences and fragments in the texts of a file."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        module = ast.parse(source)
        documentation, texts = list(docstrings(module)), strings(module)
    else:
        documentation = texts = re.findall(r'"""(.*?)"""', source, re.DOTALL)
    return banned_in_comments(source) + banned(texts) + faults_of_documentation(documentation)


def banned_in_comments(source: str) -> list[str]:
    """Return the banned words in comments; a source without any after a `#` is not split into tokens, which is slow."""
    after = (line.partition("#")[2] for line in source.split("\n"))
    return banned(comments(source)) if any(map(BANNED.search, after)) else []


def banned(texts: list[str]) -> list[str]:
    """Return the banned words in texts, each with the beginning of its text."""
    return [f"{match.group()}: {text.strip()[:100]}" for text in texts for match in BANNED.finditer(text)]


def faults_of_documentation(documentation: list[str]) -> list[str]:
    """Return long sentences and fragments in docstrings."""
    found = [sentence for text in documentation for part in paragraphs(text) for sentence in long_sentences(part)]
    return found + [text.splitlines()[0] for text in documentation if FRAGMENT.match(text)]


def test_texts_of_code_files_are_plain_english():
    found = {str(path.relative_to(ROOT)): faults(path) for path in FILES}
    assert len(found) > 300 and {name: faults for name, faults in found.items() if faults} == {}


@pytest.mark.parametrize("folder", ["tests", "bench"])
def test_docstrings_and_comments_of_tests_are_plain_english(folder):
    """Their other strings quote messages and data."""
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        texts = list(docstrings(ast.parse(source)))
        found[path.name] = banned_in_comments(source) + banned(texts) + faults_of_documentation(texts)
    assert len(found) > 10 and {name: faults for name, faults in found.items() if faults} == {}


def test_faults_in_texts_of_code_are_found(tmp_path):
    (tmp_path / "toy.py").write_text(
        f'"""Whether it works."""\n\ntold = f"{{told}} was told"  # made anew\nLIMIT = 1\n"""{"word " * 33}ends."""\n'
        'def said(tell):\n    """Foretell.\n\n    Args:\n        tell: What is said.\n    """\n    return "told"\n'
    )
    found = faults(tmp_path / "toy.py")
    assert [fault.split(":")[0] for fault in found[:4]] == ["anew", "told", "tell", "said"]
    assert [len(fault.split()) for fault in found[4:]] == [34, 3]


def test_faults_in_a_rule_are_found(tmp_path):
    (tmp_path / "toy.smk").write_text('rule toy:  # is told\n    """By heart."""\n    shell: "told"\n')
    assert [fault.split(":")[0] for fault in faults(tmp_path / "toy.smk")] == ["told", "By heart", "By heart."]


def git(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)


def long_subjects(since: str, folder: Path = ROOT) -> list[str]:
    """Return the subjects of the commits after one that have too many characters, merges apart."""
    listed = git("log", "--no-merges", "--format=%s", f"{since}..HEAD", folder=folder)
    assert listed.returncode == 0, listed.stderr
    return [subject for subject in listed.stdout.splitlines() if len(subject) > LONGEST_SUBJECT]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_long_commit_subject_is_found(tmp_path):
    git("init", "-q", folder=tmp_path)
    for subject in ("a" * 73, "b" * 72, "c" * 73):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "core.hooksPath=")
        git(*identity, "commit", "-q", "--allow-empty", "-m", subject, folder=tmp_path)
    assert long_subjects("HEAD~2", tmp_path) == ["c" * 73]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_commit_subjects_have_at_most_72_characters():
    if git("merge-base", "--is-ancestor", CHECKED_SINCE, "HEAD").returncode:
        pytest.skip(f"no history back to {CHECKED_SINCE}: an export or a shallow clone")
    assert long_subjects(CHECKED_SINCE) == []
