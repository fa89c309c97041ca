# A clone needs only make and Python 3.11, 3.12 or 3.13: every target makes .venv itself.
#   make demo PYTHON=python3.12                    with a Python of your choice
#   make demo TORCH=cuda                           with CUDA; TORCH=cpu: without (docs/install.md)
#   make demo PIP_FLAGS="--extra-index-url URL"    with further options for pip

PYTHON := python3 python3.13 python3.12 python3.11
PIP_FLAGS :=
EXTRAS := workflow,dev
# torch with CUDA takes several GB more: only where there is a driver for it.
TORCH := $(if $(shell command -v nvidia-smi),cuda,cpu)
ifeq ($(filter cpu cuda,$(TORCH)),)
    $(error TORCH=$(TORCH): expected cpu or cuda)
endif

VENV := .venv
INSTALLED := $(VENV)/.installed
# What tells an environment that make itself has made, and may start over, from one made by hand.
MADE := $(VENV)/.made_by_make
# What runs in a recipe finds the environment's programs first, as after `activate`.
# By the shell's own name of the folder: in one that make writes, the shell would read $, " and `.
IN_VENV := PATH="$$PWD/$(VENV)/bin:$$PATH"
# One process for each core and one more, each with the tests of a file (tests/conftest.py). A process
# that a test has ended is not replaced: xdist would wait for ever. To see the output of a test as it runs:
# make test IN_PROCESSES=
IN_PROCESSES := -n auto --dist loadfile --no-loadscope-reorder --max-worker-restart=0
DEMO := results/demo_en_fr
DEMO_MODEL := $(DEMO)/models/demo/seed1/model.safetensors
PAPER_DEMO := results/scales/demo
PUBLISHED := docs/results/multi30k

.DEFAULT_GOAL := help
.PHONY: help install demo paper-demo results-page docs docs-serve test test-lowest test-all benchmarks gpu-check mutants faults lint format hashes release clean

help:
	@echo "make install     .venv with all that the workflow needs, and nothing else"
	@echo "make demo        train and score the demo, English to French, in minutes"
	@echo "make paper-demo  every table and figure of the paper, on the demo's sentences, small"
	@echo "make results-page  docs/results.md and docs/short_run.md from the ledgers in docs/results"
	@echo "make docs        docs/ as a site, into dist/site; make docs-serve: on this machine, as you write"
	@echo "make test        the tests that take minutes"
	@echo "make test-lowest those of the package, with the lowest versions that pyproject.toml allows"
	@echo "make test-all    the long tests too"
	@echo "make benchmarks  beside CTranslate2, fairseq and others, 15 minutes; into docs/benchmarks.md"
	@echo "make gpu-check   on GPUs: are they right, how fast, within budget; into docs/notes/gpu.md"
	@echo "make mutants     put faults into a copy of the code: the tests must find each (an hour)"
	@echo "make faults      20,000 hostile inputs, 1,000 flipped bits, 200 pairs, 300 kills, 1,000 hostile clients, 1,000 failed calls (hours)"
	@echo "make lint        every check of style and types"
	@echo "make format      rewrite the code in the house's style"
	@echo "make hashes      requirements.hashed.txt from constraints.txt"
	@echo "make release     everything that a release publishes, into dist/"
	@echo "make clean       remove .venv if make has made it, and caches, but not results/ and .snakemake/"

install: $(INSTALLED)

demo: $(INSTALLED)
	@$(IN_VENV) snakemake demo
	@echo; cat $(DEMO)/bleu.txt; echo; cat $(DEMO)/examples.txt
	@echo "score:"; ls $(DEMO)/bleu.txt $(DEMO)/bleu.json
	@echo "translations:"; ls $(DEMO)/models/*/*/*.txt
	@echo "plots:"; ls $(DEMO)/models/*/*/*.svg
	@echo; echo "Next, after \`. $(VENV)/bin/activate\`: your own sentence, your own server, your own pair"
	@echo "  echo 'The girl sees a small dog.' | convs2s translate $(DEMO_MODEL)"
	@echo "  convs2s serve $(DEMO_MODEL)"
	@echo "  convs2s new-task pairs.tsv --languages en ro"

