# rbpx: `make demo` prints the scaling laws of the bundled models; `make check` is what a change has to pass.

PYTHON ?= python3
SEED ?= 0
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TOOLS := $(VENV)/.tools
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install -qq --no-compile -c constraints.txt

# Without compiled modules each of the tests' processes would compile torch and transformers again, for ten seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo studies docs census gallery reference answers signatures tutorial test nightly device check format types imports mutate clean
.DELETE_ON_ERROR:

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(TOOLS) ## rbpx and its developers' tools in .venv, at the tested versions (PYTHON=python3.12 chooses the Python)

# A stamp is written last: with it in place no target needs pip or a network for what it stands for: rbpx alone, and what
# tests and checks need besides. Modules are compiled when they are first imported: most of the 19,000 never are, and
# compiling all of them takes 40 s.
$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing rbpx and torch in $(VENV), in some two minutes"
	@$(INSTALL) torch==2.13.0
	@$(INSTALL) -e .
	@touch $@

$(TOOLS): $(STAMP)
	@echo "installing the tools of tests and checks in $(VENV), in some two minutes"
	@$(INSTALL) -e '.[dev]'
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; (3, 11) <= v < (3, 14) or sys.exit( \
	  f"rbpx needs Python 3.11 to 3.13, $(PYTHON) is {v.major}.{v.minor}. Name another: make install PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV)

demo: $(STAMP) ## measure the bundled ladder on two datasets and print its laws
	$(BIN)/python -m rbpx -m model=ladder dataset=pydoc,stdlib

studies: $(STAMP) ## run every study on the ladder and write its findings into its file
	@for study in $$(grep -l '  result:' experiments/*.yaml); do \
	  $(BIN)/python -m rbpx record experiment=$$(basename $$study .yaml) > /dev/null || exit 1; done

docs: $(TOOLS) ## the documentation, in docs/_build/html; a warning is an error
	$(BIN)/sphinx-build -E -W --keep-going -n -q -b html docs docs/_build/html

tutorial: $(TOOLS) ## run what README, tutorials and notebook show again, on a copy of the store of make demo
	$(BIN)/python docs/retell.py

gallery: $(TOOLS) ## draw every picture of README and documentation again, from a copy of that store and the studies
	$(BIN)/python docs/pictures.py

reference: $(TOOLS) ## write what pages list from the code anew: verbs, keys, statuses, relations and the like
	$(BIN)/python docs/generate.py

answers: $(TOOLS) ## write the answers of tests/same_answers anew, after a mend (ANSWERS='fit klaw' names which)
	$(BIN)/python -m tests.same_answers.write $(ANSWERS)

signatures: $(TOOLS) ## write the types of the methods that ask questions anew, after a change of keys
	$(BIN)/python -m tests.support.signatures

census: $(TOOLS) ## which architectures of transformers are measured: docs/reference/architectures.csv, in twenty minutes
	rm -f docs/reference/architectures.csv
	$(BIN)/python -m tests.support.census

PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile

test: $(TOOLS) ## all tests of a change, in some six minutes on two cores
	$(PYTEST)

nightly: $(TOOLS) ## what no day has time for, in an hour on two cores: all architectures, kills, real weights, every shown command
	$(PYTEST) tests/nightly

# Nothing is installed where a Python is given: a machine with a GPU often has a torch of its own, and no network.
device: $(if $(filter file,$(origin PYTHON)),$(TOOLS)) ## all that wants a GPU in nine minutes, as one table (PYTHON=python3: by that Python as it is)
	$(if $(filter file,$(origin PYTHON)),$(BIN)/python,$(PYTHON)) benchmarks/device.py

# The types take one core for half a minute; the documentation goes on beside them.
check: $(TOOLS) ## format, lint, types, import directions, documentation, tests
	$(MAKE) --jobs=2 format types imports docs
	$(MAKE) test

format: $(TOOLS) ## whether the code is formatted, and what ruff says of it
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: $(TOOLS) ## what mypy says of the types
	$(BIN)/mypy

imports: $(TOOLS) ## whether imports go the one way that pyproject.toml says
	$(BIN)/lint-imports

mutate: $(TOOLS) ## whether a test notices each of eighty small mistakes in the code (SEED=0); before and after a deletion
	$(BIN)/python -m tests.support.mutate --sample 80 --seed $(SEED)

clean: ## remove caches and build outputs; .venv and the store stay
	rm -rf build dist docs/_build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -path ./$(VENV) -prune -o -type d -name __pycache__ -exec rm -rf {} +
