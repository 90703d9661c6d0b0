"""A comparison as a value: what comparison.json holds, what is printed, and what a notebook shows."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from compare.baselines.mixture import Mixture
from compare.baselines.scores import GUESSES
from compare.bits_by.result import WhereBitsGo
from compare.certainty.intervals import Interval
from compare.certainty.pairs import Certainty
from compare.certainty.stored import certainty_as_json, certainty_from_json
from compare.certainty.verdict import answer, how_sure, noise_sentence
from compare.clean_part import CleanPart, clean_sentence
from compare.grids.sweep import Sweep
from compare.ladder.answer import LadderAnswer
from compare.ladder.stored import answer_as_json, answer_from_json
from compare.ladder.words import headline
from compare.marginal.result import MeasuredRun
from compare.sizes.ranking import Ranking
from compare.sizes.stored import ranking_as_json, ranking_from_json
from compare.sizes.words import headline as headline_of_sizes
from compare.table import Row, table_cells
from data.shapes import plain
from data.show import visible
from tokenizer.studies.intrinsic import Intrinsic


@dataclass(frozen=True)
class BaselineLine:
    """A figure without any neural network, on the test text."""

    name: str
    bits_per_char: float
    note: str
    """How it was made."""
    lead: Interval | None
    """How many bits fewer it needs than the best contestant, 95 %; None where the test text is too short for one."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "BaselineLine":
        """What `dataclasses.asdict` gave to a JSON file."""
        lead = value["lead"]
        return cls(**{**value, "lead": None if lead is None else Interval(**lead)})


@dataclass(frozen=True)
class MarginalBound:
    """How far a contestant's own segmentation lies above all segmentations together, in percent of its bits."""

    contestant: str
    percent: float
    low: float | None
    """The 95 % interval; None for one passage."""
    high: float | None
    num_chars: int
    """Of the passages that were measured."""

    @property
    def sentence(self) -> str:
        """The bound in words."""
        interval = "one passage: no interval"
        if self.low is not None and self.high is not None:
            interval = f"95 % interval {self.low:.1f} to {self.high:.1f} %"
        return (
            f"{self.contestant}: all segmentations together need about {self.percent:.1f} % fewer bits than its own "
            f"({interval}, {self.num_chars:,} characters); a lead smaller than that could turn"
        )

    @classmethod
    def of(cls, contestant: str, measured: MeasuredRun) -> "MarginalBound":
        """The bound that was measured on a run of the contestant."""
        percent = measured.gap.gap_percent
        return cls(contestant, percent.value, percent.low, percent.high, measured.gap.num_chars)


