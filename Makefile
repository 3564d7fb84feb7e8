# make demo           set up, build results/table2.csv and the site from built-in data
# make test           set up, run the test suite: before a commit
# make unit           the fast tests: while you work
# make check          format, lint, types and the order of imports
# make env            only set up the environment .venv
# make docs           the documentation site, in public/
# make clean          remove the copies in results/ of the configured paper
# make remove-work    remove every trained model, corpus and download of the default `work:`
# make qa             hours: chaos, campaign, qa-tests, and mutants if PACKAGE is named
# make chaos          faults in every stage for MINUTES
# make campaign       all papers through Slurm under faults, as root
# make qa-tests       the tests that `make test` leaves out
# make mutants        changes of PACKAGE, and whether the tests notice
# make oldest newest  the fast tests with the oldest or newest packages
# make lock           requirements.txt with the newest versions
SHELL := /bin/bash
# the first Python that is new enough; `make PYTHON=…` chooses another
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
UV := uv==0.13.9
# exact, or pip takes the newest build for CUDA; without checksums, as every machine wants another build
TORCH := torch==2.13.0
# no Snakemake, Slurm or browser, and no trainings that are killed or extended many times
NOT_FAST := workflow cluster qa use site planning/test_free.py \
	$(addprefix training/test_,captured_steps.py survival.py warm_start.py)
FAST := -m "not slow and not cluster and not qa" $(addprefix --ignore tests/,$(NOT_FAST))
export PATH := $(CURDIR)/$(BIN):$(PATH)
# hundreds of processes import the same modules
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo docs test unit oldest newest mutants chaos campaign env lock check clean remove-work help qa qa-tests
help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

.DEFAULT:
	@echo "error: no target '$@'; \`make help\` lists the targets, \`snakemake -n $@\` asks the workflow" >&2; exit 2

# .DEFAULT would refuse these files under --always-make
Makefile requirements.txt pyproject.toml: ;

env: $(VENV)/ready
$(VENV)/ready: requirements.txt pyproject.toml Makefile
	@[ -n "$(PYTHON)" ] || { echo "error: Python 3.11 or newer is needed; set PYTHON=" >&2; exit 1; }
	@$(PYTHON) -c '$(NEW_ENOUGH)' 2>/dev/null \
		|| { echo "error: $(PYTHON) is not Python 3.11 or newer; set PYTHON=, e.g. make env PYTHON=/usr/bin/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { [ "$$(id -u)" = 0 ] && apt-get install -y -q python3-venv; } \
		|| { echo "error: $(PYTHON) can't make environments; first: apt-get install python3-venv" >&2; exit 1; }
	@echo "Creating the environment in $(VENV) (minutes; 2 GB, and more if PyTorch is built for CUDA) ..."
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes --no-deps -r requirements.txt
	$(PIP) --no-build-isolation -e '.[dev]' $(TORCH)
	@touch $@

# requirements.txt anew, with the newest versions; PyTorch and what its builds for GPUs need are installed after it, since
# every machine wants another build
lock: env
	$(PIP) $(UV)
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-header --no-annotate --constraints <(echo '$(TORCH)') | awk '/^[a-z]/ {skip = /^(torch=|triton=|cuda-|nvidia-)/} !skip' >requirements.txt

# the fast tests with the oldest, or with the newest versions that pyproject.toml allows
oldest: RESOLUTION := lowest-direct
newest: RESOLUTION := highest
oldest newest:
	$(PYTHON) -m venv .venv-$@
	.venv-$@/bin/python -m pip install --quiet --disable-pip-version-check $(UV)
	.venv-$@/bin/uv pip install --quiet --upgrade --python .venv-$@/bin/python --resolution $(RESOLUTION) -e '.[dev]'
	.venv-$@/bin/python -m pytest -n 2 --dist loadfile $(FAST)

demo: env
	@echo "Writes a corpus, trains ten small models and scores them: 4 to 10 minutes on two idle cores."
	@$(BIN)/reprise make results/table2.csv
	@$(BIN)/reprise site
	@echo
	@$(BIN)/reprise show
	@echo
	@echo "The Transformer of that table translates \"can dogs eat apples\":"
	@echo "can dogs eat apples" | $(BIN)/reprise translate attention/base/wmt14-en-de/1
	@echo
	@echo "Every number leads to its run, its curves and its outputs: file://$(CURDIR)/results/site/index.html"
	@echo "Next:"
	@echo "  $(BIN)/reprise translate weighted/C/wmt14-en-de/1    type a query such as: how much does a car cost"
	@echo "  $(BIN)/reprise make results/claims.csv               what the paper says, judged"
	@echo "  $(BIN)/reprise make coldfusion                       another paper: tables, figures and claims"

# before each commit; four workers for two cores, as they often wait for Slurm. QA=1 adds the tests of `make qa-tests`
test: env
	$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder $(if $(QA),-m "")

# faults, kills and damaged files in every stage: as many as fit into MINUTES; SEED= has the same ones again
chaos: env
	$(BIN)/python -m qa.chaos --minutes $(or $(MINUTES),90) $(if $(SEED),--seed $(SEED))

# docs/explanation/faults.md says what is real in it; about an hour on two cores. SEED= has the faults at the same moments again
campaign: env
	tests/cluster/slurm.sh install
	$(BIN)/python -m qa.campaign $(if $(PAPER),--paper $(PAPER)) $(if $(SEED),--seed $(SEED)) $(if $(FOLDER),--folder $(FOLDER))

# while you work: about a minute on two fast cores
unit: env
	$(BIN)/python -m pytest -n 2 --dist loadfile $(FAST)

# change pipeline/ or reprise/ in one place at a time and report whether the tests notice: make mutants PACKAGE="models data" MINUTES=10
mutants: env
	$(PIP) -e '.[mutants]'
	$(BIN)/python qa/mutants/run.py --package $(PACKAGE) --minutes $(or $(MINUTES),10) --seed $(or $(SEED),1)

# the tests that `make test` leaves out: a short chaos, a short campaign through Slurm, and hostile data
qa-tests: env
	$(BIN)/python -m pytest -m qa -n 2 --dist loadfile --no-loadscope-reorder tests/qa tests/cluster tests/analysis

# what takes hours and is for the night: faults in every stage, a campaign of all papers, mutants of PACKAGE
qa: chaos campaign qa-tests $(if $(PACKAGE),mutants)

# the documentation site in public/; Mermaid, which draws its diagram, is packed with it rather than loaded from elsewhere
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

# only copies of what lies in results/<scale>/: trained models, corpora and downloads stay
clean:
	rm -rf results/site $(filter-out results/README.md,$(wildcard results/*.csv results/*.md))
	@echo "Removed the views in results/ of the configured paper; models, corpora and downloads stay in work/ (make remove-work)."

# every trained model, corpus and download of the default `work:`
remove-work:
	rm -rf work
