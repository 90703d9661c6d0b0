"""What every command shares: options, and how errors and circumstances become exit codes.

Exit codes: 0 done; 2 a mistake of the user's or a circumstance, such as a full disk: one line on stderr; 130
interrupted (Ctrl-C, or any signal that stopped a training, whose state is saved); 143 and 129 ended by SIGTERM and
SIGHUP elsewhere; 141 the reader of the output has gone, as in `… | head -1`; 1 a bug, traceback.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from compare.command_line.streams import USE_UTF8, OutputError, has_utf8_names, prepare_streams, send_nowhere
from compare.experiment import Experiment, load_experiment
from compare.experiment_file import folder_of
from compare.options import PROGRAM, Parser
from data.config import did_you_mean
from data.errors import ConfigError, UserError, explained, is_circumstance
from data.show import visible
from model.training.interrupt import SaidByProcessZero, StoppedBySignal, TrainingInterrupted, ended_by_signals
from model.training.progress import say

CONFIGS = Path("configs")
SHIPPED = Path(__file__).resolve().parent.parent / CONFIGS
"""The experiments of the project itself, which are found from every folder."""
DEFAULT_EXPERIMENT = "wikitext2"
_MISTAKE, _INTERRUPTED, _READER_GONE = 2, 130, 141


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options that all commands have: --config, --set."""
    made = Parser(description=description)
    made.add_argument("--config", default=DEFAULT_EXPERIMENT, help="an experiment file, or the name of one in configs/")
    made.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="replace a setting of the file, such as train.batch_size=64; may be repeated",
    )
    return made


def experiment_of(arguments: argparse.Namespace) -> Experiment:
    """The experiment that --config and --set name."""
    return load_experiment(config_path(arguments.config), arguments.set)


def config_path(named: str) -> Path:
    """The experiment file that `named` means: the name of one in configs/, whatever is in it, or a path.

    Raises ConfigError with the known names where there is no such file.
    """
    if not named.strip():
        raise ConfigError("--config: expected an experiment's name, found nothing")
    is_file_name = named.endswith((".yaml", ".yml"))
    is_path = is_file_name or "/" in named or os.sep in named
    in_configs = CONFIGS / (named if is_file_name else f"{named}.yaml")
    candidates = [Path(named), in_configs] if is_path else [in_configs, Path(named)]
    if not Path(named).is_absolute():
        candidates.append(SHIPPED / in_configs.name)
    if named.startswith("~"):
        candidates.append(folder_of(named, "--config"))
    for path in candidates:
        if _lies_there(path) and (is_path or path.suffix == ".yaml" or not path.is_dir()):
            return path
    known = sorted({file.stem for folder in (CONFIGS, SHIPPED) for file in folder.glob("*.yaml")})
    close = did_you_mean(Path(named).name.removesuffix(".yaml"), known)
    close = close if "did you mean" in close else ""
    raise ConfigError(f"{candidates[0]} does not exist{close}; known experiments: {', '.join(known)}")


def _lies_there(path: Path) -> bool:
    """Whether something lies at `path`, be it a link to nowhere. Raises OSError where a closed folder hides it."""
    try:
        path.lstat()
    except PermissionError:
        raise
    except OSError:
        return False
    return True


def contestants_of(arguments: argparse.Namespace, experiment: Experiment) -> list[str]:
    """The contestant that --contestant names, or all of them."""
    if arguments.contestant is None:
        return list(experiment.contestants)
    return [experiment.contestant(arguments.contestant).name]


def run(main: Callable[[], None]) -> None:
    """Run a command and turn its errors, and the circumstances it meets, into exit codes."""
    try:
        prepare_streams()
        code = _exit_code(main)
    except UserError as error:
        code = _refuse(_for_the_user(error, sys.argv[1:]))
    except SaidByProcessZero:
        code = _MISTAKE
    except TrainingInterrupted:
        code = _INTERRUPTED
    except StoppedBySignal as stop:
        _say_stopped(str(stop))
        code = 128 + stop.number
    except KeyboardInterrupt:
        _say_stopped("SIGINT")
        code = _INTERRUPTED
    except OutputError as error:
        code = _after_failed_output(error)
    except OSError as error:
        if not is_circumstance(error):
            raise
        code = _refuse(str(explained(error)))
    except UnicodeEncodeError as error:
        if not _is_of_file_names(error):
            raise
        code = _refuse(f"the file name {error.object!r} cannot be spelled in {error.encoding}; {USE_UTF8}")
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        cause = (str(error).splitlines() or [type(error).__name__])[0]
        code = _refuse(f"out of memory ({cause}); give less text or a smaller model, or close other programs")
    code = _finish(code)
    if code:
        sys.exit(code)


