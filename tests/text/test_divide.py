"""Documents into splits: shares as near as whole documents allow, stable, equal texts together, clear refusals."""

import hashlib
import math
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from data.dividing.divide import MOST_DOCUMENTS_MOVED, clean_and_divide, describe_division, divide, place, text_key
from data.errors import DataError
from data.layout import SPLITS
from data.splits import Document

REPOSITORY = Path(__file__).resolve().parents[2]
FRACTIONS = (0.9, 0.05, 0.05)
SHARES = [FRACTIONS, (0.7, 0.15, 0.15), (0.5, 0.25, 0.25), (0.34, 0.33, 0.33), (0.1, 0.45, 0.45), (0.6, 0.3, 0.1)]


def documents(texts: Sequence[str]) -> list[Document]:
    return [Document(f"d{number}", text) for number, text in enumerate(texts)]


def split_of(texts: Sequence[str], fractions: Sequence[float]) -> dict[str, str]:
    """text -> its split; a text that stood in two would fail the count in the tests below."""
    divided = divide(documents(texts), fractions)
    return {document.text: split for split, found in divided.items() for document in found}


def numbers(texts: Sequence[str], fractions: Sequence[float]) -> list[int]:
    return [len(found) for found in divide(documents(texts), fractions).values()]


@pytest.mark.parametrize(
    ("num_documents", "fractions", "wanted"),
    [
        (3, FRACTIONS, [1, 1, 1]),
        (4, FRACTIONS, [2, 1, 1]),
        (12, (0.7, 0.15, 0.15), [8, 2, 2]),  # 8.4, 1.8, 1.8
        (12, FRACTIONS, [10, 1, 1]),
        (30, FRACTIONS, [26, 2, 2]),  # 27, 1.5, 1.5
        (12, (0.7075, 0.168, 0.1245), [9, 2, 1]),  # 8.49, 2.02, 1.49
        (40, (0.5, 0.25, 0.25), [20, 10, 10]),
        (5, (0.1, 0.45, 0.45), [1, 2, 2]),
        (4, (0.02, 0.49, 0.49), [1, 1, 2]),  # train keeps one
        (1000, FRACTIONS, [900, 50, 50]),
    ],
)
def test_shares_are_met_as_nearly_as_whole_documents_allow(
    num_documents: int, fractions: tuple[float, ...], wanted: list[int]
) -> None:
    for seed in range(5):  # whatever the texts are
        assert numbers([f"text {seed} {number}\n" for number in range(num_documents)], fractions) == wanted


def test_many_documents_stay_near_the_thresholds_on_their_hashes() -> None:
    texts = [f"document {number}" for number in range(20_000)]
    found = split_of(texts, FRACTIONS)
    moved = 0
    for text in texts:
        position = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
        moved += found[text] != ("train" if position < 0.9 else "val" if position < 0.95 else "test")
    assert moved < 200  # 1 %: the thresholds lie where the share is met exactly


def test_golden() -> None:
    """These must never change without a new MANIFEST_FORMAT: every user"s splits hang on them."""
    texts = ["a\n", "b\n", "Zoë\n", "😀\n", "document 7\n", "six\n", "seven\n", "eight\n"]
    keys = ["ca97", "3e23", "c6a1", "f044", "33f9", "4477", "3ba8", "c195"]
    assert [text_key(text)[:2].hex() for text in texts] == keys
    found = split_of(texts, (0.5, 0.25, 0.25))
    assert [found[text] for text in texts] == ["test", "train", "val", "test", "train", "train", "train", "val"]


def test_result_is_the_same_in_every_process() -> None:
    code = (
        "from data.dividing.divide import divide\nfrom data.splits import Document\n"
        "found = divide([Document('', f'd{n}') for n in range(200)], (0.5, 0.25, 0.25))\n"
        "print([[document.text for document in documents] for documents in found.values()])"
    )
    outputs = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, "-c", code], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1


def test_order_of_documents_decides_nothing_but_their_order() -> None:
    texts = [f"text {number % 70} {'x' * (number % 3)}" for number in range(200)]
    before = split_of(texts, (0.7, 0.15, 0.15))
    random.Random(1).shuffle(texts)
    assert split_of(texts, (0.7, 0.15, 0.15)) == before
    divided = divide(documents(texts), (0.7, 0.15, 0.15))
    for found in divided.values():
        positions = [int(document.name[1:]) for document in found]
        assert positions == sorted(positions)


@pytest.mark.parametrize("fractions", SHARES)
def test_adding_a_document_moves_at_most_three(fractions: tuple[float, ...]) -> None:
    rng = random.Random(str(fractions))
    most = 0
    for num_documents in [*range(3, 60), 200, 500]:
        texts = [f"text {rng.random()}" for _ in range(num_documents)]
        before, after = split_of(texts, fractions), split_of([*texts, f"new {rng.random()}"], fractions)
        most = max(most, sum(after[text] != split for text, split in before.items()))
    assert 0 < most <= MOST_DOCUMENTS_MOVED == 3


