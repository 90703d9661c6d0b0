"""Strict mapping -> dataclass: nothing unknown, nothing missing, no wrong type; every message says where."""

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from data.config import build, convert, did_you_mean, require
from data.errors import ConfigError


@dataclass(frozen=True)
class Inner:
    rate: float
    kind: Literal["linear", "cosine"] = "linear"

    def __post_init__(self) -> None:
        require(self.rate > 0, f"`rate` must be above 0, found {self.rate}")


@dataclass(frozen=True)
class Outer:
    steps: int
    inner: Inner
    label: str = "x"
    flag: bool = False
    limit: int | None = None
    shares: tuple[float, ...] = (0.5, 0.5)
    parts: tuple[Inner, ...] = ()
    extra: dict[str, int] = field(default_factory=dict)


GOOD: dict[str, Any] = {"steps": 3, "inner": {"rate": 0.1}}


def test_defaults_fill_what_is_not_given() -> None:
    assert build(Outer, GOOD, "e.yaml") == Outer(steps=3, inner=Inner(rate=0.1))


def test_everything_can_be_given() -> None:
    values = {
        "steps": 5,
        "inner": {"rate": 1, "kind": "cosine"},
        "label": "y",
        "flag": True,
        "limit": 7,
        "shares": [1, "2e-1"],
        "parts": [{"rate": 2}, {"rate": 3}],
    }
    built = build(Outer, values, "e.yaml")
    assert built == Outer(5, Inner(1.0, "cosine"), "y", True, 7, (1.0, 0.2), (Inner(2.0), Inner(3.0)))
    assert isinstance(built.inner.rate, float)


def test_unknown_key_names_file_and_suggests() -> None:
    with pytest.raises(ConfigError, match=r"^e\.yaml: unknown key 'stpes'; did you mean 'steps'\?$"):
        build(Outer, {**GOOD, "stpes": 1}, "e.yaml")


def test_unknown_nested_key_names_the_path() -> None:
    with pytest.raises(ConfigError, match=r"^e\.yaml\.inner: unknown key 'rat'; did you mean 'rate'\?$"):
        build(Outer, {"steps": 3, "inner": {"rat": 1}}, "e.yaml")


def test_unknown_key_without_a_close_one_lists_the_known() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'zzzzzz'; known: kind, rate$"):
        build(Inner, {"rate": 1, "zzzzzz": 2}, "e.yaml")


def test_unknown_key_that_is_no_string() -> None:
    with pytest.raises(ConfigError, match="unknown key 3"):
        build(Inner, {"rate": 1, 3: 2}, "e.yaml")  # type: ignore[dict-item]


def test_missing_key() -> None:
    with pytest.raises(ConfigError, match=r"^e\.yaml: key 'steps' is missing$"):
        build(Outer, {"inner": {"rate": 1}}, "e.yaml")
    with pytest.raises(ConfigError, match=r"^e\.yaml\.inner: key 'rate' is missing$"):
        build(Outer, {"steps": 1, "inner": {}}, "e.yaml")


@pytest.mark.parametrize("values", [None, [], "steps", 3])
def test_what_is_no_mapping_is_refused(values: Any) -> None:
    with pytest.raises(ConfigError, match=r"^e\.yaml: expected a mapping of settings, found "):
        build(Outer, values, "e.yaml")
    with pytest.raises(ConfigError, match=r"^e\.yaml\.inner: expected a mapping of settings, found "):
        build(Outer, {"steps": 1, "inner": values}, "e.yaml")


@pytest.mark.parametrize(("written", "value"), [("3e-4", 3e-4), ("1e6", 1e6), (3, 3.0), (0.5, 0.5), ("-1", -1.0)])
def test_floats_that_yaml_does_not_know(written: Any, value: float) -> None:
    found = convert(written, float, "here")
    assert found == value and isinstance(found, float)


@pytest.mark.parametrize("written", ["fast", "", True, None, [1.0], {"a": 1}])
def test_what_is_no_float_is_refused(written: Any) -> None:
    with pytest.raises(ConfigError, match=r"^e\.yaml\.rate: expected "):
        build(Inner, {"rate": written}, "e.yaml")


@pytest.mark.parametrize(("written", "value"), [(3, 3), (2e7, 20_000_000), (-1, -1)])
def test_integers(written: Any, value: int) -> None:
    found = convert(written, int, "here")
    assert found == value and type(found) is int


