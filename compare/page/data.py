"""Everything the page shows, as one plain dict: figures from the comparison, the rest from stored losses and texts.

Nothing here draws or formats for the eye beyond shortening names; `render` draws what this module returns.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compare.baselines.scores import GUESSES, PRIMED
from compare.characters import RULE, document_char_offsets, document_nats
from compare.figures import figure, seeds_in_words
from compare.page.passage import passage
from compare.runs import Entry, Run, all_runs, check_comparable
from compare.table import Row, table_cells
from data.errors import ReportError, command
from data.files import canonical_json
from data.splits import Split
from model.evaluate import Evaluation
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS, ByteTokenizer
from tokenizer.char import CharTokenizer

Float64Array = NDArray[np.float64]

MOST_TOKENIZER_BYTES = 1_500_000  # of all embedded vocabularies together, as JSON; keeps the page below 3 MB
MOST_DOCUMENTS = 1_000  # points of one scatter picture
MOST_PAIRS = 3  # scatter pictures
_NAME_CHARACTERS = 60
_VIEWER_CHARACTERS = 160
_WORD_CHARACTERS = 16
_BUDGET_COLUMNS = 26
_CURVES = (
    ("characters", "characters seen", "millions", 1e6),
    ("flops", "training FLOPs", "10¹²", 1e12),
    ("seconds", "training time", "seconds", 1.0),
)
_OPTIONAL = ("statistics", "baselines", "where_bits_go", "intrinsic", "sweep", "ladder")


def page_data(
    *,
    summary: Mapping[str, Any],
    entries: Sequence[Entry],
    splits: Mapping[str, Split],
    tokenizers: Mapping[str, Tokenizer],
    samples: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, Any]:
    """The page of a comparison as a JSON-ready dict.

    `summary` is what comparison.json holds and the words of the answer: `answer` (a few sentences), `how_sure` (a list
    of them), `noise` (a sentence or None), `text_path`, `model_shape` and `batch`. The optional parts (statistics,
    baselines, where_bits_go, intrinsic, sweep, ladder) may be missing or None and are then left out of the page, and
    so may `marginal_sentences`. `entries` are the contestants with their runs, one per seed; `samples` each
    contestant's texts as {"prompt", "text", "temperature"}.
    Raises ReportError if the runs cannot be compared, or were not scored on the test split given.
    """
    test = splits["test"]
    check_comparable(all_runs(entries))
    evaluations = {entry.name: entry.evaluation("test") for entry in entries}
    for name, evaluation in evaluations.items():
        _check_text(name, evaluation, test)
    typical = passage(test, evaluations)
    data: dict[str, Any] = {
        "experiment": summary["experiment"],
        **{key: summary[key] for key in ("answer", "how_sure", "noise")},
        "compared": _compared(summary, entries),
        "contestants": [_contestant(entry, evaluations[entry.name]) for entry in entries],
        "test": {"num_chars": len(test.text), "num_documents": len(test.document_offsets) - 1},
        "table": table_cells([Row.from_json(row) for row in summary["rows"]]),
        "not_held_equal": list(summary["not_held_equal"]),
        "marginal": list(summary.get("marginal_sentences", ())),
        "curves": curves(entries),
        "levels": levels(summary.get("baselines") or ()),
        "documents": documents(test, evaluations),
        "passage": typical,
        "viewer": {"text": opening(typical["text"]), "word": longest_word(typical["text"])},
        "tokenizers": embedded_tokenizers(tokenizers),
        "samples": {name: [dict(sample) for sample in samples[name]] for name in samples},
        "formulas": {"flops": summary["flops_formula"], "rule": RULE},
        "provenance": _provenance(summary, entries, splits),
    }
    return data | {key: summary.get(key) for key in _OPTIONAL}


def _compared(summary: Mapping[str, Any], entries: Sequence[Entry]) -> list[list[str]]:
    """[label, value] of what the contestants share: text, model, batch, budget and seeds."""
    budgets = {(run.report.train.budget.unit, run.report.train.budget.amount) for run in all_runs(entries)}
    if len(budgets) == 1:
        [(unit, amount)] = budgets
        budget = f"{figure(amount, '{:,}', _BUDGET_COLUMNS)} {unit}"
    else:
        budget = "not the same for all"
    seeds = [run.seed for run in entries[0].runs]
    return [
        ["text", summary["text_path"]],
        ["model", summary["model_shape"]],
        ["batch", summary["batch"]],
        ["budget", budget],
        ["seed" if len(seeds) == 1 else "seeds", seeds_in_words(seeds)],
    ]


def levels(baselines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What stands as level lines in the curves: the n-gram, and each compressor in the better of its two ways."""
    best: dict[str, dict[str, Any]] = {}
    for one in baselines:
        level = {"name": one["name"], "bits_per_char": one["bits_per_char"]}
        program = one["name"].removesuffix(PRIMED)
        if one["name"] in GUESSES:
            continue
        if program not in best or level["bits_per_char"] < best[program]["bits_per_char"]:
            best[program] = level
    return list(best.values())


