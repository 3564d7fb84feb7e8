# make demo           set up, build results/table2.csv and the site from built-in data
# make test           set up, run the test suite (before each commit)
# make unit           run the fast tests (while you work)
# make check          check format, lint, types and the order of imports
# make env            set up the environment .venv
# make docs           build the documentation site in public/
# make clean          remove the site, and the copies of the configured paper's reports in results/
# make remove-work    remove all trained models, corpora and downloads in work/
# make qa             run chaos, campaign and qa-tests, and mutants if PACKAGE is set (hours)
# make chaos          inject faults into every stage for MINUTES
# make campaign       run all papers through Slurm under faults (as root)
# make qa-tests       run the tests that `make test` leaves out
# make mutants        mutate PACKAGE and report which changes the tests miss
# make oldest newest  run the fast tests with the oldest or newest packages
# make lock           pin the newest versions in requirements.txt
SHELL := /bin/bash
# the first suitable Python; `make PYTHON=…` chooses another
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
UV := uv==0.13.9
# an exact version, or pip takes the newest CUDA build; no checksums, because builds differ between machines
TORCH := torch==2.13.0
# tests of Snakemake, Slurm or the browser, and tests that kill or extend many trainings
NOT_FAST := workflow cluster qa use site planning/test_free.py \
	$(addprefix training/test_,captured_steps.py survival.py warm_start.py)
FAST := -m "not slow and not cluster and not qa" $(addprefix --ignore tests/,$(NOT_FAST))
export PATH := $(CURDIR)/$(BIN):$(PATH)
# hundreds of processes import the same modules, so keep their bytecode
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo docs test unit oldest newest mutants chaos campaign env lock check clean remove-work help qa qa-tests
help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

.DEFAULT:
	@echo "error: no target '$@'; run \`make help\` for the targets of make, or \`snakemake -n $@\` for papers and results" >&2; exit 2

# without this rule, `make --always-make` would pass these files to .DEFAULT
Makefile requirements.txt pyproject.toml: ;

env: $(VENV)/ready
$(VENV)/ready: requirements.txt pyproject.toml Makefile
	@[ -n "$(PYTHON)" ] || { echo "error: Python 3.11 or newer is needed; set PYTHON=" >&2; exit 1; }
	@$(PYTHON) -c '$(NEW_ENOUGH)' 2>/dev/null \
		|| { echo "error: $(PYTHON) is not Python 3.11 or newer; set PYTHON=, e.g. make env PYTHON=/usr/bin/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { [ "$$(id -u)" = 0 ] && apt-get install -y -q python3-venv; } \
		|| { echo "error: $(PYTHON) can't make environments; first: apt-get install python3-venv" >&2; exit 1; }
	@echo "Creating the environment in $(VENV) (minutes; 2 GB, or 6 GB if PyTorch is built for CUDA) ..."
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes --no-deps -r requirements.txt
	$(PIP) --no-build-isolation -e '.[dev]' $(TORCH)
	@touch $@

# PyTorch and the packages of its GPU builds are left out, because builds differ between machines
lock: env
	$(PIP) $(UV)
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-header --no-annotate --constraints <(echo '$(TORCH)') | awk '/^[a-z]/ {skip = /^(torch=|triton=|cuda-|nvidia-)/} !skip' >requirements.txt

# within the bounds of pyproject.toml
oldest: RESOLUTION := lowest-direct
newest: RESOLUTION := highest
oldest newest:
	$(PYTHON) -m venv .venv-$@
	.venv-$@/bin/python -m pip install --quiet --disable-pip-version-check $(UV)
	.venv-$@/bin/uv pip install --quiet --upgrade --python .venv-$@/bin/python --resolution $(RESOLUTION) -e '.[dev]'
	.venv-$@/bin/python -m pytest -n 2 --dist loadfile $(FAST)

demo: env
	@echo "Generating a corpus, training ten small models and scoring them: 4 to 10 minutes on two idle cores."
	@$(BIN)/reprise make results/table2.csv
	@$(BIN)/reprise site
	@echo
	@$(BIN)/reprise show
	@echo
	@echo "The Transformer of that table translates \"can dogs eat apples\":"
	@echo "can dogs eat apples" | $(BIN)/reprise translate attention/base/wmt14-en-de/1
	@echo
	@echo "Open the site to see the run, curves and outputs behind each number: file://$(CURDIR)/results/site/index.html"
	@echo "Next:"
	@echo "  $(BIN)/reprise translate weighted/C/wmt14-en-de/1    type a query such as: how much does a car cost"
	@echo "  $(BIN)/reprise make results/claims.csv               test the paper's claims"
	@echo "  $(BIN)/reprise make coldfusion                       build another paper: tables, figures and claims"

# four workers for two cores, because tests often wait for Slurm; QA=1 adds the tests of `make qa-tests`
test: env
	$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder $(if $(QA),-m "")

# faults, kills and damaged files; SEED= repeats those of an earlier run
chaos: env
	$(BIN)/python -m qa.chaos --minutes $(or $(MINUTES),90) $(if $(SEED),--seed $(SEED))

# about an hour on two cores; see docs/explanation/faults.md. SEED= repeats the moments of the faults of an earlier run
campaign: env
	tests/cluster/slurm.sh install
	$(BIN)/python -m qa.campaign $(if $(PAPER),--paper $(PAPER)) $(if $(SEED),--seed $(SEED)) $(if $(FOLDER),--folder $(FOLDER))

# about a minute on two fast cores
unit: env
	$(BIN)/python -m pytest -n 2 --dist loadfile $(FAST)

# e.g. make mutants PACKAGE="models data" MINUTES=10
mutants: env
	$(PIP) -e '.[mutants]'
	$(BIN)/python qa/mutants/run.py --package $(PACKAGE) --minutes $(or $(MINUTES),10) --seed $(or $(SEED),1)

# a short chaos, a short campaign through Slurm, and hostile data
qa-tests: env
	$(BIN)/python -m pytest -m qa -n 2 --dist loadfile --no-loadscope-reorder tests/qa tests/cluster tests/analysis

qa: chaos campaign qa-tests $(if $(PACKAGE),mutants)

# Mermaid, which draws the diagrams, is included, so that pages load nothing from elsewhere
docs: env
	$(PIP) --editable '.[docs]'
	mkdir -p docs/assets
	cd docs/assets && npm pack --silent mermaid@11.4.0 >/dev/null && tar -xzf mermaid-11.4.0.tgz --strip-components 2 \
		package/dist/mermaid.min.js && rm mermaid-11.4.0.tgz
	$(BIN)/mkdocs build --strict --site-dir public

check: env
	$(BIN)/ruff format --check . && $(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/snakefmt --check Snakefile workflow/Snakefile workflow/rules
	$(BIN)/snakemake --lint 2>&1 | $(BIN)/python tests/workflow/lint.py

clean:
	rm -rf results/site $(filter-out results/README.md,$(wildcard results/*.csv results/*.md))
	@echo "Removed the site and the reports at the top of results/; models, corpora and downloads stay in work/ (make remove-work)."

remove-work:
	rm -rf work
