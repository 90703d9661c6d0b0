"""The ranking at other sizes in words: one sentence or a few for the head of the report, its table and its lines."""

from collections.abc import Mapping, Sequence

from compare.certainty.pairs import Pair
from compare.sizes.ranking import AtLevel, Ranking, SizeWord

TITLE = "Does the answer hold at another size of model?"


def headline(ranking: Ranking) -> str:
    """Whether the ranking holds at the other sizes, under the whole budget; empty where there is no pair."""
    return " ".join(_sentences(ranking.words(), len(ranking.pairs)))


def lines(ranking: Ranking) -> list[str]:
    """What the part of the report says, one line for each fact."""
    quarter = ranking.words(is_whole=False)
    found = _sentences(ranking.words(), len(ranking.pairs))
    found += [f"At a quarter of the budget: {_lowered(line)}" for line in _sentences(quarter, len(ranking.pairs))]
    found += [_models(ranking, size) for size in ranking.sizes]
    found.append(
        "T is the same budget for every size, in the unit of the experiment, so under a budget in FLOPs or seconds a "
        "larger model sees less text. Learning rate and batch are those of size 1; none was chosen for another size."
    )
    return found


def _sentences(words: Sequence[SizeWord], num_pairs: int) -> list[str]:
    """Turns first, then where it holds for every pair, then what cannot be said."""
    found = [f"The ranking {one.word} at {_size(one.size)}: {_found(one)}." for one in words if _is_other(one)]
    sizes = dict.fromkeys(one.size for one in words)
    by_size = {size: [one for one in words if one.size == size] for size in sizes}
    held = [size for size, of_size in by_size.items() if all(one.word == "holds" for one in of_size)]
    if held:
        found.append(f"The ranking holds at {_listed([f'{size:g}' for size in held])} times the size.")
    for size, of_size in by_size.items():
        kept = [one for one in of_size if one.word == "holds"]
        if kept and size not in held and num_pairs > 1:
            orders = _listed([f"{one.a} and {one.b}" for one in kept])
            found.append(f"At {_size(size)} the order of {orders} holds.")
    return [*found, *_unsaid(words)]


def _is_other(one: SizeWord) -> bool:
    return one.word in ("turns", "changes")


def _found(one: SizeWord) -> str:
    if one.there.outcome == "equal":
        return f"{one.a} and {one.b} are equal there"
    here = ", and they are equal at this size" if one.own.outcome == "equal" else ""
    return f"{one.there.better} is better than {one.there.worse} there{here}"


def _unsaid(words: Sequence[SizeWord]) -> list[str]:
    found = []
    for a, b in dict.fromkeys((one.a, one.b) for one in words if one.word == "unsaid"):
        unsaid = [one for one in words if (one.a, one.b, one.word) == (a, b, "unsaid")]
        start = f"Whether the order of {a} and {b} holds at"
        if unsaid[0].own.outcome == "undecided":
            found.append(f"{start} another size cannot be said: it is not decided at this one.")
        else:
            sizes = _listed([f"{one.size:g}" for one in unsaid])
            found.append(f"{start} {sizes} times the size cannot be said: it is not decided there.")
    return found


def _size(size: float) -> str:
    return f"{size:g} times the size"


def _lowered(line: str) -> str:
    return line[0].lower() + line[1:]


def _models(ranking: Ranking, size: float) -> str:
    """Such as `0.4 times the size: 3 layers of 64, 149,568 parameters besides the embedding (0.45 times).`"""
    one, own = ranking.at(size), ranking.at(1.0)
    shapes = {
        name: f"{layers} layer{'s' * (layers != 1)} of {channels}, {parameters:,} parameters besides the embedding "
        f"({parameters / of_own:.2f} times those of size 1)"
        for name, layers, channels, parameters, of_own in zip(
            ranking.contestants, one.layers, one.channels, one.parameters, own.parameters, strict=True
        )
    }
    start = _size(size)
    if len(set(shapes.values())) == 1:
        return f"{start}: {next(iter(shapes.values()))}."
    return f"{start}: {'; '.join(f'{name} {shape}' for name, shape in shapes.items())}."


def cells(ranking: Ranking, names: Mapping[str, str] | None = None) -> list[list[str]]:
    """A table: a line for each size and budget, a column for each contestant and each pair of the verdict."""
    called = names or {name: name for name in ranking.contestants}
    pairs = [f"{called[a]} - {called[b]}" for a, b in ranking.pairs]
    found = [["size, budget", *(called[name] for name in ranking.contestants), *pairs]]
    for one in ranking.levels:
        bits = [f"{spread.mean:.4f}" for spread in one.certainty.contestants]
        gaps = [gap_words(one.certainty.pair(a, b)) for a, b in ranking.pairs]
        found.append([f"  {level_words(one)}", *bits, *gaps])
    return found


def level_words(one: AtLevel) -> str:
    """Such as `0.4, T/4`."""
    return f"{one.size:g}, {'T' if one.is_whole else 'T/4'}"


def gap_words(pair: Pair) -> str:
    """Such as `+0.123 (+0.101 to +0.145)`."""
    interval = "" if pair.interval is None else f" ({pair.interval.low:+.3f} to {pair.interval.high:+.3f})"
    return f"{pair.difference:+.3f}{interval}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
