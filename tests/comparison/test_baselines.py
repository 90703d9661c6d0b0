"""The baselines against figures made by hand and by direct calls, and their keeping on disk."""

import bz2
import dataclasses
import gzip
import json
import lzma
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from compare.baselines import kept_ngram as keeping
from compare.baselines import ngram_search, ppmd
from compare.baselines import scores as baselines
from compare.baselines.kept_ngram import kept_ngram
from compare.baselines.ngram import alphabet_of
from compare.baselines.ngram_search import search_order
from compare.baselines.result import Result
from compare.baselines.scores import BASELINES, FILE, Baseline, baselines_of
from data.errors import DataError
from data.files import sha256_text
from data.splits import Split
from ngram_helpers import KneserNey, NGramCounts

NAMES = [
    "uniform",
    "order-0",
    "gzip",
    "bz2",
    "xz",
    "gzip after train",
    "bz2 after train",
    "xz after train",
    "character n-gram",
]
QUICK = [name for name in NAMES if not name.startswith("xz")]


def split_of(name: str, documents: list[str]) -> Split:
    text = "".join(documents)
    return Split(name, text, np.cumsum([0, *map(len, documents)], dtype=np.int64), sha256_text(text))


def make_splits(**documents: list[str]) -> dict[str, Split]:
    given = {
        "train": ["the cat sat on the mat.\n", "a dog sat near the cat, and the cat left.\n"] * 30,
        "val": ["the dog left the mat.\n"],
        "test": ["the cat left the dog.\n", "no — the dog sat.\n"],
        **documents,
    }
    return {name: split_of(name, texts) for name, texts in given.items()}


