"""A trace for reading: aligned lines of at most 98 columns in which every character can be seen."""

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import accumulate

from data.show import columns, counted, is_hidden, pad, shorten
from tokenizer.reference import Pair, TieBreak
from tokenizer.studies.trace import Document, Round, Trace, spelled

_WIDTH = 98
_LABEL = 10  # width of the first column
_SEQUENCE_LINES = 8  # lines that one document may take before it is cut short
_RULES: dict[TieBreak, str] = {
    "first_seen": "its first window stands earliest",
    "lowest_ids": "smallest left id, then smallest right id",
    "greatest_bytes": "greatest bytes, the left half's first",
}
_SYMBOLS = {" ": "␣", "\n": "␤", "\t": "␉", "\r": "␍", "\x7f": "␡"}


def as_text(trace: Trace, *, top: int = 10) -> str:
    """The trace for reading, at most 98 columns. Of each round's candidates the `top` most frequent are shown."""
    lines = [
        f"{trace.kind}, split pattern {trace.split_pattern}, ties by {trace.tie_break} ({_RULES[trace.tie_break]}),",
        f"minimum frequency {trace.min_pair_frequency}, up to {trace.num_merges} merges.",
        "Every [token] in brackets was merged; ␣ is a space, ␤ a line end; two spaces part pretokens.",
        "",
        *_sequence_lines(trace, trace.documents, "start"),
    ]
    for made in trace.rounds:
        lines += ["", *_round_lines(trace, made, top)]
    lines += ["", f"stopped after {counted(len(trace.rounds), 'merge')}: {trace.stop_reason}"]
    return "\n".join(lines)


def _round_lines(trace: Trace, made: Round, top: int) -> Iterator[str]:
    merge = made.merge
    plural = "candidates, in order of first sight" if len(made.candidates) > 1 else "candidate"
    yield f"{f'round {merge.rank}':<{_LABEL}}{len(made.candidates):,} {plural}:"
    shown = _most_frequent(made, top)
    names = {pair: _pair(trace, pair) for pair in shown}
    width = min(max(map(columns, names.values())), 48)
    id_width = len(str(merge.new_id))
    for pair in shown:
        left, right = pair
        mark = "  <- winner" if pair == merge.pair else "  tied" if pair in made.tied else ""
        name = pad(shorten(names[pair], width), width)
        ids = f"({left:>{id_width}}, {right:>{id_width}})"
        yield f"{'':<{_LABEL}}  {name}  {ids}  {made.candidates[pair]:>6,}{mark}"
    if len(shown) < len(made.candidates):
        least = counted(min(made.candidates[pair] for pair in shown), "time")
        yield f"{'':<{_LABEL}}  … and {len(made.candidates) - len(shown):,} more, none seen more than {least}"
    yield f"{'why':<{_LABEL}}{_reason(trace, made)}"
    start = f"{'merge':<{_LABEL}}{merge.new_id} = "
    overlap = ", because windows overlap" if merge.replacements < merge.count else ""
    end = f": {counted(merge.count, 'window')}, {counted(merge.replacements, 'replacement')}{overlap}"
    yield start + shorten(_token(trace, merge.new_id), _WIDTH - len(start + end)) + end
    yield from _sequence_lines(trace, made.documents, "after")


def _most_frequent(made: Round, top: int) -> list[Pair]:
    """The winner and the next most frequent, `top` pairs in all, in order of first sight."""
    order = {pair: number for number, pair in enumerate(made.candidates)}
    ranked = sorted(order, key=lambda pair: (-made.candidates[pair], pair != made.merge.pair, order[pair]))
    return sorted(ranked[: max(top, 1)], key=order.__getitem__)


def _reason(trace: Trace, made: Round) -> str:
    if len(made.tied) == 1:
        return f"the highest count, {made.merge.count:,}"
    reason = f"{len(made.tied):,} pairs are tied at {made.merge.count:,}; {trace.tie_break} takes this one, not "
    others = [_pair(trace, pair) for pair in made.tied if pair != made.merge.pair]
    room = _WIDTH - _LABEL - len(reason) - len(f" and {len(others):,} more")
    named = [shorten(others[0], room)]
    while len(named) < len(others) and columns(", ".join([*named, others[len(named)]])) <= room:
        named.append(others[len(named)])
    more = f" and {len(others) - len(named):,} more" if len(named) < len(others) else ""
    return reason + ", ".join(named) + more


def _sequence_lines(trace: Trace, documents: list[Document], label: str) -> Iterator[str]:
    """Each document on lines of its own, wrapped between tokens, cut short when it is long."""
    for document in documents:
        pieces = [(_token(trace, index), " ") for pretoken in document for index in pretoken]
        for end in list(accumulate(map(len, document)))[:-1]:
            pieces[end - 1] = (pieces[end - 1][0], "  ")
        wrapped = _wrap(pieces or [("(empty)", "")])
        for number, line in enumerate(wrapped):
            yield f"{label if number == 0 else '':<{_LABEL}}{line}"
        label = ""


def _wrap(pieces: Sequence[tuple[str, str]]) -> list[str]:
    room, lines, line = _WIDTH - _LABEL, [], ""
    for number, (token, gap) in enumerate(pieces):
        token = shorten(token, room)
        if line and columns(line + token) > room:
            lines.append(line.rstrip(" "))
            line = ""
            if len(lines) == _SEQUENCE_LINES:
                return [*lines, f"… and {counted(len(pieces) - number, 'token')} more"]
        line += token + gap
    return [*lines, line.rstrip(" ")]


def _pair(trace: Trace, pair: Pair) -> str:
    return f"{_token(trace, pair[0])} + {_token(trace, pair[1])}"


def _token(trace: Trace, index: int) -> str:
    """A base token as its visible text, a learned one in brackets."""
    text = visible(spelled(trace.token_bytes[index]))
    return f"[{text}]" if index >= trace.base_size else text


def visible(text: str) -> str:
    r"""`text` with every character visible: spaces and control characters as pictures, others by their code.

    >>> visible("a b\n\u00a0")
    'a␣b␤\\xa0'
    """
    return "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    if character in _SYMBOLS:
        return _SYMBOLS[character]
    if character < " ":
        return chr(0x2400 + ord(character))  # Unicode's pictures of the control characters
    is_plain = character.isprintable() and not is_hidden(character)
    if is_plain and not unicodedata.category(character).startswith("M"):  # a mark has no place alone
        return character
    return character.encode("unicode_escape").decode("ascii")