def opening(text: str) -> str:
    """The beginning of a passage that the token viewer starts with: about 160 characters, cut at white space.

    A text without white space is cut between any two characters.
    """
    stripped = text.lstrip("\n")
    if len(stripped) <= _VIEWER_CHARACTERS:
        return stripped
    cut = max(
        (match.end() for match in re.finditer(r"\S(?=\s)", stripped[: _VIEWER_CHARACTERS + 1])),
        default=_VIEWER_CHARACTERS,
    )
    return stripped[: cut if cut > _VIEWER_CHARACTERS // 2 else _VIEWER_CHARACTERS]


def longest_word(text: str) -> str:
    """The first of the longest words of `text`, with the space before it; at most 16 characters of it."""
    words = re.findall(r" ?\S+", text)
    return str(max(words, key=lambda word: min(len(word), _WORD_CHARACTERS), default=text))[:_WORD_CHARACTERS]


def _check_text(name: str, evaluation: Evaluation, test: Split) -> None:
    if evaluation.text_sha256 != test.sha256:
        raise ReportError(
            f"{name} was scored on a test text with sha256 {evaluation.text_sha256[:12]}…, but the test split is "
            f"{test.sha256[:12]}…; run {command('make all')} to score it again"
        )
    if not np.array_equal(document_char_offsets(evaluation), test.document_offsets):
        raise ReportError(
            f"{name}'s documents do not begin where those of the test split do; run {command('make all')}"
        )


def _contestant(entry: Entry, evaluation: Evaluation) -> dict[str, Any]:
    tokenizer = entry.runs[0].report.tokenizer
    return {
        "name": entry.name,
        "kind": tokenizer.kind,
        "vocab_size": tokenizer.vocab_size,
        "num_seeds": len(entry.runs),
        "bits_per_char": float(np.mean([run.test.bits_per_char for run in entry.runs])),
        "chars_per_token": evaluation.num_chars / len(evaluation.nats),
    }


def curves(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Bits per character on the val sample against characters, FLOPs and seconds: mean and range over the seeds."""
    pictures = []
    for quantity, label, unit, size in _CURVES:
        series = []
        for entry in entries:
            points = [_val_points(run, quantity, size) for run in entry.runs]
            points = [(x, y) for x, y in points if len(x)]
            if points:
                series.append({"name": entry.name, "num_seeds": len(points), **_band(points)})
        pictures.append({"quantity": quantity, "label": label, "unit": unit, "series": series})
    return pictures


def _val_points(run: Run, quantity: str, size: float) -> tuple[Float64Array, Float64Array]:
    records = [record for record in run.metrics if "val_sample_bits_per_char" in record]
    x = np.array([record[quantity] for record in records], np.float64) / size
    return x, np.array([record["val_sample_bits_per_char"] for record in records], np.float64)


def _band(points: Sequence[tuple[Float64Array, Float64Array]]) -> dict[str, Any]:
    """The seeds on the first one's abscissae (straight lines between points), where all of them have values."""
    start, end = max(x[0] for x, _ in points), min(x[-1] for x, _ in points)
    first = points[0][0]
    grid = np.unique(np.clip(first, start, end)) if start <= end else first
    values = np.array([np.interp(grid, x, y) for x, y in points])  # (seeds, points)
    return {
        "x": _rounded(grid),
        "mean": _rounded(values.mean(axis=0)),
        "low": _rounded(values.min(axis=0)),
        "high": _rounded(values.max(axis=0)),
    }


def _rounded(values: Float64Array, digits: int = 6) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in values.tolist()]


def documents(test: Split, evaluations: Mapping[str, Evaluation]) -> dict[str, Any]:
    """Bits per character of each test document under every contestant, and which pairs are drawn.

    Of more than MOST_DOCUMENTS documents the longest are kept. Every contestant is set against the best one, at most
    MOST_PAIRS pictures.
    """
    num_chars = np.diff(test.document_offsets)
    shown = np.flatnonzero(num_chars > 0)
    if len(shown) > MOST_DOCUMENTS:
        shown = np.sort(shown[np.argsort(-num_chars[shown], kind="stable")[:MOST_DOCUMENTS]])
    texts = test.documents()
    ranked = sorted(evaluations, key=lambda name: (evaluations[name].bits_per_char, name))
    bits = {name: document_nats(evaluations[name])[shown] / math.log(2) / num_chars[shown] for name in evaluations}
    return {
        "num_documents": len(num_chars),
        "num_shown": len(shown),
        "names": [document_name(texts[index]) for index in shown.tolist()],
        "num_chars": num_chars[shown].tolist(),
        "bits_per_char": {name: _rounded(values, 4) for name, values in bits.items()},
        "pairs": [[other, ranked[0]] for other in ranked[1 : MOST_PAIRS + 1]],
    }


def document_name(text: str) -> str:
    """A document's first line that is not blank, shortened; how the page speaks of it."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "(blank document)")
    return line if len(line) <= _NAME_CHARACTERS else line[: _NAME_CHARACTERS - 1].rstrip() + "…"


def embedded_tokenizers(tokenizers: Mapping[str, Tokenizer]) -> list[dict[str, Any]]:
    """What the browser needs to encode as Python does: base tokens in id order and the merges as pairs of ids.

    A vocabulary too large for the page, or of a kind that it does not know, has `left_out`, the reason.
    """
    embedded, bytes_left = [], MOST_TOKENIZER_BYTES
    for name, tokenizer in tokenizers.items():
        entry: dict[str, Any] = {"name": name, "kind": tokenizer.kind, "vocab_size": tokenizer.vocab_size}
        contents = _contents(tokenizer)
        if contents is None:
            entry["left_out"] = f"the page cannot encode tokenizers of kind {tokenizer.kind!r}"
        else:
            num_bytes = len(canonical_json(contents).encode("utf-8"))
            if num_bytes > bytes_left:
                entry["left_out"] = (
                    f"its vocabulary of {tokenizer.vocab_size:,} takes {num_bytes / 1e6:.1f} MB, and the page has "
                    f"{bytes_left / 1e6:.1f} MB left for vocabularies"
                )
            else:
                bytes_left -= num_bytes
                entry |= contents
        embedded.append(entry)
    return embedded


def _contents(tokenizer: Tokenizer) -> dict[str, Any] | None:
    if isinstance(tokenizer, ByteTokenizer):
        return {"split_pattern": "none", "base": "".join(BYTE_CHARACTERS), "merges": []}
    if isinstance(tokenizer, CharTokenizer):
        return {"split_pattern": "none", "base": "".join(tokenizer.base_tokens), "merges": []}
    if isinstance(tokenizer, BPETokenizer):
        ids = [tokenizer.stoi[half] for pair in tokenizer.merges for half in pair]
        base = "".join(tokenizer.base_tokens)
        return {"split_pattern": tokenizer.split_pattern, "base": base, "merges": ids}
    return None


def _provenance(
    summary: Mapping[str, Any], entries: Sequence[Entry], splits: Mapping[str, Split]
) -> list[dict[str, Any]]:
    """Groups of [label, value]: what the page was made from, by hash."""
    corpus = summary["corpus"]
    source = [["source", str(corpus["source"])], ["revision", str(corpus.get("revision") or "none")]]
    source.append(["cleaning", str(corpus["cleaning"]["name"])])
    counts = {key: value for key, value in corpus["cleaning"].items() if key != "name" and value}
    source += [[key.replace("_", " "), str(value)] for key, value in counts.items()]
    source += [[f"{key} (making the text)", str(value)] for key, value in corpus["versions"].items()]
    groups = [{"title": "Corpus", "items": source}]
    groups.append({"title": "Texts, sha256", "items": [[name, split.sha256] for name, split in splits.items()]})
    for entry in entries:
        items = [["tokenizer fingerprint", entry.runs[0].report.tokenizer.fingerprint]]
        for run in entry.runs:
            seed = f", seed {run.seed}"
            items += [
                [f"report.json{seed}", run.report_sha256],
                [f"checkpoint{seed}", run.report.checkpoint_sha256],
                [f"test losses{seed}", run.test.nats_sha256],
            ]
        groups.append({"title": f"Contestant {entry.name}", "items": items})
    environment = entries[0].runs[0].report.stored["environment"]
    items = [[key.replace("_", " "), str(value)] for key, value in environment.items()]
    groups.append({"title": "Training environment", "items": items})
    return groups