@pytest.mark.parametrize("fractions", SHARES)
def test_adding_a_copy_moves_few_texts(fractions: tuple[float, ...]) -> None:
    """Texts stand 1 to 4 times and every split wants more, so that none is one that always falls to train."""
    rng = random.Random(str(fractions))
    for _ in range(300):
        sizes = {rng.randbytes(4): rng.randint(1, 4) for _ in range(rng.randint(60, 90))}
        grown = rng.choice([key for key, size in sizes.items() if size < 4])
        before, after = place(sizes, fractions), place({**sizes, grown: sizes[grown] + 1}, fractions)
        assert min(Counter(after[key] for key in after for _ in range(sizes[key])).values()) > 1
        assert sum(before[key] != after[key] for key in sizes) <= MOST_DOCUMENTS_MOVED + 4


def test_documents_equal_up_to_white_space_stay_together_after_cleaning() -> None:
    variants = ["{}\n", "{}\r\n", "{} \n", "\n {}", "{}\u00a0"]
    raw = [variants[number % 5].format(f"text  {number // 5}") for number in range(400)]
    divided, _ = clean_and_divide(documents(raw), "minimal", (0.6, 0.2, 0.2))
    found = [{text_key(document.text) for document in divided[split]} for split in SPLITS]
    assert sum(map(len, found)) == 80 == len(set.union(*found))
    assert [len(divided[split]) for split in SPLITS] == [240, 80, 80]


def test_text_repeated_more_often_than_a_split_has_documents_falls_to_train() -> None:
    for seed in range(30):  # wherever its hash lies
        texts = ["N/A\n"] * 300 + [f"text {seed} {number}\n" for number in range(700)]
        divided = divide(documents([f"{text}{seed}" if text == "N/A\n" else text for text in texts]), FRACTIONS)
        assert [len(found) for found in divided.values()] == [900, 50, 50]
        assert sum(document.text.startswith("N/A") for document in divided["train"]) == 300


def test_case_57_repeated_one_letter_lines_are_divided() -> None:
    lines = [chr(ord("a") + number % 26) for number in range(400)]
    divided = divide(documents(lines), FRACTIONS)
    assert Counter(document.text for found in divided.values() for document in found) == Counter(lines)
    sets = [{document.text for document in divided[split]} for split in SPLITS]
    assert sum(map(len, sets)) == 26 and all(sets)
    assert [len(divided[split]) for split in SPLITS] == pytest.approx([360, 20, 20], abs=10)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            ["a"] * 400,
            r"the 400 documents hold only 1 distinct text, and documents equal up to white space stay in one",
        ),
        (["a", "b ", " b"] * 200, r"the 600 documents hold only 2 distinct texts, .*: give texts that differ"),
        (["only"], r"need a document each, and the corpus holds 1 document; ask for more"),
        (["one", "two"], r"need a document each, and the corpus holds 2 documents; ask for more"),
        ([], r"the corpus is empty: no document holds more than white space; ask for more"),
        (["", "\ufeff", " \n", "\t"], r"the corpus is empty: no document holds more than white space"),
        (["one", "two", " \n", "\t\n"], r"and the corpus holds 2 documents"),
    ],
)
def test_case_57_too_few_texts_are_refused_with_the_cause(texts: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        clean_and_divide(documents(texts), "minimal", FRACTIONS, "ask for more")
    assert ("ask for more" in str(caught.value)) == ("distinct" not in str(caught.value))


def test_documents_of_white_space_fill_no_split() -> None:
    for blank in ("\n", " \n", "\u3000\n"):
        divided, counts = clean_and_divide(documents(["one", "two", "three", *[blank] * 9]), "minimal", FRACTIONS)
        assert [len(divided[split]) for split in SPLITS] == [10, 1, 1]
        assert counts["white_space_only_documents"] == 9
        assert all(document.text == blank for document in divided["train"] if not document.text.strip())


def test_description_names_the_longest_and_shortest_documents() -> None:
    divided = divide([Document(f"n{n}", "x" * n, split) for n, split in ((3, "train"), (9, "train"), (4, "val"))] +
                     [Document("n3 again", "xxx", "test")], FRACTIONS)  # fmt: skip
    found = describe_division(divided, FRACTIONS)
    assert found["by"] == "the source" and found["fractions"] is None
    assert (found["documents"], found["distinct_documents"]) == (4, 3)
    assert found["longest_document"]["train"] == {"name": "n9", "characters": 9}
    assert found["shortest_document"]["train"] == {"name": "n3", "characters": 3}
    assert found["longest_document"]["val"] == found["shortest_document"]["val"] == {"name": "n4", "characters": 4}


def test_place_prefers_the_nearest_border_between_texts() -> None:
    keys = [bytes([number]) for number in range(6)]
    sizes = dict(zip(keys, [6, 2, 3, 1, 2, 3], strict=True))  # borders at 0 6 8 11 12 14 17
    wanted = {split: math.floor(share * 17 + 0.5) for split, share in zip(SPLITS, (0.6, 0.2, 0.2), strict=True)}
    assert (wanted["val"], wanted["test"]) == (3, 3)  # 14 and 11 are borders
    placed = place(sizes, (0.6, 0.2, 0.2))
    assert [placed[key] for key in keys] == ["train"] * 3 + ["val"] * 2 + ["test"]