paper-demo: $(INSTALLED)
	@$(IN_VENV) snakemake paper --config scale=demo
	@echo "tables:"; ls $(PAPER_DEMO)/paper/*.md
	@echo "all of it:"; ls $(PAPER_DEMO)/paper/report.html
	@echo "figures:"; ls $(PAPER_DEMO)/paper/*figure*.svg

results-page: $(INSTALLED)
	@$(IN_VENV) convs2s results $(PUBLISHED)_trained.ledger.jsonl --scale multi30k_trained \
	    --discussion $(PUBLISHED)_trained.discussion.md --output docs/results.md
	@$(IN_VENV) convs2s results $(PUBLISHED).ledger.jsonl --scale multi30k \
	    --discussion $(PUBLISHED).discussion.md --output docs/short_run.md

# REPOSITORY_URL: where the links to files outside of docs/ lead.
docs docs-serve: $(INSTALLED)
	@$(IN_VENV) python -m pip install --quiet $(PIP_FLAGS) -r docs/requirements.txt
	@$(IN_VENV) snakemake --quiet all --cores 1 results/scales/multi30k_trained/paper/report.html \
	    --config scale=multi30k_trained published=$(PUBLISHED)_trained.ledger.jsonl
	@$(IN_VENV) NO_MKDOCS_2_WARNING=1 mkdocs $(if $(filter docs,$@),build --quiet,serve)

# With bytecode, also where a container has Python write none: each job would compile the package anew.
test: $(INSTALLED)
	@$(IN_VENV) PYTHONDONTWRITEBYTECODE= python -m pytest -q $(IN_PROCESSES) -m "not slow and not gpu"

# In an environment of its own, below build/.
LOWEST := build/lowest
test-lowest: $(INSTALLED)
	@$(VENV)/bin/python -m pip install --quiet $(PIP_FLAGS) -c constraints.txt uv
	@$(IN_VENV) uv venv --quiet --clear --python $(VENV)/bin/python $(LOWEST)
	@$(IN_VENV) uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct \
	    $(if $(filter cpu,$(TORCH)),--torch-backend cpu) -e '.[$(EXTRAS)]'
	@PATH="$$PWD/$(LOWEST)/bin:$$PATH" python -m pytest -q $(IN_PROCESSES) -m "not slow and not gpu" \
	    tests/reference tests/invariants tests/learning tests/contract tests/faults

test-all: $(INSTALLED)
	@$(IN_VENV) python -m pytest -q

# Each peer in an environment of its own, below build/peers/. QUICK=--quick: to see that it runs, without the page.
QUICK :=
benchmarks: $(INSTALLED)
	@$(IN_VENV) python benchmarks/compare.py $(or $(QUICK),--write-docs)

# Some minutes. What GPUs compute comes first: figures of a wrong result say nothing.
gpu-check: $(INSTALLED)
	@$(IN_VENV) python -m pytest -q -m gpu -rs tests
	@$(IN_VENV) PYTHONPATH=src python benchmarks/gpu.py --output gpu.json --write-docs

# FAULTS="training scoring": those of an area, or with a word in their names, alone. Else a sample of machine-made
# ones as well, of SAMPLE faults.
SAMPLE := 50
mutants: $(INSTALLED)
	@$(IN_VENV) python -m tests.mutants $(FAULTS)
	@$(if $(FAULTS),,$(IN_VENV) python -m tests.mutants.machine $(SAMPLE))

# WHICH="fuzzing flips": those kinds alone, of fuzzing, flips, pairs, calls, clients and kills.
faults: $(INSTALLED)
	@$(IN_VENV) python -m tests.faults $(WHICH)

lint: $(INSTALLED)
	@$(IN_VENV) ruff check
	@$(IN_VENV) ruff format --check
	@$(IN_VENV) mypy
	@$(IN_VENV) snakefmt --check Snakefile workflow/Snakefile rules
	@$(IN_VENV) snakemake --lint

format: $(INSTALLED)
	@$(IN_VENV) ruff check --fix-only
	@$(IN_VENV) ruff format
	@$(IN_VENV) snakefmt Snakefile workflow/Snakefile rules

hashes: $(INSTALLED)
	@$(VENV)/bin/python -m pip install --quiet $(PIP_FLAGS) -c constraints.txt uv
	@$(IN_VENV) .ci/hashes

# TASKS are those whose models, cards and results are published.
release: TASKS := demo_en_fr multi30k_en_de
release: $(INSTALLED)
	@$(IN_VENV) .ci/release $(TASKS)

clean:
	@if [ ! -e $(VENV) ] || [ -e $(MADE) ]; then rm -rf $(VENV); else \
	    echo "$(VENV) is kept: make has not made it; remove it by hand if you want to"; fi
	rm -rf .snakemake/log .pytest_cache .mypy_cache .ruff_cache build dist src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "results/ and .snakemake/, which knows how they were made, are kept: remove them by hand"

# Run by the Python that was found.
define CHECK_VENV
import sys
try:
    import ensurepip, venv
except ImportError:
    sys.exit("make: Python's venv module is missing (Debian, Ubuntu: apt-get install python3-venv)")
endef
export CHECK_VENV

# pip cannot choose between builds of one version: on Linux it takes torch with CUDA. uv can. Where pip
# is told of a place of its own (an index, wheels), it alone is asked. Where uv cannot fetch the build,
# say behind a firewall, what pip has is better than nothing.
define INSTALL_TORCH_WITHOUT_CUDA
pip="$(VENV)/bin/python -m pip"; \
cache=; mkdir -p "$${UV_CACHE_DIR:-$${XDG_CACHE_HOME:-$$HOME/.cache}/uv}" 2>/dev/null || cache=--no-cache; \
if [ $(TORCH) = cpu ] && [ "$$(uname -s)" = Linux ] && $(if $(PIP_FLAGS),false,true) && \
    ! $$pip config list | grep -E '(index-url|find-links|no-index)=' >/dev/null; then \
    $$pip install --quiet -c constraints.txt uv && \
    $(VENV)/bin/uv pip install $$cache --quiet --python $(VENV)/bin/python --torch-backend cpu \
        -c constraints.txt torch || \
    echo "make: no build of torch without CUDA was found: pip installs what it has" >&2; \
fi
endef

# The stamp goes first and comes last: after a killed install the next make starts over.
$(INSTALLED): pyproject.toml constraints.txt
	@for python in $(PYTHON) none; do \
	    $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' >/dev/null 2>&1 && break; \
	done; \
	if [ $$python = none ]; then \
	    echo "make: Python 3.11, 3.12 or 3.13 is needed; tried $(PYTHON) (set PYTHON=...)" >&2; exit 1; \
	fi; \
	$$python -c "$$CHECK_VENV" || exit 1; \
	if [ ! -e $@ ] && [ ! -e $(MADE) ]; then \
	    for file in $(VENV)/*; do \
	        if [ -e "$$file" ]; then \
	            echo "make: $(VENV) is there, and make has not made it: move it away; or, to have" \
	                "it used as it is, touch $@" >&2; exit 1; \
	        fi; \
	    done; \
	fi; \
	if [ ! -e $@ ]; then \
	    rm -rf $(VENV) && mkdir -p $(VENV) && touch $(MADE) && $$python -m venv $(VENV) || exit 1; \
	fi; \
	rm -f $@; \
	echo "make: installing into $(VENV), which takes one to five minutes"; \
	$(INSTALL_TORCH_WITHOUT_CUDA); \
	$(VENV)/bin/python -m pip install --quiet $(PIP_FLAGS) -c constraints.txt -e '.[$(EXTRAS)]' && \
	touch $@