def figures_of(found: dict[str, Result]) -> dict[str, float]:
    return {name: one.bits_per_char for name, one in found.items()}


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the baselines that were worked out, as they are; xz, slow to start, stays out."""
    names: list[str] = []

    def watched(baseline: Baseline) -> Baseline:
        def compute(splits: dict[str, Split]) -> Result:
            names.append(baseline.name)
            return baseline.compute(splits)

        return dataclasses.replace(baseline, compute=compute)

    monkeypatch.setattr(baselines, "BASELINES", tuple(watched(b) for b in BASELINES if b.name in QUICK))
    return names


def test_all_baselines_in_the_order_of_the_table(tmp_path: Path) -> None:
    found = baselines_of(make_splits(), tmp_path)
    assert [name for name in found if not name.startswith("PPMd")] == NAMES
    for one in found.values():
        assert isinstance(one.bits_per_char, float) and math.isfinite(one.bits_per_char)
        assert len(one.note) > 10


def test_uniform_is_exactly_the_logarithm_of_the_alphabet(tmp_path: Path) -> None:
    # a, b, c, d, e, f, g in one split or another, and the newline that every document continues: 8
    splits = make_splits(train=["abc"], val=["de"], test=["fg"])
    found = baselines_of(splits, tmp_path)
    assert figures_of(found)["uniform"] == 3.0
    assert "8 characters" in found["uniform"].note


def test_order_0_is_laplaces_rule_on_train() -> None:
    splits = make_splits()
    train, test = Counter(splits["train"].text), splits["test"].text
    alphabet = set("\n").union(*(split.text for split in splits.values()))
    bits = [-math.log2((train[c] + 1) / (train.total() + len(alphabet))) for c in test]
    assert "—" not in train
    assert math.isclose(baselines.order_0(splits).bits_per_char, sum(bits) / len(test), rel_tol=1e-12)


def test_order_0_is_never_below_the_entropy_of_the_test_text_itself() -> None:
    splits = make_splits()
    counts = Counter(splits["test"].text)
    entropy = -sum(n / counts.total() * math.log2(n / counts.total()) for n in counts.values())
    assert baselines.order_0(splits).bits_per_char > entropy


def test_compressors_are_what_direct_calls_say(tmp_path: Path) -> None:
    splits = make_splits()
    train, test = (splits[name].text.encode("utf-8") for name in ("train", "test"))
    num_chars = len(splits["test"].text)
    assert num_chars < len(test)  # the dash: sizes are in bytes, the figure is per character
    figures = figures_of(baselines_of(splits, tmp_path))
    for name, compress in {
        "gzip": lambda raw: gzip.compress(raw, 9, mtime=0),
        "bz2": lambda raw: bz2.compress(raw, 9),
        "xz": lambda raw: lzma.compress(raw, preset=9),
    }.items():
        assert figures[name] == 8 * len(compress(test)) / num_chars
        assert figures[f"{name} after train"] == 8 * (len(compress(train + test)) - len(compress(train))) / num_chars


def test_priming_helps_where_test_repeats_train() -> None:
    random = np.random.default_rng(1)
    passage = "".join(chr(c) for c in random.integers(97, 123, 3000)) + "\n"
    splits = make_splits(train=[passage], test=[passage])
    by_name = {baseline.name: baseline for baseline in BASELINES}
    for name in ("gzip", "xz"):
        alone, primed = (by_name[n].compute(splits).bits_per_char for n in (name, f"{name} after train"))
        assert primed < alone / 10
    assert by_name["xz"].compute(splits).bits_per_char > 4.6  # random letters: log2(26) = 4.70


def test_the_n_gram_takes_the_order_that_is_best_on_val() -> None:
    splits = make_splits()
    alphabet = alphabet_of([split.text for split in splits.values()])
    found = search_order(splits)
    tried = len(found.val_bits_per_char)
    assert tried >= 6
    counts = NGramCounts(splits["train"], alphabet, tried)
    models = {order: KneserNey(counts, order) for order in range(1, tried + 1)}
    on_val = {order: models[order].character_nats(splits["val"]).mean() / math.log(2) for order in models}
    assert found.val_bits_per_char == tuple(on_val.values())
    assert found.order == min(models, key=lambda order: on_val[order])
    for name in ("val", "test"):  # exactly: the same sums in the same order
        np.testing.assert_array_equal(found.nats[name], models[found.order].character_nats(splits[name]))
    result = baselines.n_gram(splits)
    nats = models[found.order].character_nats(splits["test"])
    assert math.isclose(result.bits_per_char, nats.sum() / math.log(2) / len(splits["test"].text), rel_tol=1e-12)
    assert f"order {found.order}, chosen on val" in result.note and "bound" not in result.note
    assert "fixed ones" in result.note  # such a small text cannot give all discounts, and the note says so


def long_repeats() -> dict[str, Split]:
    """Passages that part only after 20 equal characters: every order up to there is of use, and low ones do not do."""
    random = np.random.default_rng(2)
    letters = list("abcdefgh")
    passages = ["".join(random.choice(letters, 60)) + "\n" for _ in range(30)]
    shared = "".join(random.choice(letters, 12))
    chosen = ["".join(random.choice(letters, 2)) for _ in range(30)]
    texts = [first + shared + passage for first, passage in zip(chosen, passages, strict=True)] * 4
    return make_splits(train=texts, val=texts[:12], test=texts[12:20])


def test_the_order_is_raised_beyond_six_while_val_gains() -> None:
    found = search_order(long_repeats())
    assert found.order > 6 and not found.ended_at_bound
    assert found.val_bits_per_char[found.order - 1] < found.val_bits_per_char[5] - 0.002


def test_a_search_that_ends_at_its_bound_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngram_search, "ALWAYS_TRIED", 2)
    monkeypatch.setattr(ngram_search, "MAX_ORDER", 3)
    found = search_order(long_repeats())
    assert (found.order, len(found.val_bits_per_char), found.ended_at_bound) == (3, 3, True)
    assert "ended at its bound (order 3) while val still fell" in found.note


def test_the_n_gram_is_kept_and_made_anew_for_other_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kept_ngram(make_splits(), tmp_path)
    other = search_order(make_splits(val=["a cat.\n"]))
    assert kept_ngram(make_splits(val=["a cat.\n"]), tmp_path).val_bits_per_char == other.val_bits_per_char
    kept_ngram(make_splits(), tmp_path)
    with monkeypatch.context() as patch:
        patch.delattr(keeping, "search_order")  # what is kept is not counted again
        again = kept_ngram(make_splits(), tmp_path)
    assert again.note == first.note and again.order == first.order
    for name in ("val", "test"):
        np.testing.assert_array_equal(again.nats[name], first.nats[name])


@pytest.mark.parametrize("where", [0.1, 0.5, 0.99])
def test_a_damaged_n_gram_is_named_and_made_anew(where: float, tmp_path: Path) -> None:
    first = kept_ngram(make_splits(), tmp_path)
    path = tmp_path / keeping.FILE
    raw = bytearray(path.read_bytes())
    path.write_bytes(raw[: int(where * len(raw))])
    lines: list[str] = []
    again = kept_ngram(make_splits(), tmp_path, echo=lines.append)
    assert len(lines) == 1 and str(path) in lines[0] and "again" in lines[0]
    np.testing.assert_array_equal(again.nats["test"], first.nats["test"])


def test_without_pyppmd_its_rows_are_absent() -> None:
    assert [one.name for one in baselines.baselines_with(None)] == NAMES


def test_the_version_of_pyppmd_is_part_of_the_key() -> None:
    one, other = (baselines.baselines_with(version) for version in ("1.3.1", "1.4.0"))
    changed = {a.name for a, b in zip(one, other, strict=True) if a.version != b.version}
    assert changed == {"PPMd", "PPMd after train"}


def test_ppmd_takes_the_order_that_is_best_on_val(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {4: 100, 6: 90, 8: 80, 10: 85, 12: 1}  # val turns at 10, so 12 is never tried
    splits = make_splits()
    val, train = (splits[name].text.encode("utf-8") for name in ("val", "train"))

    def size(raw: bytes, order: int) -> int:
        return {val: sizes[order], train: 1000, train + val: 1000 + sizes[order]}.get(raw, 1007 + order)

    monkeypatch.setattr(ppmd, "compressed_size", size)
    num_chars = len(splits["test"].text)
    assert ppmd.alone(splits).bits_per_char == 8 * 1015 / num_chars
    primed = ppmd.after_train(splits)
    assert primed.bits_per_char == 8 * 15 / num_chars
    assert "order 8, chosen on val among 4: " in primed.note and "bound" not in primed.note


def test_ppmd_at_its_highest_order_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ppmd, "compressed_size", lambda raw, order: 1000 - order)
    assert "ended at its bound (order 64)" in ppmd.alone(make_splits()).note


@pytest.mark.skipif(ppmd.installed_version() is None, reason="pyppmd is not installed")
def test_ppmd_can_be_decompressed() -> None:
    import pyppmd

    raw = make_splits()["train"].text.encode("utf-8")
    packed = pyppmd.compress(raw, max_order=8, mem_size=ppmd.MEMORY_MIB << 20, variant="H")
    assert ppmd.compressed_size(raw, 8) == len(packed)
    assert pyppmd.Ppmd7Decoder(8, ppmd.MEMORY_MIB << 20).decode(packed, len(raw)) == raw


@pytest.mark.skipif(ppmd.installed_version() is None, reason="pyppmd is not installed")
def test_ppmd_figures_are_those_of_the_streaming_encoder() -> None:
    import pyppmd

    splits = make_splits()
    raw = {name: split.text.encode("utf-8") for name, split in splits.items()}

    def size(data: bytes, order: int) -> int:
        encoder = pyppmd.Ppmd7Encoder(order, ppmd.MEMORY_MIB << 20)
        return len(encoder.encode(data)) + len(encoder.flush())

    for found, before in ((ppmd.alone(splits), b""), (ppmd.after_train(splits), raw["train"])):
        order = int(found.note.partition("order ")[2].partition(",")[0])
        added = size(before + raw["test"], order) - (size(before, order) if before else 0)
        assert found.bits_per_char == 8 * added / len(splits["test"].text)
        assert f"{added:,} bytes" in found.note


def test_context_lowers_the_bits() -> None:
    splits = make_splits()
    assert baselines.n_gram(splits).bits_per_char < baselines.order_0(splits).bits_per_char - 1
    assert baselines.order_0(splits).bits_per_char < baselines.uniform(splits).bits_per_char


@pytest.mark.parametrize(
    "documents",
    [
        {"train": ["\n"], "val": ["\n"], "test": ["\n"]},
        {"train": ["a"], "val": ["", "a"], "test": ["", "b", ""]},
        {"train": ["", "ab\n"], "val": ["b"], "test": ["漢😀\n"]},
    ],
)
def test_the_smallest_texts_have_figures(documents: dict[str, list[str]], tmp_path: Path) -> None:
    for one in baselines_of(make_splits(**documents), tmp_path).values():
        assert math.isfinite(one.bits_per_char), one
        assert one.bits_per_char >= 0, one


@pytest.mark.parametrize("name", ["train", "val", "test"])
def test_a_split_without_characters_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"the {name} split holds no character"):
        baselines_of(make_splits(**{name: ["", ""]}), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_second_call_computes_nothing(computed: list[str], tmp_path: Path) -> None:
    first = baselines_of(make_splits(), tmp_path / "reports")
    assert sorted(computed) == sorted(QUICK)
    computed.clear()
    stamp = (tmp_path / "reports" / FILE).stat().st_mtime_ns
    assert baselines_of(make_splits(), tmp_path / "reports") == first
    assert computed == []
    assert (tmp_path / "reports" / FILE).stat().st_mtime_ns == stamp


@pytest.mark.parametrize("changed", ["train", "val", "test"])
def test_a_changed_text_computes_anew(changed: str, computed: list[str], tmp_path: Path) -> None:
    before = baselines_of(make_splits(), tmp_path)
    computed.clear()
    after = baselines_of(make_splits(**{changed: ["quite another text.\n"]}), tmp_path)
    assert sorted(computed) == sorted(QUICK)
    assert figures_of(after) != figures_of(before)


def test_changed_document_borders_compute_anew(computed: list[str], tmp_path: Path) -> None:
    splits = make_splits(val=["a dog sat near the cat, and the cat left.\n"])  # so that contexts beyond two serve
    before = figures_of(baselines_of(splits, tmp_path))
    computed.clear()
    joined = dataclasses.replace(splits["test"], document_offsets=splits["test"].document_offsets[[0, -1]])
    after = figures_of(baselines_of({**splits, "test": joined}, tmp_path))
    assert sorted(computed) == sorted(QUICK)
    assert after["character n-gram"] != before["character n-gram"]
    assert after["gzip"] == before["gzip"]


def test_a_new_version_of_one_method_computes_only_that_one(
    computed: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = baselines_of(make_splits(), tmp_path)
    computed.clear()
    raised = tuple(dataclasses.replace(b, version=b.version + "a" * (b.name == "bz2")) for b in baselines.BASELINES)
    monkeypatch.setattr(baselines, "BASELINES", raised)
    assert baselines_of(make_splits(), tmp_path) == before
    assert computed == ["bz2"]


def entry(**values: object) -> str:
    return json.dumps({"gzip": {"key": "0", "bits_per_char": 1.0, "note": "n", **values}})


@pytest.mark.parametrize(
    "damage",
    [
        '{"uniform": ',
        "[]",
        '{"uniform": 3}',
        entry(bits_per_char=None),
        entry(bits_per_char=math.nan),
        entry(note=1),
        entry(more=1),
        b"\xff\xfe{}",
    ],
)
def test_a_damaged_file_is_named_and_made_anew(damage: str | bytes, computed: list[str], tmp_path: Path) -> None:
    first = baselines_of(make_splits(), tmp_path)
    computed.clear()
    path = tmp_path / FILE
    path.write_bytes(damage if isinstance(damage, bytes) else damage.encode("utf-8"))
    lines: list[str] = []
    assert baselines_of(make_splits(), tmp_path, echo=lines.append) == first
    assert sorted(computed) == sorted(QUICK)
    assert len(lines) == 1 and str(path) in lines[0] and "making the baselines again" in lines[0]
    computed.clear()
    assert baselines_of(make_splits(), tmp_path, echo=lines.append) == first
    assert computed == [] and len(lines) == 1


def test_a_baseline_that_fails_stops_and_keeps_the_previous_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    baselines_of(make_splits(), tmp_path)
    written = (tmp_path / FILE).read_bytes()

    def fail(splits: dict[str, Split]) -> Result:
        raise MemoryError("no room")

    broken = tuple(dataclasses.replace(b, compute=fail) if b.name == "bz2" else b for b in BASELINES)
    monkeypatch.setattr(baselines, "BASELINES", broken)
    with pytest.raises(MemoryError, match="no room"):
        baselines_of(make_splits(test=["new\n"]), tmp_path)
    assert (tmp_path / FILE).read_bytes() == written


def test_nothing_is_printed_when_all_is_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baselines_of(make_splits(), tmp_path)
    assert capsys.readouterr().out == ""