def _exit_code(main: Callable[[], None]) -> int:
    try:
        with ended_by_signals():
            main()
    except SystemExit as ended:  # argparse, after --help or a wrong option
        return ended.code if isinstance(ended.code, int) else 0
    return 0


def _is_of_file_names(error: UnicodeEncodeError) -> bool:
    return not has_utf8_names() and error.encoding.lower() == sys.getfilesystemencoding().lower()


def _finish(code: int) -> int:
    """Write out what is left; returns the exit code, which a failure changes if it was 0."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OutputError as error:
            explained_code = _after_failed_output(error)
            code = code or explained_code
    return code


def _after_failed_output(error: OutputError) -> int:
    """Let later flushes succeed, the interpreter's own too; say why output is missing unless its reader has gone."""
    send_nowhere(error.number)
    return _READER_GONE if error.is_reader_gone else _refuse(str(error))


def _refuse(line: str) -> int:
    """Print the one line on stderr; returns the exit code."""
    try:
        print(_one_line(line), file=sys.stderr, flush=True)
    except OutputError as error:  # nobody can be told, but the exit code says it
        send_nowhere(error.number)
    return _MISTAKE


def _is_out_of_memory(error: Exception) -> bool:
    """Whether an allocation failed, in Python or numpy, or in torch, which only some commands need."""
    if isinstance(error, MemoryError):
        return True
    if "torch" not in sys.modules:
        return False
    from model.training.device import is_out_of_memory  # here: it imports torch, and data and trace start without

    return is_out_of_memory(error)


# The message


def _one_line(message: str) -> str:
    r"""The message with every line break and control character as its code; spaces stay as they are.

    >>> _one_line("cannot read a  b\nc")
    'cannot read a  b\\nc'
    """
    return visible(message)


def _say_stopped(signal_name: str) -> None:
    if os.environ.get("RANK", "0") == "0":  # one of several processes speaks for all
        say(f"{signal_name}: stopped; what was finished is kept, run the same command again to go on")


def _as_one_setting(setting: str) -> str:
    """A setting as it must be written in Make's SET, which is cut at white space outside quotes and brackets."""
    if not any(character.isspace() for character in setting):
        return setting
    return f"'{setting}'" if '"' in setting else f'"{setting}"'


def _for_the_user(error: UserError, arguments: list[str]) -> str:
    """The message with the experiment and its settings in the commands it names, ready to be pasted.

    >>> from data.errors import command
    >>> _for_the_user(UserError(f"too old; run {command('make data')}"), ["--config", "demo"])
    'too old; run `make data EXPERIMENT=demo`'
    >>> settings = ["--set", "train.seed=2", "--set", "train.batch_size=8"]
    >>> _for_the_user(UserError(f"run {command('make train-char FORCE=1')}"), settings)
    "run `make train-char FORCE=1 SET='train.seed=2 train.batch_size=8'`"
    """
    try:
        given = parser(None).parse_known_args(arguments)[0]
    except UserError:  # the message is about these very options
        return str(error)
    is_named = given.config != DEFAULT_EXPERIMENT
    if sys.argv[0].startswith(f"{PROGRAM} "):
        options = ["--config", given.config] if is_named else []
        options += [word for setting in given.set for word in ("--set", setting)]
        return error.with_commands(lambda words: _without_make(words, options))
    written = f" EXPERIMENT={shlex.quote(given.config)}" if is_named else ""
    if given.set:
        written += f" SET={shlex.quote(' '.join(map(_as_one_setting, given.set)))}"
    return error.completed(written)


def _without_make(words: str, options: list[str]) -> str:
    """The command `words` of Make as the console entry takes it.

    >>> _without_make("make train-char train-bpe FORCE=1", ["--config", "a b"])
    "chars-or-bpe train-char --force --config 'a b' && chars-or-bpe train-bpe --force --config 'a b'"
    >>> _without_make("make marginal CONTESTANT=bpe", [])
    'chars-or-bpe marginal --contestant bpe'
    """
    targets = [word for word in words.split()[1:] if "=" not in word]
    own: list[str] = []
    for word in words.split()[1:]:
        name, equals, value = word.partition("=")
        if equals:
            option = f"--{name.lower().replace('_', '-')}"
            own += [option] if value == "1" else [option, value]
    return " && ".join(shlex.join([PROGRAM, target, *own, *options]) for target in targets)