@pytest.mark.parametrize("written", [True, False, 1.5, "three", None, float("inf"), float("nan")])
def test_what_is_no_integer_is_refused(written: Any) -> None:
    with pytest.raises(ConfigError, match=r"^e\.yaml\.steps: expected a whole number such as 1000, found "):
        build(Outer, {**GOOD, "steps": written}, "e.yaml")


@pytest.mark.parametrize("written", [0, 1, "true", None])
def test_bool_is_only_bool(written: Any) -> None:
    with pytest.raises(ConfigError, match=r"^e\.yaml\.flag: expected true or false, found "):
        build(Outer, {**GOOD, "flag": written}, "e.yaml")


@pytest.mark.parametrize("written", [1, True, None, ["a"]])
def test_text_is_only_text(written: Any) -> None:
    with pytest.raises(ConfigError, match=r"^e\.yaml\.label: expected text, found "):
        build(Outer, {**GOOD, "label": written}, "e.yaml")


def test_optional_takes_null_and_its_type() -> None:
    assert build(Outer, {**GOOD, "limit": None}, "e.yaml").limit is None
    assert build(Outer, {**GOOD, "limit": 4}, "e.yaml").limit == 4
    with pytest.raises(ConfigError, match=r"limit: expected a whole number such as 1000, found 'x'"):
        build(Outer, {**GOOD, "limit": "x"}, "e.yaml")


def test_wider_unions_are_a_bug_of_the_program() -> None:
    with pytest.raises(TypeError, match=r"only `X \| None` unions"):
        convert(1, int | str, "here")


def test_literal_lists_the_choices() -> None:
    with pytest.raises(ConfigError, match=r"^e\.yaml\.inner\.kind: 'cosin' is not one of linear, cosine$"):
        build(Outer, {"steps": 1, "inner": {"rate": 1, "kind": "cosin"}}, "e.yaml")


def test_tuple_names_the_item() -> None:
    with pytest.raises(ConfigError, match=r"^e\.yaml\.shares\[1\]: expected a number such as 0\.001, found 'x'$"):
        build(Outer, {**GOOD, "shares": [0.1, "x"]}, "e.yaml")
    with pytest.raises(ConfigError, match=r"^e\.yaml\.shares: expected a list, found 0\.5; write one as "):
        build(Outer, {**GOOD, "shares": 0.5}, "e.yaml")
    with pytest.raises(ConfigError, match=r"^e\.yaml\.shares: expected a list, found 'ab'; write one as "):
        build(Outer, {**GOOD, "shares": "ab"}, "e.yaml")
    with pytest.raises(ConfigError, match=r"^e\.yaml\.parts\[0\]: unknown key 'rte'"):
        build(Outer, {**GOOD, "parts": [{"rte": 1}]}, "e.yaml")


def test_range_checks_carry_the_place() -> None:
    with pytest.raises(ConfigError, match=r"e\.yaml\.inner: `rate` must be above 0, found -1\.0"):
        build(Outer, {"steps": 1, "inner": {"rate": -1}}, "e.yaml")


def test_given_fields_come_from_the_program_only() -> None:
    built = build(Outer, {"inner": {"rate": 1}}, "e.yaml", given={"steps": 9})
    assert built.steps == 9
    with pytest.raises(ConfigError, match=r"^e\.yaml\.steps: this is not set in a file"):
        build(Outer, GOOD, "e.yaml", given={"steps": 9})


def test_given_fields_are_never_suggested() -> None:
    with pytest.raises(ConfigError) as caught:
        build(Outer, {"inner": {"rate": 1}, "step": 1}, "e.yaml", given={"steps": 9})
    assert "'steps'" not in str(caught.value)


def test_a_ready_made_dataclass_is_taken() -> None:
    assert build(Outer, {"steps": 1, "inner": Inner(2.0)}, "e.yaml").inner == Inner(2.0)


def test_did_you_mean() -> None:
    assert did_you_mean("batchsize", ["batch_size", "steps"]) == "; did you mean 'batch_size'?"
    assert did_you_mean("qqq", ["b", "a"]) == "; known: a, b"


def test_require() -> None:
    require(True, "fine")
    with pytest.raises(ConfigError, match=r"^not fine$"):
        require(False, "not fine")
