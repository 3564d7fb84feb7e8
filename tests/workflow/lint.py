"""Fails on what `snakemake --lint` found, but for one advice that this workflow does not follow.

    snakemake --lint 2>&1 | python tests/workflow/lint.py

Every rule runs in the environment that Snakemake itself runs in, which `make env` makes: an environment a rule would be
a second description of the same one, used by nobody.
"""

import sys

NOT_FOLLOWED = "* Specify a conda environment or container for each rule.:"


def remaining(output: str) -> list[str]:
    """Every lint that counts, and every error."""
    found, rule = [], ""
    for line in output.splitlines():
        if line.startswith("Lints for "):
            rule = line
        elif line.strip().startswith("* ") and line.strip() != NOT_FOLLOWED:
            found.append(f"{rule} {line.strip()}")
        elif "Error" in line:
            found.append(line)
    return found


if __name__ == "__main__":
    text = sys.stdin.read()
    lines = remaining(text)
    print("\n".join(lines) or "snakemake --lint: nothing found")
    sys.exit(bool(lines) or NOT_FOLLOWED not in text)  # silence would mean that it did not run
