"""What was compared, by hash and in words."""

import platform
from collections.abc import Mapping, Sequence
from typing import Any

from compare.experiment import Experiment
from compare.outputs.comparison import Identity
from compare.outputs.held_equal import settings_in_words
from compare.runs import Entry
from data.show import counted
from model.report import SCORED


def identity_of(experiment: Experiment, entries: Sequence[Entry], corpus: Mapping[str, Any]) -> Identity:
    """What identifies the comparison of `entries`; `corpus` is the corpus manifest."""
    first = entries[0].runs[0]
    return Identity(
        reports={entry.name: tuple(run.report_sha256 for run in entry.runs) for entry in entries},
        fingerprints={entry.name: entry.runs[0].report.tokenizer.fingerprint for entry in entries},
        test_text_sha256=first.test.text_sha256,
        test_chars=first.test.num_chars,
        text_path=experiment.corpus.test or str(experiment.layout.split_text(experiment.corpus.corpus_name, "test")),
        model_shape=_of_each({entry.name: _model_shape(experiment, entry) for entry in entries}),
        batch=_of_each(
            {
                entry.name: f"{entry.runs[0].report.settings['train']['batch_size']:,} blocks of "
                f"{counted(entry.runs[0].report.block.tokens, 'token')}"
                for entry in entries
            }
        ),
        flops_formula=first.report.flops_formula,
        about=tuple(_about(experiment, entries, corpus)),
    )


def _model_shape(experiment: Experiment, entry: Entry) -> str:
    """Such as `4 layers of 128, 4 heads, block 64`."""
    report = entry.runs[0].report
    model = experiment.contestants[entry.name].model_config(report.tokenizer.vocab_size)
    layers, heads = counted(model.num_layers, "layer"), counted(model.num_heads, "head")
    return f"{layers} of {model.embedding_dim}, {heads}, block {report.block.tokens}"


def _of_each(words: Mapping[str, str]) -> str:
    """What all contestants share, or each one's own after its name."""
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return "; ".join(f"{name}: {own}" for name, own in words.items())


def normalized_in_words(name: str, entry: Mapping[str, Any]) -> str:
    """That the text is not as it was; `entry` is the manifest's."""
    return (
        f"all contestants are trained and scored on text that the tokenizer of {name} has normalised: "
        f"{counted(entry['changed_documents'], 'document')} of {entry['documents']:,} changed, "
        f"{entry['characters_before']:,} characters became {entry['characters_after']:,}"
    )


def _about(experiment: Experiment, entries: Sequence[Entry], corpus: Mapping[str, Any]) -> list[str]:
    """Corpus, cleaning, environment and identities."""
    first = entries[0].runs[0]
    environment = first.report.environment
    lines = [
        f"corpus {experiment.corpus.corpus_name}, cleaning {experiment.corpus.cleaning}; test text sha256 "
        f"{first.test.text_sha256}",
        "characters of val and test that never occur in train are part of the alphabet: "
        + ", ".join(f"{name} {len(corpus['splits'][name]['characters_absent_from_train'])}" for name in SCORED),
        f"torch {environment.torch}, {environment.device}, {counted(environment.num_threads, 'thread')}, "
        f"{environment.dtype}, Python {platform.python_version()}",
    ]
    if experiment.normalized_by is not None:
        lines.insert(1, normalized_in_words(experiment.normalized_by, corpus["normalization"]))
    lines.append(f"settings of {first.contestant}: {settings_in_words(first)}")
    lines += [f"{entry.name}: tokenizer {entry.runs[0].report.tokenizer.fingerprint}" for entry in entries]
    return lines
