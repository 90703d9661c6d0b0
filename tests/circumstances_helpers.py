"""Processes for which closed folders are closed, even where the tests run as root."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_RIGHTS = "-dac_override,-dac_read_search"

ENTRY_POINTS = """
import contextlib, io, json, sys
from pathlib import Path
from compare import cli
from scripts import compare, data, encode, sample, sweep, tokenizer, train

commands = {one.__name__.split(".")[1]: one for one in (compare, data, encode, sample, tokenizer, train)}
said = {}
for name, (closed, mode, command, *options) in json.loads(sys.argv[1]).items():
    if closed:
        before = Path(closed).stat().st_mode
        Path(closed).chmod(mode)
    sys.argv = [command, *options]
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.run(commands[command].main)
        except SystemExit as ended:
            code = ended.code
        except BaseException as error:
            code = repr(error)
    if closed:
        Path(closed).chmod(before)
    said[name] = [code, err.getvalue()]
print(json.dumps(said))
"""


def without_roots_rights(command: list[str]) -> list[str]:
    """The command for a process that modes bind; skips the test where that cannot be had."""
    if os.name == "nt":
        pytest.skip("modes of folders are of POSIX")
    if os.geteuid() != 0:
        return command
    if shutil.which("setpriv") is None:
        pytest.skip("root without setpriv enters every folder")
    return ["setpriv", f"--bounding-set={_RIGHTS}", f"--inh-caps={_RIGHTS}", *command]


def run_without_rights(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments, bound by modes, from the repository."""
    return subprocess.run(
        without_roots_rights([sys.executable, *arguments]),
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
