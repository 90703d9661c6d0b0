"""The study on one page of text, at most 98 columns; made from the stored figures alone."""

from collections.abc import Iterator, Mapping
from typing import Any

from data.show import columns, pad, shorten
from tokenizer.studies.trace_text import visible

_WIDTH = 98
_SHOWN = "test"  # the split of the page, as in the comparison; the file holds val as well
_NUM_GLUED = 24  # glued tokens named on the page, the most used ones; the file holds all
_NAME = 13  # width of a vocabulary's name


def as_text(study: Mapping[str, Any]) -> str:
    """The page for `study`, as `tokenizer.studies.study.run_study` returned it."""
    texts, inputs = study["texts"], study["inputs"]
    lines = [
        f"Vocabularies of bytes, learned from train ({texts['train']['characters']:,} characters) with at most "
        f"{inputs['num_merges']:,} merges,",
        f"measured on {_SHOWN} ({texts[_SHOWN]['characters']:,} characters, {texts[_SHOWN]['bytes']:,} bytes).",
    ]
    for name, vocabulary in study["vocabularies"].items():
        if vocabulary["stop_reason"] not in (None, "target reached"):
            lines.append(
                f"  With split pattern {name} there are only {vocabulary['num_merges']:,} merges: "
                f"{vocabulary['stop_reason']}."
            )
    for section in (_compression, _glued, _cuts, _context):
        lines += ["", *section(study)]
    return "\n".join(lines)


def _compression(study: Mapping[str, Any]) -> Iterator[str]:
    vocabularies = study["vocabularies"]
    columns_of = [(name, figure) for figure in ("bytes_per_token", "characters_per_token") for name in vocabularies]
    rows: dict[int, dict[tuple[str, str], float]] = {}
    for name, figure in columns_of:
        for prefix in vocabularies[name]["prefixes"]:
            rows.setdefault(prefix["tokens"], {})[name, figure] = prefix[_SHOWN][figure]
    width = max(7, *(len(_short(name)) + 1 for name in vocabularies))
    yield "Compression by prefixes of one merge table"
    span = width * len(vocabularies)
    yield f"{'':>8}{'embedding, ' + str(study['inputs']['width']):>16}{'bytes per token':>{span}}" + (
        f"  {'characters per token':>{span}}"
    )
    names = "".join(f"{_short(name):>{width}}" for name in vocabularies)
    yield f"{'tokens':>8}{'wide, weights':>16}{names}  {names}"
    for tokens in sorted(rows):
        cells = [f"{rows[tokens][key]:>{width}.3f}" if key in rows[tokens] else f"{'':>{width}}" for key in columns_of]
        half = len(vocabularies)
        line = f"{tokens:>8,}{tokens * study['inputs']['width']:>16,}{''.join(cells[:half])}  {''.join(cells[half:])}"
        yield line.rstrip()


def _short(name: str) -> str:
    return name.removesuffix("'s own")


def _glued(study: Mapping[str, Any]) -> Iterator[str]:
    yield "Learned tokens that glue a letter to punctuation, the most used ones first"
    for name, vocabulary in study["vocabularies"].items():
        glued = vocabulary["glued"]
        yield (
            f"  {name:<{_NAME}}{glued['count']:,} of {vocabulary['num_merges']:,} ({glued['share_of_learned']:.1%}); "
            f"they are {glued['share_of_text'][_SHOWN]:.1%} of the text's tokens"
        )
        ranked = sorted(glued["tokens"], key=lambda token: (-token["uses"][_SHOWN], token["id"]))
        named = [visible(token["text"]) for token in ranked[:_NUM_GLUED]]
        while named and columns("  ".join(named)) > _WIDTH - 2 - _NAME:
            named.pop()
        if named:
            yield f"  {'':<{_NAME}}{'  '.join(named)}"


def _cuts(study: Mapping[str, Any]) -> Iterator[str]:
    vocabularies = study["vocabularies"]
    yield "How words are cut: | between tokens, ␣ is a space, \\x… is one byte of a character"
    for group, examples in next(iter(vocabularies.values()))["cuts"].items():
        yield f"  {group}"
        for number, example in enumerate(examples):
            label = shorten(visible(example["text"]), 24)
            for name, vocabulary in vocabularies.items():
                tokens = vocabulary["cuts"][group][number]["tokens"]
                cut = shorten("|".join(map(visible, tokens)), _WIDTH - 30 - _NAME - 5)
                yield f"    {pad(label, 26)}{name:<{_NAME}}{len(tokens):>3}  {cut}"
                label = ""


def _context(study: Mapping[str, Any]) -> Iterator[str]:
    window, width = study["inputs"]["window_tokens"], study["inputs"]["width"]
    yield f"Characters that {window} tokens of each contestant span"
    yield f"  {'':<20}{'kind':<10}{'tokens':>8}{'embedding':>12}{'mean':>9}{'5 %':>8}{'median':>8}{'95 %':>8}"
    for name, contestant in study["contestants"].items():
        context = contestant["context"][_SHOWN]
        percentiles = [context[f"percentile_{percent}"] for percent in (5, 50, 95)]
        cells = "".join(f"{'–' if found is None else f'{found:,.0f}':>8}" for found in percentiles)
        yield (
            f"  {pad(shorten(name, 19), 20)}{contestant['kind']:<10}{contestant['vocab_size']:>8,}"
            f"{contestant['embedding_parameters']:>12,}{context['mean_characters']:>9,.1f}{cells}"
        )
    yield f"  embedding: its weights at width {width}; percentiles: all windows that lie inside one document"
