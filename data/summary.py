"""The manifest's entry of a corpus as the text that `make data` prints."""

from collections.abc import Mapping
from typing import Any

from data.dividing.separator import in_double_quotes, is_removed
from data.dividing.shared import DECISIVE_LENGTH, LARGEST_SHARE
from data.layout import SPLITS
from data.sources.left_out import left_out_lines
from data.sources.wikitext import UNKNOWN_WORD

_CHANGES = {  # key of the manifest's `cleaning` -> (what one is called, what several are called)
    "byte_order_marks_removed": ("byte order mark removed", "byte order marks removed"),
    "crlf_converted": ("line end CR LF made LF", "line ends CR LF made LF"),
    "lone_cr_converted": ("line end CR made LF", "line ends CR made LF"),
    "final_newlines_added": ("newline added at the end of a document", "newlines added at the end of documents"),
    "empty_documents_dropped": ("empty document dropped", "empty documents dropped"),
    "white_space_only_documents": ("document of white space only kept", "documents of white space only kept"),
    "wikitext_joins_undone": ("join like @-@ undone", "joins like @-@ undone"),
    "line_edge_spaces_removed": ("space at the edge of a line removed", "spaces at the edges of lines removed"),
}
_MOST_NAME = 48


def describe_corpus(name: str, entry: Mapping[str, Any]) -> str:
    """Everything that decides how to read the figures of this corpus: splits, separator, cleaning, what is repeated."""
    lines = [*_table(name, entry), *_separator(entry), *_cleaning(entry), *_repeats(entry), *_shared(entry)]
    return "\n".join([*lines, *_wikitext(entry), *left_out_lines(entry["provenance"].get("left_out", {}))])


def _table(name: str, entry: Mapping[str, Any]) -> list[str]:
    division = entry["division"]
    how = "divided as the source says"
    if division["by"] == "hash":
        shares = " / ".join(f"{100 * share:g}" for share in division["fractions"])
        how = f"divided {shares} % by hashes of the texts"
    groups = division["groups"]
    if groups:
        how += f", documents that share {groups['shared_characters']} characters in one split"
    distinct = ""
    if division["distinct_documents"] < division["documents"]:
        distinct = f" ({division['distinct_documents']:,} distinct, up to white space)"
    splits = entry["splits"]
    total = sum(split["characters"] for split in splits.values())
    header = ["split", "documents", "%", "characters", "%", "longest", "shortest"]
    rows = [header]
    for split in SPLITS:
        found = splits[split]
        rows.append(
            [
                split,
                f"{found['documents']:,}",
                f"{100 * found['documents'] / division['documents']:.1f}",
                f"{found['characters']:,}",
                f"{100 * found['characters'] / total:.1f}",
                *(f"{division[f'{which}_document'][split]['characters']:,}" for which in ("longest", "shortest")),
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    table = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    extremes = [
        f"{which} document of {split}: {_short(division[f'{which}_document'][split]['name'])}"
        for split in SPLITS
        for which in ("longest", "shortest")
        if splits[split]["documents"] > 1
    ]
    return [f"corpus {name}: {division['documents']:,} documents{distinct}, {how}", *table, *extremes]


def _separator(entry: Mapping[str, Any]) -> list[str]:
    found = entry["provenance"].get("separator")
    if found is None:
        return []
    separator, without = found["separator"], found["files_without"]
    what = f"removed {found['characters_removed']:,} characters" if is_removed(separator) else "removed no character"
    where = f"{found['files']:,} file{'s' * (found['files'] != 1)}"
    if without:
        where += f", in {without:,} of them not once"
    return [f"separator {in_double_quotes(separator)}: occurs {found['occurrences']:,} times in {where}; {what}"]


def _cleaning(entry: Mapping[str, Any]) -> list[str]:
    counts = {key: count for key, count in entry["cleaning"].items() if key != "name" and count}
    done = [f"{count:,} {_CHANGES[key][count != 1]}" for key, count in counts.items()]
    return [f"cleaning {entry['cleaning']['name']}: {', '.join(done) or 'nothing to do'}"]


def _repeats(entry: Mapping[str, Any]) -> list[str]:
    repeats = entry["repeated_documents"]
    found = [repeats[split] for split in SPLITS if repeats[split]["documents"]]
    if not found:
        return ["repeated documents: none is in two splits"]
    return [
        f"repeated documents: {one['documents']:,} of {one['split']} ({one['share']:.1%} of its characters) are in "
        f"another split too, for example {_short(one['example'])} as {_short(one['other_example'])} in "
        f"{one['other_split']}"
        for one in found
    ]


def _shared(entry: Mapping[str, Any]) -> list[str]:
    found, groups = entry["shared_with_train"], entry["division"]["groups"]
    one, other = (found[split]["shares"] for split in ("val", "test"))
    lines = [
        "shared with train: "
        + ", ".join(
            f"{one[length]:.1%} of val and {other[length]:.1%} of test in strings of {length} characters or more"
            for length in one
        )
    ]
    if groups:
        largest = groups["largest"]
        number = f"{largest['documents']:,} document{'s' * (largest['documents'] != 1)}"
        line = (
            f"groups: documents that share {groups['shared_characters']} characters form {groups['number']:,} groups; "
            f"the largest ({number}, {largest['share']:.1%} of the characters) is in {largest['split']}"
        )
        is_selective = largest["split"] == "train" and largest["documents"] > 1
        lines.append(f"{line}; val and test are the less repetitive part of the text" if is_selective else line)
    worst = max((found[split] for split in ("test", "val")), key=lambda one: one["shares"][str(DECISIVE_LENGTH)])
    if worst["shares"][str(DECISIVE_LENGTH)] > LARGEST_SHARE:
        most = worst["documents"][0]
        way_on = f"take such passages out of train or out of {worst['split']}"
        if entry["division"]["by"] == "hash":
            way_on = "`group_shared: true` in the corpus block keeps documents that share strings in one split"
        lines.append(
            f"warning: {worst['shares'][str(DECISIVE_LENGTH)]:.1%} of {worst['split']} is in train in strings of "
            f"{DECISIVE_LENGTH} characters or more (most in {_short(most['name'])}, {most['share']:.0%} of it), which "
            f"bends the verdict; {way_on}"
        )
    return lines


def _wikitext(entry: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, is_published in entry["provenance"].get("published", {}).items():
        share = entry["provenance"]["unknown_word_share"][name]
        hashed = {True: "the published file", False: "not the published file", None: "no published hash is known"}
        lines.append(f"{name}: {hashed[is_published]}; {share:.1%} of its characters spell {UNKNOWN_WORD}")
    return lines


def _short(name: str) -> str:
    """A document's name on one line, its end kept where it is long: the end tells files of one folder apart."""
    name = "".join(c if c.isprintable() else in_double_quotes(c)[1:-1] for c in name)
    return name if len(name) <= _MOST_NAME else "…" + name[1 - _MOST_NAME :]
