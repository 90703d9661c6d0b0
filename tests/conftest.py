"""What all tests share: hypothesis profiles. HYPOTHESIS_PROFILE=dev (the default), ci (always the same), or deep."""

import os

from hypothesis import HealthCheck, settings

# No deadline: the machine's speed is no property of the code. Deep runs try fifty times as many examples.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("deep", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))