@dataclass(frozen=True)
class Details:
    """What a comparison shows further."""

    where_bits_go: WhereBitsGo
    intrinsic: Mapping[str, Intrinsic]
    """By contestant."""
    sweep: Sweep | None
    marginal: Mapping[str, MeasuredRun]
    """What `make marginal` measured on these runs, by contestant, without its passages."""
    corpus: Mapping[str, Any]
    """The manifest of the corpus, as its file holds it."""

    def as_json(self) -> dict[str, Any]:
        """The keys of comparison.json that hold it."""
        return {
            "where_bits_go": self.where_bits_go.as_json(),
            "intrinsic": plain(self.intrinsic),
            "sweep": None if self.sweep is None else self.sweep.as_json(),
            "marginal": {name: one.as_json(passages=False) for name, one in self.marginal.items()},
            "corpus": self.corpus,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Details":
        """The same from comparison.json, whose other keys are left alone."""
        return cls(
            where_bits_go=WhereBitsGo.from_json(value["where_bits_go"]),
            intrinsic={name: Intrinsic.from_json(one) for name, one in value["intrinsic"].items()},
            sweep=None if value["sweep"] is None else Sweep.from_json(value["sweep"]),
            marginal={name: MeasuredRun.from_json(one) for name, one in value["marginal"].items()},
            corpus=value["corpus"],
        )


@dataclass(frozen=True)
class Identity:
    """What was compared, by hash and in words."""

    reports: Mapping[str, tuple[str, ...]]
    """The sha256 of every run's report.json, by contestant."""
    fingerprints: Mapping[str, str]
    """Of the tokenizers, by contestant."""
    test_text_sha256: str
    test_chars: int
    text_path: str
    """Where the test text lies."""
    model_shape: str
    batch: str
    flops_formula: str
    about: tuple[str, ...]
    """Corpus, cleaning and environment in sentences."""


@dataclass(frozen=True)
class Comparison:
    """All contestants of an experiment, compared in bits per character of its test text."""

    experiment: str
    budget: str
    """What was held equal, and on how much text it was measured."""
    certainty: Certainty
    rows: tuple[Row, ...]
    not_held_equal: tuple[str, ...]
    baselines: tuple[BaselineLine, ...]
    details: Details
    identity: Identity
    clean: CleanPart | None
    """Figures on the part of test that train does not hold; None where train holds none of test's longer strings."""
    mixtures: tuple[Mixture, ...]
    """Each contestant mixed with the character n-gram: what the neural model adds to it."""
    ladder: LadderAnswer | None = None
    """What was measured at smaller budgets, and what is expected of larger ones; None without a ladder."""
    sizes: Ranking | None = None
    """What was measured at other sizes of the models; None where there is one size."""

    @property
    def stronger(self) -> tuple[str, ...]:
        """The n-grams and compressors that need fewer bits than every contestant beyond doubt."""
        lines = (one for one in self.baselines if one.name not in GUESSES)
        return tuple(one.name for one in lines if one.lead is not None and one.lead.low > 0.0)

    @property
    def answer(self) -> str:
        """The answer in a few short sentences."""
        said = answer(self.certainty, self.stronger)
        if self.ladder is not None:
            said = f"{said} {headline(self.ladder)}".strip()
        if self.sizes is not None:
            said = f"{said} {headline_of_sizes(self.sizes)}".strip()
        if self.clean is None or not self.clean.ranking_differs:
            return said
        return f"The ranking depends on strings that test shares with train. {said}"

    @property
    def how_sure(self) -> list[str]:
        """One sentence for each pair with the baseline contestant; before them one on the clean part of test."""
        return [*([] if self.clean is None else [clean_sentence(self.clean)]), *how_sure(self.certainty)]

    @property
    def noise(self) -> str | None:
        """What is assumed of training noise; None where it was measured."""
        return noise_sentence(self.certainty)

    @property
    def marginal_sentences(self) -> list[str]:
        """How far each contestant's own segmentation was found above all segmentations together."""
        bounds = [MarginalBound.of(name, measured) for name, measured in self.details.marginal.items()]
        return [bound.sentence for bound in bounds if bound.percent > 0.0]

    def as_json(self) -> dict[str, Any]:
        """What comparison.json holds, besides what it was made from."""
        return {
            "experiment": self.experiment,
            "answer": self.answer,
            "how_sure": self.how_sure,
            "noise": self.noise,
            "stronger": list(self.stronger),
            "budget": self.budget,
            "rows": [asdict(row) | {"seeds": list(row.seeds)} for row in self.rows],
            "not_held_equal": list(self.not_held_equal),
            "statistics": certainty_as_json(self.certainty),
            "baselines": [asdict(one) for one in self.baselines],
            "clean": None if self.clean is None else asdict(self.clean),
            "mixtures": [asdict(one) for one in self.mixtures],
            "ladder": None if self.ladder is None else answer_as_json(self.ladder),
            **({} if self.sizes is None else {"sizes": ranking_as_json(self.sizes)}),
            **self.details.as_json(),
            **asdict(self.identity),
            "reports": {name: list(hashes) for name, hashes in self.identity.reports.items()},
            "about": list(self.identity.about),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Comparison":
        """The comparison that comparison.json holds; for a file of this version whose seal has been checked."""
        identity = {name: value[name] for name in Identity.__dataclass_fields__}
        return cls(
            experiment=value["experiment"],
            budget=value["budget"],
            certainty=certainty_from_json(value["statistics"]),
            rows=tuple(Row.from_json(row) for row in value["rows"]),
            not_held_equal=tuple(value["not_held_equal"]),
            baselines=tuple(BaselineLine.from_json(one) for one in value["baselines"]),
            details=Details.from_json(value),
            identity=Identity(
                **identity
                | {
                    "reports": {name: tuple(hashes) for name, hashes in value["reports"].items()},
                    "about": tuple(value["about"]),
                }
            ),
            clean=None if value["clean"] is None else CleanPart(**value["clean"]),
            mixtures=tuple(Mixture.from_json(one) for one in value["mixtures"]),
            ladder=None if value["ladder"] is None else answer_from_json(value["ladder"]),
            sizes=None if value.get("sizes") is None else ranking_from_json(value["sizes"]),
        )

    def _repr_html_(self) -> str:
        """The answer, how sure it is, and the table, for a notebook."""
        header, *lines = [[escape(visible(cell)) for cell in line] for line in table_cells(self.rows)]
        sure = "".join(f"<li>{escape(visible(line))}</li>" for line in self.how_sure)
        head = "".join(f'<th scope="col">{cell}</th>' for cell in header)
        body = "".join(
            f'<tr><th scope="row">{line[0].strip()}</th>{"".join(f"<td>{cell}</td>" for cell in line[1:])}</tr>'
            for line in lines
        )
        return (
            f"<p><strong>{escape(visible(self.answer))}</strong></p><ul>{sure}</ul>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )
