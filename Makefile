# The user's command line. Every target first makes what it needs, the environment included, and nothing that is up
# to date; what is up to date is decided by content, in the scripts. `make help` lists the targets below.

EXPERIMENT ?= wikitext2
CONTESTANT ?= bpe
PYTHON     ?= python3

VENV  := .venv
BIN   := $(VENV)/bin
# Settings of the file to replace, such as SET="train.seed=2 train.batch_size=16".
WITH  := --config $(EXPERIMENT) $(foreach setting,$(SET),--set $(setting))
# The environment is up to date while pyproject.toml and constraints.txt hold what they held when it was made.
READY := $(VENV)/.ready-$(shell cat pyproject.toml constraints.txt | cksum | cut -d ' ' -f 1)

export PROMPT TEXT

.PHONY: help setup data tokenizer encode train compare sample marginal all demo trace study sweep tune bench calibrate
.PHONY: bench-train speedrun check-gpu ablate test test-slow check clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@echo
	@echo "  EXPERIMENT=$(EXPERIMENT) selects configs/$(EXPERIMENT).yaml (there: $(basename $(notdir $(wildcard configs/*.yaml))));"
	@echo "  SET=\"train.seed=2\" replaces settings of the file."

setup: $(READY) ## make .venv with everything in it; does nothing when it is up to date

$(READY): pyproject.toml constraints.txt
	@if [ ! -e $@ ]; then \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=…")' && \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' && \
	  $(BIN)/python -m scripts.warm && \
	  rm -f $(VENV)/.ready-* && touch $@; \
	fi

data: $(READY) ## fetch or build the corpus, clean it, cut it into splits
	@$(BIN)/python -m scripts.data $(WITH)

tokenizer: $(READY) ## train the tokenizers; VOCAB=1000 TRAINING_CHARACTERS=1000000 MIN_PAIR_FREQUENCY=2
	@$(BIN)/python -m scripts.tokenizer $(WITH) $(if $(VOCAB),--vocab $(VOCAB)) \
	  $(if $(TRAINING_CHARACTERS),--training-characters $(TRAINING_CHARACTERS)) \
	  $(if $(MIN_PAIR_FREQUENCY),--min-pair-frequency $(MIN_PAIR_FREQUENCY)) $(if $(ENGINE),--engine $(ENGINE))

encode: $(READY) ## encode all splits with every tokenizer, proven lossless
	@$(BIN)/python -m scripts.encode $(WITH)

# With PROCESSES=2 two processes share every step; OMP_NUM_THREADS are the threads of each, by default all cores' share.
SHARED = OMP_NUM_THREADS=$${OMP_NUM_THREADS:-$$(( ($$(getconf _NPROCESSORS_ONLN) + $(PROCESSES) - 1) / $(PROCESSES) ))} \
  $(BIN)/python -m torch.distributed.run --standalone --nproc-per-node=$(PROCESSES)
train-%: $(READY) ## train and score one contestant: train-char, train-bpe, …; FORCE=1 begins anew; PROCESSES=2
	@$(if $(PROCESSES),$(SHARED),$(BIN)/python) -m scripts.train $(WITH) --contestant $* $(if $(FORCE),--force)

compare: $(READY) ## the table, the curves and the verdict
	@$(BIN)/python -m scripts.compare $(WITH)

sample: $(READY) ## let a model write; CONTESTANT=bpe PROMPT="The history of" TOKENS= TEMPERATURE= TOP_K= SEED=
	@$(BIN)/python -m scripts.sample $(WITH) --contestant $(CONTESTANT) --prompt "$$PROMPT" \
	  $(if $(TOKENS),--tokens $(TOKENS)) $(if $(TEMPERATURE),--temperature $(TEMPERATURE)) \
	  $(if $(TOP_K),--top-k $(TOP_K)) $(if $(SEED),--seed $(SEED)) $(if $(RUN_SEED),--run-seed $(RUN_SEED))

marginal: $(READY) ## how far BPE's own segmentation lies above all of them; CONTESTANT=bpe CHARACTERS=4000 SAMPLES= SEED=
	@$(BIN)/python -m scripts.marginal $(WITH) --contestant $(CONTESTANT) $(if $(CHARACTERS),--characters $(CHARACTERS)) \
	  $(if $(SAMPLES),--samples $(SAMPLES)) $(if $(SEED),--seed $(SEED))

all: compare ## everything above, for EXPERIMENT

demo: ## the whole experiment offline, in a few minutes: the same as `make all EXPERIMENT=demo`
	@$(MAKE) --no-print-directory all EXPERIMENT=demo

trace: $(READY) ## BPE training made visible; TEXT="aaa|aba" KIND= TIE_BREAK= SPLIT_PATTERN= MERGES= MIN_PAIR_FREQUENCY= JSON=1
	@$(BIN)/python -m scripts.trace $(if $(KIND),--kind $(KIND)) $(if $(TIE_BREAK),--tie-break $(TIE_BREAK)) \
	  $(if $(SPLIT_PATTERN),--split-pattern $(SPLIT_PATTERN)) $(if $(MERGES),--merges $(MERGES)) \
	  $(if $(MIN_PAIR_FREQUENCY),--min-pair-frequency $(MIN_PAIR_FREQUENCY)) $(if $(JSON),--json) $(if $(TEXT),-- "$$TEXT")

# Study and benchmark take the offline corpus unless another experiment is named.
OFFLINE := --config $(if $(filter file,$(origin EXPERIMENT)),demo,$(EXPERIMENT)) $(foreach setting,$(SET),--set $(setting))

study: $(READY) ## one vocabulary's behaviour: reports/study.json and its picture; MERGES= WIDTH= GPT2=folder
	@$(BIN)/python -m scripts.study $(OFFLINE) $(if $(MERGES),--merges $(MERGES)) $(if $(WIDTH),--width $(WIDTH)) \
	  $(if $(GPT2),--gpt2 $(GPT2))

sweep: $(READY) ## bits per character over vocabulary sizes: reports/sweep.json and its picture; of vocab_sweep by default
	@$(BIN)/python -m scripts.sweep --config $(if $(filter file,$(origin EXPERIMENT)),vocab_sweep,$(EXPERIMENT)) \
	  $(foreach setting,$(SET),--set $(setting))

tune: $(READY) ## the same learning rates tried on every contestant: reports/tune.json; RATES=1e-3,2e-3 BUDGET= WRITE=1
	@$(BIN)/python -m scripts.tune $(WITH) $(if $(RATES),--rates "$(RATES)") $(if $(BUDGET),--budget $(BUDGET)) \
	  $(if $(WRITE),--write)

# Peers are no dependencies: name a Python that has them (and what constraints.txt lists) with BENCH_PYTHON.
BENCH_PYTHON ?= $(BIN)/python
bench: $(READY) ## ours beside every peer that can be imported; QUICK=1 ROWS=train,encode PEERS= REPEAT=5 BENCH_PYTHON=
	@$(BENCH_PYTHON) -m scripts.bench_tokenizer $(OFFLINE) $(if $(QUICK),--quick) $(if $(ROWS),--rows $(ROWS)) \
	  $(if $(PEERS),--peers $(PEERS)) $(if $(REPEAT),--repeat $(REPEAT))

check-gpu: $(READY) ## 60 seconds of training on a GPU: tokens/s, MFU, one resume; exit code 2 without one; PEAK_TFLOPS=
	@$(BIN)/python -m scripts.check_gpu $(if $(PEAK_TFLOPS),--peak-tflops $(PEAK_TFLOPS)) $(if $(SECONDS_OF_TRAINING),--seconds $(SECONDS_OF_TRAINING))

calibrate: $(READY) ## prove the ruler straight on text of known entropy, in a few minutes; exit code 1 if it is bent
	@$(BIN)/python -m scripts.calibrate

bench-train: $(READY) ## tokens/s of training beside nanoGPT; NANOGPT=folder REPEAT=5 THREADS= NO_COMPILE=1
	@$(BIN)/python -m scripts.bench_train $(if $(NANOGPT),--nanogpt "$(NANOGPT)") $(if $(REPEAT),--repeat $(REPEAT)) \
	  $(if $(THREADS),--threads $(THREADS)) $(if $(NO_COMPILE),--no-compile)

speedrun: $(READY) ## seconds to nanoGPT's val loss, beside nanoGPT; TEXT=path NANOGPT=folder SEEDS=3 PRESETS=modern MODERN="steps=300"
	@$(BIN)/python -m scripts.speedrun $(OFFLINE) $(if $(TEXT),--text "$$TEXT") \
	  $(if $(NANOGPT),--nanogpt "$(NANOGPT)") $(if $(SEEDS),--seeds $(SEEDS)) $(foreach pair,$(MODERN),--modern $(pair)) \
	  $(if $(TARGET),--target $(TARGET)) $(if $(PRESETS),--presets $(PRESETS)) $(if $(SLICE),--slice $(SLICE)) \
	  $(if $(THREADS),--threads $(THREADS))

ablate: $(READY) ## what each part of the modern preset is worth; CONTESTANT= UNIT=seconds AMOUNT=40 SEEDS=3
	@$(BIN)/python -m scripts.ablate $(OFFLINE) $(if $(filter file,$(origin CONTESTANT)),,--contestant $(CONTESTANT)) \
	  $(if $(UNIT),--unit $(UNIT)) $(if $(AMOUNT),--amount $(AMOUNT)) $(if $(SEEDS),--seeds $(SEEDS))

test: $(READY) ## the tests
	@$(BIN)/python -m pytest

test-slow: $(READY) ## the slow tests
	@$(BIN)/python -m pytest -m slow

check: $(READY) ## format, lint, types, import direction
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

clean: ## remove caches; results stay (`rm -r demo` removes the demo)
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info
	find data tokenizer model compare scripts tests -name __pycache__ -type d -prune -exec rm -rf {} +
