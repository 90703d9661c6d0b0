"""Short texts that are easily lost or cut otherwise: every exported tokenizer is tried on them."""

HOSTILE_TEXTS: dict[str, str] = {
    "two leading spaces": "  two leading spaces\n",
    "only spaces": "      ",
    "trailing newline": "trailing\n\n\n",
    "no trailing newline": "none at the end",
    "trailing spaces": "word   \n   ",
    "crlf": "one\r\ntwo\r\n",
    "lone cr": "one\rtwo\r",
    "tabs": "\tone\t\ttwo\t\n",
    "no-break space": "10\u00a0000\u00a0km \u00a0 x",
    "line and paragraph separators": "a\u2028b\u2029c\u0085d \u2028\n",
    "vertical tab and form feed": "a\x0bb\x0cc \x0b \n",
    "nul": "a\x00b\x00\x00\n",
    "byte order mark inside": "a\ufeffb \ufeff\n\ufeff",
    "accents composed": "caf\u00e9 na\u00efve \u00c5ngstr\u00f6m\n",
    "accents combining": "cafe\u0301 nai\u0308ve A\u030angstro\u0308m\n",
    "emoji family": "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f44d\U0001f3fd!\n",
    "flags": "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7 \U0001f3f4\U000e0067\U000e0062\U000e007f\n",
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u200f(abc)\u200e 12\n",
    "cjk without spaces": "\u6771\u4eac\u90fd\u306b\u4f4f\u3093\u3067\u3044\u307e\u3059\u3002\n",
    "highest code points": "\U0010ffff\U00010000\uffff\ue000\ud7ff\n",
    "looks like specials": "<|endoftext|> <unk> <s> [PAD]\n",
    "looks like file syntax": '#version: 0.2\n# #\n"quoted" \\n {"type": "byte"}\n',
    "contractions": "DON'T don't I\u2019M we'LL 'S'\n",
    "digits": "8045311447 3.14 \u0661\u0662\u0663 \u00bd \u2167\n",
}
"""What is odd about a text -> the text."""
