"""What all tests share: one tiny finished experiment, and the profiles of hypothesis.

HYPOTHESIS_PROFILE=dev (the default), ci (always the same), or deep.
"""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from chain_helpers import CHAIN, make_chain
from compare.experiment import load_experiment
from compare.steps import Steps

# No deadline: the machine's speed is no property of the code. Deep runs try fifty times as many examples.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("deep", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_collection_finish() -> None:
    """Modules and collected tests live to the end: no collection of garbage has to look through them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def finished_chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished comparison that nobody changes; a test that changes it works on a copy.

    Its paths are relative, so it is loaded with this folder, or the copy, as the working folder.
    """
    folder = make_chain(tmp_path_factory.mktemp("chain"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Steps(load_experiment(Path(CHAIN)), echo=lambda _line: None).compare()
    return folder
