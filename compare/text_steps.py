"""The first steps of an experiment's chain, texts and tokenizers; the steps that need torch are in compare/steps.py.

Each step first makes what it needs and does nothing that is already up to date. Up to date is decided by content: every
artefact records the hashes of what it was made from. A touched file costs nothing, an edited one is never missed.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from compare.experiment import Experiment
from data import corpus as sources
from data import splits
from data.errors import TokenizerError, command
from data.lock import alone
from data.show import say
from data.splits import Split
from data.summary import describe_corpus
from tokenizer.base import Int64Array, Tokenizer
from tokenizer.foreign.make import read_foreign
from tokenizer.loading import load_tokenizer
from tokenizer.studies.summary import describe
from tokenizer.train import Engine, effective_settings, provenance, train_tokenizer


class TextSteps:
    """Texts and tokenizers of one experiment. They are kept once read, so that `all` reads them once."""

    def __init__(self, experiment: Experiment, *, echo: Callable[[str], None] = say) -> None:
        """`echo` gets one line for every step that was done or found up to date."""
        self.experiment = experiment
        self.layout = experiment.layout
        self.echo = echo
        self.num_done = 0
        """Steps that had work to do."""
        self._splits: dict[str, Split] | None = None
        self._tokenizers: dict[str, Tokenizer] = {}
        self._latest_ids: tuple[str, dict[str, tuple[Int64Array, Int64Array]]] | None = None

    def did(self, line: str) -> None:
        """Count a step that had work to do, and say what it made."""
        self.num_done += 1
        self.echo(line)

    def data(self) -> dict[str, Split]:
        """The cleaned splits."""
        if self._splits is None:
            corpus, normalization = self.experiment.corpus, self._normalization()
            manifest = self.layout.corpus_manifest
            if sources.is_up_to_date(corpus, self.layout, normalization):
                self.echo(f"data: up to date ({manifest})")
            else:
                with alone(self.layout.processed) as has_waited:
                    if has_waited:
                        return self.data()
                    entry = sources.prepare(corpus, self.layout, normalization)
                    self.did(f"data: wrote {manifest}\n{describe_corpus(corpus.corpus_name, entry)}")
            self._splits = splits.load_splits(self.layout, corpus.corpus_name)
        return self._splits

    def _normalization(self) -> sources.Normalization | None:
        """What `normalized_by` does to every document."""
        name = self.experiment.normalized_by
        if name is None:
            return None
        tokenizer = read_foreign(self.experiment.contestant(name).tokenizer, {})

        def normalized(text: str) -> str:
            """`text` encoded and decoded again."""
            try:
                return tokenizer.decode(tokenizer.encode(text))
            except TokenizerError as error:
                raise TokenizerError(f"normalized_by {name}: {error.text} (in {text[:30]!r} …)") from error

        return sources.Normalization(tokenizer.fingerprint(), normalized)

    def tokenizer(
        self,
        name: str,
        *,
        own_settings: Mapping[str, Any] | None = None,
        engine_name: Engine = "fast",
    ) -> Tokenizer:
        """The tokenizer of contestant `name`.

        `own_settings` (from the command `tokenizer`) replace configured values for this training; none of them, {},
        means exactly the configuration. They are remembered in the file, and steps that have no say (None) keep such
        a tokenizer for as long as the configured values stay what they were.
        """
        if name in self._tokenizers:
            return self._tokenizers[name]
        splits = self.data()
        path = self.layout.tokenizer(name)
        configured = self.experiment.contestant(name).tokenizer
        existing = self._existing(path, is_asked_for=own_settings is not None)
        stored: Mapping[str, Any] = getattr(existing, "trained_on", None) or {}
        asked_settings = own_settings
        if own_settings is None:
            own_settings = effective_settings(configured, stored)
            if own_settings:
                self.echo(f"  the tokenizer keeps the settings it was given when it was trained: {own_settings}")
        if existing is not None and stored == provenance(configured, splits, own_settings):
            self.echo(f"tokenizer {name}: up to date ({path})")
            self._tokenizers[name] = existing
            return existing
        with alone(path) as has_waited:
            if has_waited:
                return self.tokenizer(name, own_settings=asked_settings, engine_name=engine_name)
            tokenizer, training = train_tokenizer(
                configured, splits, own_settings=own_settings, engine_name=engine_name
            )
            tokenizer.save(path)
            ids = {split.name: tokenizer.encode_documents(split.documents()) for split in splits.values()}
            num_tokens = {split: len(found) for split, (found, _) in ids.items()}
            self.did(describe(name, tokenizer, training, splits, num_tokens))
            self._latest_ids = (name, ids)
        self._tokenizers[name] = tokenizer
        return tokenizer

    def _existing(self, path: Path, *, is_asked_for: bool) -> Tokenizer | None:
        """The tokenizer at `path`, if there is one. The command `tokenizer` replaces a damaged file, saying so."""
        if not path.exists():
            return None
        try:
            return load_tokenizer(path)
        except TokenizerError as error:
            if not is_asked_for:
                if "make tokenizer" in error.commands:
                    raise
                way_on = f"run {command('make tokenizer')} to make it again"
                raise TokenizerError(f"{error.text}; {way_on}") from error
            self.echo(f"  {error}: training again")
            return None

    def take_ids(self, name: str) -> dict[str, tuple[Int64Array, Int64Array]]:
        """Ids and document offsets of each split, if the tokenizer of contestant `name` was the latest trained here.

        Empty otherwise, and from the second call on: a large text is not held longer than it is needed.
        """
        latest, self._latest_ids = self._latest_ids, None
        return latest[1] if latest is not None and latest[0] == name else {}
