# Everything runs in .venv, made here. A bare computer needs Python 3.11 and make; `make doctor` says what else is missing.
# Options of a run or of the tests: make run ARGS="--policy reactive", make test ARGS="tests/unit -x".

PYTHON ?= $(shell for p in python3.11 python3 python; do $$p -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
ARGS ?=

# uv reads none of pip's settings; what pip was told of certificates, index and wheels holds for uv, too.
ifndef SSL_CERT_FILE
ifdef PIP_CERT
export SSL_CERT_FILE := $(PIP_CERT)
else ifdef REQUESTS_CA_BUNDLE
export SSL_CERT_FILE := $(REQUESTS_CA_BUNDLE)
endif
endif
ifndef UV_DEFAULT_INDEX
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX := $(PIP_INDEX_URL)
endif
endif
ifndef UV_INDEX
ifdef PIP_EXTRA_INDEX_URL
export UV_INDEX := $(PIP_EXTRA_INDEX_URL)
endif
endif
ifndef UV_FIND_LINKS
ifdef PIP_FIND_LINKS
export UV_FIND_LINKS := $(PIP_FIND_LINKS)
endif
endif
# Of pip's files: a recipe's shell sets the variables unless they are set, and asks pip once, which takes most of a
# second. (`pip config get` knows the user's file alone.)
ASK_PIP = of_pip="$${UV_DEFAULT_INDEX+$${SSL_CERT_FILE+both are set}}"; [ -n "$$of_pip" ] || of_pip="$$($(BIN)/python -m pip config list)";
of_file = export $(1)="$${$(1)-$$(printf "%s\n" "$$of_pip" | sed -n "s/^global\.$(2)='\(.*\)'$$/\1/p")}"; [ -n "$$$(1)" ] || unset $(1);
OF_PIP = $(ASK_PIP) $(call of_file,UV_DEFAULT_INDEX,index-url) $(call of_file,SSL_CERT_FILE,cert)
export UV_NO_PROGRESS := 1
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME
# Images of containers set it, and then each of a run's many processes compiles torch, Airflow and MLflow anew: 12 s.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run test test-site lint check figures up down doctor lock wheel image release

help: ## Show these lines.
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' $(MAKEFILE_LIST)

setup: $(VENV)/.ready var/jars.json var/class-archive/.ready var/compiled/.ready ## Environment, Java, jars, class archives, kernels; nothing is done twice.

run: setup var/compiled/.of-sources ## The main job: history, training, serving, a live day on real executors, a report.
	@$(BIN)/tidecast run $(ARGS)

# Three workers, for tests wait more than they compute. A file at a time, or a chain of those that share Spark or
# Airflow (tests/order.py): the ring is the first of one of them, and the others give way to it.
test: setup var/compiled/.of-sources ## All tests but those on real neighbours (test-site).
ifeq ($(strip $(ARGS)),)
	@$(BIN)/pytest tests -n 3 --dist loadfile --no-loadscope-reorder --durations=20 --durations-min=10
else
	@$(BIN)/pytest $(ARGS)
endif

test-site: setup $(VENV)/.site-ready ## The ring on real neighbours (YARN, three brokers, PostgreSQL) and the containers; docs/site.md says what it needs.
	@$(BIN)/pytest tests/site -s $(ARGS)

lint: setup ## Lint, format, types, import rules, pages that are what is rendered.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pipelines.pages --check

check: lint ## Lint and the unit tests that are quick.
	@$(BIN)/pytest -q tests/unit -m "not study" -n 2 --dist loadfile

figures: $(VENV)/.ready ## Render the tables of README and docs from docs/figures and the code; list the figures that are old.
	@$(BIN)/python -m pipelines.pages

up: setup ## Start the stack, leave it running, print its addresses.
	@$(BIN)/tidecast up $(ARGS)

down: ## End what `make up` left running.
	@[ ! -x $(BIN)/tidecast ] || $(BIN)/tidecast down

doctor: $(VENV)/.ready ## What is missing on this computer and how to get it.
	@$(BIN)/tidecast doctor

lock: $(UV) ## Refresh requirements.lock from requirements.in.
	@$(OF_PIP) $(UV) pip compile requirements.in -p 3.11 --upgrade --no-header --no-annotate -q -o requirements.lock

wheel: $(UV) ## Build the wheel of the agent into dist/; its version rises with each commit (docker/version.py).
	@$(OF_PIP) $(UV) build --wheel -q -o dist

release: $(UV) ## Wheel and image of the newest commit, the same bytes each time, with checksums, into dist/; refused where files differ.
	@$(OF_PIP) UV=$(UV) docker/release

image: ## Build the image of the pipeline (docker/Dockerfile).
	docker build -f docker/Dockerfile -t tidecast .

$(VENV)/.site-ready: $(VENV)/.ready requirements-site.txt requirements-postgres.txt
	@$(OF_PIP) $(UV) pip install -q --python $(BIN)/python -r requirements-site.txt -c requirements.lock
	@touch $@

$(UV):
	@! pwd -P | LC_ALL=C grep -q '[^A-Za-z0-9/._+@=~-]' || { echo "the path $$(pwd -P) has a blank or another letter that options of Spark's JVMs cannot hold (letters of ASCII, digits and / . _ + @ = ~ - alone). Clone into another folder." >&2; exit 1; }
	@[ -n "$(PYTHON)" ] || { echo "Python 3.11 is needed and none was found on PATH. Install it (apt-get install python3.11 python3.11-venv, dnf install python3.11, brew install python@3.11) or, where your distribution has none (Ubuntu 24.04, Debian 13), by pyenv or uv, and name it: uv python install 3.11 && make setup PYTHON=\$$(uv python find 3.11)" >&2; exit 1; }
	@echo "making $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) cannot make an environment. On Debian and Ubuntu: apt-get install python3.11-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install -q --no-user --disable-pip-version-check 'uv>=0.9,<1'

# The lock constrains instead of being the list, so that a computer installs only what its platform needs: with
# UV_TORCH_BACKEND=cpu (uv's own setting) none of the CUDA packages, and none of them on macOS.
$(VENV)/.ready: $(UV) requirements.in requirements.lock pyproject.toml
	@echo "installing the packages of requirements.lock (some minutes the first time)"
	@$(OF_PIP) $(UV) pip install -q --python $(BIN)/python -r requirements.in -c requirements.lock \
		&& $(UV) pip install -q --python $(BIN)/python --no-deps -e .
	@touch $@

var/jars.json: pipelines/spark/jars.py $(VENV)/.ready
	@$(BIN)/python -m pipelines.spark.java
	@echo "resolving the jars of Kafka, its Spark connector and Delta"
	@$(BIN)/python -m pipelines.spark.jars

# JVMs of Spark and of the broker start in half the time with theirs; where it cannot be written they start without.
var/class-archive/.ready: var/jars.json pipelines/spark/write_archive.py pipelines/stack/broker_archive.py
	@echo "writing the class archives of Spark and the broker (a minute, once)"
	@$(BIN)/python -m pipelines.spark.write_archive
	@$(BIN)/python -m pipelines.stack.broker_archive
	@mkdir -p $(@D) && touch $@

# Once: of sources that change later each process compiles what it calls, but in what takes minutes anyway.
var/compiled/.ready: $(VENV)/.ready
	@echo "compiling the kernels of the models (a minute, once)"
	@$(BIN)/python -m models.precompile
	@mkdir -p $(@D) && touch $@ $(@D)/.of-sources

var/compiled/.of-sources: var/compiled/.ready $(shell find models -name '*.py')
	@echo "compiling the kernels of the models, whose sources have changed (a minute)"
	@$(BIN)/python -m models.precompile
	@touch $@
