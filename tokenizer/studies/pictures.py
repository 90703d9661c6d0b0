"""What the pictures of studies and reports share: colours, line styles, formats, and names that a font can draw."""

from collections.abc import Sequence

from data.show import code_of, shorten, visible

# Okabe and Ito's palette: told apart by colour-blind readers. Line styles differ as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")
FORMATS = ("svg", "png")
_NAME_COLUMNS = 30


def picture_names(names: Sequence[str]) -> dict[str, str]:
    """What a picture calls each name: short, in characters that its font has, others by their code; all different."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties()))
    drawn = ["".join(c if font.get_char_index(ord(c)) else code_of(c) for c in visible(name)) for name in names]
    short = [shorten(name, _NAME_COLUMNS) for name in drawn]
    labels = [
        f"{label} (number {number})" if short.count(label) > 1 else label for number, label in enumerate(short, start=1)
    ]
    return {name: label.replace("$", r"\$") for name, label in zip(names, labels, strict=True)}
