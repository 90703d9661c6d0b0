"""The file that computes an exported model's logits without this project: the specification, and a way to load it."""

import inspect

from model import reference

_IMPORT = "from model.settings import MiniGPTConfig\n"
_INSTEAD = """from types import SimpleNamespace as MiniGPTConfig

from safetensors.torch import load_file
"""
_TITLE = '''"""Logits of the model in this folder, by what the formulas say: load(folder), then logits(…).

Shapes in the comments: B batch, T time (tokens), C channels, H heads, D head size (C / H), V vocabulary.
"""
'''
_LOAD = '''

def load(folder: str) -> tuple[Weights, MiniGPTConfig]:
    """The weights in `folder`/model.safetensors and the settings in its config.json."""
    with open(f"{folder}/config.json", encoding="utf-8") as file:
        return load_file(f"{folder}/model.safetensors"), MiniGPTConfig(**json.load(file))
'''


def loader_source() -> str:
    """The source of a module with `load(folder)` and `logits(weights, config, ids)`; it needs torch and safetensors."""
    source = inspect.getsource(reference)
    if source.count(_IMPORT) != 1:
        raise RuntimeError("model/reference.py imports something else of this project than its settings")
    _, _, body = source.replace(_IMPORT, _INSTEAD).partition('"""\n')
    return _TITLE + body.replace("import math\n", "import json\nimport math\n", 1) + _LOAD
