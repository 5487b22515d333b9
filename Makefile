# The commands of this repository. `make audit` and `make test` need only Python 3.11, make and git; each makes .venv first.
#   TORCH_INDEX=<address>   where torch is installed from, for instance an index of CPU builds; empty: pip's own
#   PYTHON=<interpreter>    what makes the environment

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help

TORCH := torch==2.13.0
TORCH_INDEX ?=
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin

# -qq keeps warnings about unused package indexes off the screen; errors still show. --no-compile: Python compiles what is
# imported when it is, which costs a fourth of compiling all that is installed.
PIP_INSTALL := -m pip install -qq --no-compile --disable-pip-version-check --no-input
FROM_INDEX := $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX))

.PHONY: help audit test check format docs examples served bench-setup soak test-oldest readme setup clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "make %-12s %s\n", $$1, $$2 }'

audit: $(BIN)/.installed ## put the example's questions to SmolLM2-135M-Instruct and write audit.html
	@$(BIN)/answerable dossier examples/audit.toml --report audit.html

test: $(BIN)/.installed ## the whole suite but the soak
	@$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(BIN)/.installed ## format, lint, types, direction of imports
	@$(BIN)/ruff format --check -q . || { echo "not formatted as ruff would: make format"; exit 1; }
	@$(BIN)/ruff check -q .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo

format: $(BIN)/.installed ## write the files as ruff would
	@$(BIN)/ruff format -q .
	@$(BIN)/ruff check -q --fix .

docs: $(BIN)/.installed ## the documentation, into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

examples: $(BIN)/.installed ## every dossier in examples/
	@$(BIN)/python -m reproductions.natural_images
	@status=0; for dossier in examples/*.toml; do \
	  echo "== $$dossier"; $(BIN)/answerable dossier "$$dossier" || status=$$?; \
	done; exit $$status

served: .venv-serve/bin/.locked ## a question to SmolLM2 behind a real server on loopback, and the tests that need one
	@$(BIN)/python -m pytest -q -m served
	@.venv-serve/bin/python examples/served/serve.py 8137 $(BIN)/answerable dossier examples/served/model-lineage.toml

# Like .venv-bench, it sees all of .venv and holds only what the server adds.
.venv-serve/bin/.locked: requirements-serve.lock $(BIN)/.installed
	@$(BIN)/python -m venv --clear .venv-serve
	@.venv-serve/bin/python $(PIP_INSTALL) --no-deps -r requirements-serve.lock
	@seen=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	  here=$$(.venv-serve/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	  echo "import site; site.addsitedir('$$seen')" > "$$here/product.pth"
	@touch $@

soak: $(BIN)/.installed ## the long tests: kills, mutations, coverage at full size
	@$(BIN)/python -m pytest -m soak

readme: $(BIN)/.installed ## the table of questions in README.md, from the registry
	@$(BIN)/python docs/readme_table.py --write

setup: $(BIN)/.installed ## .venv and nothing else

clean: ## what the commands above left here, but for the environments
	@rm -rf site build dist audit.html report.html .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './.venv*' -prune -exec rm -rf {} +

# $(1): folder, $(2): lock file, $(3): torch, $(4): what it is for
define environment
	@test -n "$(PYTHON)" && "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "answerable needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(1)/bin/python && $(1)/bin/python -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(1)
	@echo "Installing $(4) into $(1) (torch and about 120 packages; some minutes the first time)"
	@$(1)/bin/python $(PIP_INSTALL) $(FROM_INDEX) $(3)
	@$(1)/bin/python $(PIP_INSTALL) --no-deps -r $(2)
endef

$(BIN)/.locked: requirements.lock
	$(call environment,$(VENV),requirements.lock,$(TORCH),the development environment)
	@touch $@

# The package itself is installed anew only when what its installation says has changed.
$(BIN)/.installed: $(BIN)/.locked pyproject.toml
	@$(BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

bench-setup: .venv-bench/bin/.locked ## .venv-bench, with the programs that ours is raced against

# It sees all of .venv through a .pth file and holds only what the peers add, so that nothing large is installed twice.
.venv-bench/bin/.locked: bench/requirements.lock $(BIN)/.installed
	@$(BIN)/python -m venv --clear .venv-bench
	@.venv-bench/bin/python $(PIP_INSTALL) --no-deps -r bench/requirements.lock
	@seen=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	  here=$$(.venv-bench/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	  echo "import site; site.addsitedir('$$seen')" > "$$here/product.pth"
	@touch $@

test-oldest: .venv-oldest/bin/.locked ## the suite on the lowest versions that pyproject.toml admits
	@.venv-oldest/bin/python -m pytest -n 2 --dist loadfile

.venv-oldest/bin/.locked: requirements-oldest.lock pyproject.toml
	$(call environment,.venv-oldest,requirements-oldest.lock,$(TORCH),the lowest versions)
	@.venv-oldest/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@
