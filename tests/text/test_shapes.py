"""Reading JSON of a stated shape: every wrong shape is one sentence with the file, the key and the command."""

import json
from pathlib import Path

import pytest

from data.errors import DataError
from data.shapes import Kinds, check_object, read_object

FIELDS: dict[str, Kinds] = {
    "name": str,
    "count": int,
    "share": float,
    "note": (str, type(None)),
    "splits": dict,
    "anything": None,
}
GOOD = {"name": "a", "count": 1, "share": 1, "note": None, "splits": {}, "anything": None, "more": 7}


def test_what_fits_is_given_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "good.json"
    path.write_text(json.dumps(GOOD))
    assert read_object(path, FIELDS, mend="make it") == GOOD


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "key 'name' is missing"),
        ("[]", "expected an object, found a list of 0"),
        ("null", "expected an object, found null"),
        ('"text"', "expected an object, found 'text'"),
        ("", "is not valid JSON"),
        ("{", "is not valid JSON"),
        (json.dumps({**GOOD, "name": None}), "key 'name': expected a string, found null"),
        (json.dumps({**GOOD, "count": True}), "key 'count': expected a whole number, found True"),
        (json.dumps({**GOOD, "count": 1.5}), "key 'count': expected a whole number, found 1.5"),
        (json.dumps({**GOOD, "share": "x" * 99}), "key 'share': expected a number, found 'xxx"),
        (json.dumps({**GOOD, "note": []}), "key 'note': expected a string or null, found a list of 0"),
        (json.dumps({**GOOD, "splits": [1]}), "key 'splits': expected an object, found a list of 1"),
    ],
)
def test_a_wrong_shape_names_file_key_and_command(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(DataError) as raised:
        read_object(path, FIELDS, mend="make it")
    message = str(raised.value)
    assert message.startswith(str(path)) and said in message and message.endswith("; run `make it`")
    assert "\n" not in message


def test_a_missing_file_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.json does not exist; run `make it`$"):
        read_object(tmp_path / "none.json", FIELDS, mend="make it")


def test_an_inner_object_is_named_by_its_place() -> None:
    with pytest.raises(DataError, match=r"^m\.json: splits\.val: key 'num' is missing; run `make it`$"):
        check_object({}, {"num": int}, where="m.json: splits.val", mend="make it")
