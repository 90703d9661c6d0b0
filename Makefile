# The user's command line. Every target first makes what it needs, the environment included, and nothing that is up
# to date; what is up to date is decided by content, in the scripts. `make help` lists the targets below.

# Nothing that a user types is expanded, neither by Make nor by the shell: a value on the command line becomes a simple
# variable before anything reads it, and goes to scripts/from_make.py by the environment, never by a command.
$(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))), \
  $(eval override $(name) := $$(value $(name)))$(eval export $(name))))

ifeq ($(origin PYTHON),undefined)
PYTHON := python3
endif
export PYTHON
override VENV := .venv
override BIN  := $(VENV)/bin
override RUN  := $(BIN)/python -m scripts.from_make
# The environment is up to date while pyproject.toml and constraints.txt hold what they held when it was made. What
# the product needs is there with READY; tests and linters come with DEV, which only those who work on the code need.
override NUMBER := $(shell cat pyproject.toml constraints.txt | cksum | cut -d ' ' -f 1)
override READY  := $(VENV)/.ready-$(NUMBER)
override DEV    := $(VENV)/.dev-$(NUMBER)
# Modules are compiled to byte code when they are first imported, not all of torch's by pip.
override PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile -c constraints.txt
# Seconds of a part of the set-up go to stderr: what a command prints may be read by another program.
override PASSED  = $$(($$(date +%s) - start)) s

.PHONY: help setup data tokenizer encode plan compare sample export score marginal all demo trace study sweep tune
.PHONY: bench calibrate bench-train speedrun check-gpu ablate test test-slow test-deep faults check clean always
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@echo
	@echo '  EXPERIMENT=demo selects configs/demo.yaml, or give a path; there are:'
	@for file in configs/*.yaml; do file=$${file##*/}; printf '    %s\n' "$${file%.yaml}"; done
	@echo '  SET="train.seed=2 train.batch_size=16" replaces settings of the file.'

setup: $(READY) ## make .venv with what the commands need, and say how long each part took; nothing when up to date

$(READY): pyproject.toml constraints.txt
	@if [ ! -e $@ ]; then \
	  "$$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=…")' && \
	  { echo "set-up, once: an environment in $(VENV), then packages, then compiled kernels" >&2; start=$$(date +%s); } && \
	  "$$PYTHON" -m venv $(VENV) && \
	  { echo "  environment: $(PASSED)" >&2; start=$$(date +%s); } && \
	  $(PIP) -e . && \
	  { echo "  packages: $(PASSED)" >&2; start=$$(date +%s); } && \
	  $(BIN)/python -m scripts.warm >&2 && \
	  echo "  kernels: $(PASSED)" >&2 && \
	  rm -f $(VENV)/.ready-* && touch $@; \
	fi

$(DEV): $(READY)
	@if [ ! -e $@ ]; then \
	  { echo "set-up, once: the tools of tests and checks" >&2; start=$$(date +%s); } && \
	  $(PIP) -e '.[dev,interop,baselines]' && \
	  echo "  tools: $(PASSED)" >&2 && \
	  rm -f $(VENV)/.dev-* && touch $@; \
	fi

data: $(READY) ## fetch or build the corpus, clean it, cut it into splits
	@$(RUN) data

tokenizer: $(READY) ## train the tokenizers; VOCAB=1000 TRAINING_CHARACTERS=1000000 MIN_PAIR_FREQUENCY=2 ENGINE=reference
	@$(RUN) tokenizer

encode: $(READY) ## encode all splits with every tokenizer, and check that nothing is lost
	@$(RUN) encode

# With PROCESSES=2 two processes share every step; OMP_NUM_THREADS are the threads of each, by default all cores' share.
train-%: export MAKE_TARGET = $@
train-%: $(READY) always ## train and score one contestant: train-char, train-bpe, …; FORCE=1 starts again; PROCESSES=2
	@$(RUN) train

plan: $(READY) ## before training: steps, epochs, tokens per parameter, seconds, memory, disk, and warnings
	@$(RUN) plan

compare: $(READY) ## the table, the curves and the verdict; FAIL_IF=worse:bpe makes that a failure; EXPERIMENTS="a b" puts finished ones in one table
	@$(RUN) compare

