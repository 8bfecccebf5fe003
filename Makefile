# Two commands do everything on a fresh machine: `make train` and `make test`.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# One thread by default: two threads on a busy two-core machine slow each other down.
export OMP_NUM_THREADS ?= 1
export MPLBACKEND := Agg
# Tests wait for processes of their own for a tenth of the time: one worker more than cores.
export PYTEST_XDIST_AUTO_NUM_WORKERS ?= $(shell $(PYTHON) -c 'import os; print(os.cpu_count() + 1)' 2>/dev/null)
# Bytecode is written on first use: without it each of the many processes of the tests compiles torch.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: train test check bench clean docs lock soak

train: $(VENV)/.installed
	$(BIN)/python -m scenarios.east_west_train $(ARGS)

test: $(VENV)/.installed-test
	$(MAKE) --no-print-directory check

WARM_UP := $(BIN)/python -m scenarios.east_west_train --policy flat --quick --steps 256 --evaluation-draws 1 --workers 1
WARM_UP_ANSWER := $(BIN)/python -m agents.decide --network east_central_west --model llama2_7b \
	--microbatches 8 --trainer ideal --deciders both

# The same checks without touching the installation.
check:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@echo "$(BIN)/mypy goes on beside all this; a short training and an answer compile what most tests need"
	@runs=$$(mktemp -d); $(BIN)/mypy > $$runs/types 2>&1 & types=$$!; \
		trap 'kill $$types 2>/dev/null; rm -rf $$runs' EXIT; \
		{ $(WARM_UP) --out $$runs/run && $(WARM_UP_ANSWER); } > $$runs/log 2>&1 || { cat $$runs/log; exit 1; }; \
		$(BIN)/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder; tests=$$?; \
		wait $$types; checked=$$?; cat $$runs/types; [ $$tests = 0 ] && [ $$checked = 0 ]

bench: $(VENV)/.installed-test
	$(BIN)/python -m bench

# The site under build/site/html: pages, API, and a gallery that our commands draw; warnings are errors.
docs: $(VENV)/.installed-test
	$(BIN)/python -m docs.site.build $(ARGS)

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# pip installs uv, uv installs a lock: every package at its version, so nothing is resolved.
INSTALL := requirements/install.py requirements/installer.lock requirements/torch.txt requirements/cuda.lock setup.cfg pyproject.toml

$(VENV)/.installed: $(INSTALL) requirements/train.lock
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) requirements/install.py $(VENV) train.lock
	@touch $@

$(VENV)/.installed-test: $(INSTALL) requirements/train.lock requirements/test.lock
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) requirements/install.py $(VENV) test.lock
	@touch $(VENV)/.installed $@

# The locks, from setup.cfg and from versions that they hold already; `make lock UPGRADE=--upgrade` moves all.
UV_VERSION := 0.13.9
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command "make lock" $(UPGRADE)
OURS = $(COMPILE) setup.cfg --constraints requirements/torch.txt --excludes requirements/excluded.txt --no-emit-package torch

lock:
	echo uv==$(UV_VERSION) | $(COMPILE) - --output-file requirements/installer.lock
	$(OURS) --extra train --extra exact --excludes requirements/excluded-train.txt \
		--output-file requirements/train.lock
	$(OURS) --constraints requirements/train.lock --extra train --extra exact --extra test --extra ray --extra parquet \
		--extra explore --extra k8s --extra docs --extra cluster --output-file requirements/test.lock
	$(COMPILE) requirements/torch.txt --constraints requirements/train.lock --no-emit-package torch \
		--output-file requirements/cuda.lock

# Property tests on new random examples, hours of them: SEED repeats a run, EXAMPLES sets its size
# (40000: 2,667 times that of `make test`), ARGS picks files.
soak: $(VENV)/.installed-test
	@seed=$${SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; \
	echo "soak: seed $$seed, the same examples again with: make soak SEED=$$seed"; \
	SEED=$$seed $(BIN)/pytest -m "hypothesis or soak" --hypothesis-profile=soak --hypothesis-seed=$$seed \
		--numprocesses auto --dist worksteal $(ARGS)