sample: $(READY) ## let a model write; CONTESTANT=bpe PROMPT="The history of" PROMPT_FILE= PROMPTS= SAMPLES= TOKENS= TEMPERATURE= TOP_K= TOP_P= STOP= SEED= RUN_SEED= JSON=1
	@$(RUN) sample

export: $(READY) ## a model (FORMAT=transformers|safetensors|onnx) or a tokenizer (hf|tiktoken|gpt2|sentencepiece) for other tools; CONTESTANT=bpe OUT=folder RUN_SEED=
	@$(RUN) export

score: $(READY) ## bits per character of a causal model of transformers; MODEL=folder TEXT=path BLOCK= STRIDE= JSON=1
	@$(RUN) score

marginal: $(READY) ## how far BPE's own segmentation lies above all of them; CONTESTANT=bpe CHARACTERS=4000 SAMPLES= SEED=
	@$(RUN) marginal

all: compare ## everything above, for EXPERIMENT

demo: $(READY) ## the whole experiment offline, in a few minutes: the same as `make all EXPERIMENT=demo`
	@EXPERIMENT=demo $(RUN) compare

trace: $(READY) ## BPE training made visible; TEXT="aaa|aba" KIND= TIE_BREAK= SPLIT_PATTERN= MERGES= MIN_PAIR_FREQUENCY= JSON=1
	@$(RUN) trace

study: $(READY) ## one vocabulary's behaviour: reports/study.json and its picture; MERGES= WIDTH= GPT2=folder
	@$(RUN) study

sweep: $(READY) ## bits per character over vocabulary sizes: reports/sweep.json and its picture; of vocab_sweep by default
	@$(RUN) sweep

tune: $(READY) ## the same learning rates and batch sizes tried on every contestant: reports/tune.json; RATES=1e-3,2e-3 BATCHES=8,16 BUDGET=
	@$(RUN) tune

# Peers are no dependencies: name a Python that has them (and what constraints.txt lists) with BENCH_PYTHON.
bench: $(READY) ## ours next to every peer that can be imported; QUICK=1 ROWS=train,encode PEERS= REPEAT=5 BENCH_PYTHON=
	@$(RUN) bench

check-gpu: $(READY) ## 60 seconds of training on a GPU: tokens/s, MFU, one resume; exit code 2 without one; PEAK_TFLOPS= SECONDS_OF_TRAINING=
	@$(RUN) check-gpu

calibrate: $(READY) ## check the metric on text of known entropy, in a few minutes; exit code 1 if it is wrong
	@$(RUN) calibrate

bench-train: $(READY) ## tokens/s of training next to nanoGPT; NANOGPT=folder REPEAT=5 THREADS= NO_COMPILE=1
	@$(RUN) bench-train

speedrun: $(READY) ## seconds to nanoGPT's val loss, next to nanoGPT; TEXT=path NANOGPT=folder SEEDS=3 PRESETS=modern MODERN="steps=300" TARGET= SLICE= THREADS=
	@$(RUN) speedrun

ablate: $(READY) ## what each part of the modern preset is worth; CONTESTANT= UNIT=seconds AMOUNT=40 SEEDS=3 ONLY=beta1,table_rate
	@$(RUN) ablate

test: $(DEV) ## the tests
	@$(BIN)/python -m pytest

test-slow: $(DEV) ## the slow tests
	@$(BIN)/python -m pytest -m slow

test-deep: $(DEV) ## fifty times as many examples of the properties of engine, tokenizers and kernels; up to hours
	@HYPOTHESIS_PROFILE=deep $(BIN)/python -m pytest --timeout=0 tests/engine tests/bpe tests/gpt

faults: $(DEV) ## kills, refused writes, damaged files, mutated inputs; goes on where it was stopped; SEED=1 PART=damage COUNT=
	@OMP_NUM_THREADS=1 $(BIN)/python tests/faults/campaign.py

check: $(DEV) ## format, lint, types, import direction
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

clean: ## remove caches; results stay (`rm -r demo` removes the demo)
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info
	find data tokenizer model compare bench scripts tests -name __pycache__ -type d -prune -exec rm -rf {} +
