"""Figures of the layers of a job under a setting, whatever the sites."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agents.decision.training_job import TrainingJob
from agents.search.settings import BoundSetting, differences
from agents.search.shared_parts import SharedParts
from agents.search.site_figures import (
    outer_state_before_bytes,
    parameters_before,
    state_before_bytes,
)


@dataclass(frozen=True, kw_only=True)
class JobLayers:
    """Bytes and parameters of layers, each worked out once."""

    job: TrainingJob
    shared: SharedParts

    @cached_property
    def number(self) -> int:
        """Number of the job."""
        return self.shared.number(self.job)

    def layer_bytes(self, setting: BoundSetting) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """State before each layer, also with a microbatch's activations; least of a layer, (2,)."""

        def work_out() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            kept_bytes = np.array(setting.workload(self.job).sums_before.activation_bytes, float)
            state_bytes = self._state_bytes(setting)
            least_bytes = np.diff([state_bytes, kept_bytes]).min(axis=1)
            return state_bytes, state_bytes + kept_bytes, least_bytes

        return self.shared.part(("bytes", self.number, *differences(setting)), work_out)

    def _state_bytes(self, setting: BoundSetting) -> np.ndarray:
        """Model state of a device before each layer."""
        degrees, num_replicas = setting.degrees, setting.num_replicas
        precision, has_outer_state = setting.gradient_precision, setting.has_outer_state

        def work_out() -> np.ndarray:
            parameters, parallelism = self.parameters(setting), degrees.parallelism(1)
            gradient_bytes = setting.workload(self.job).gradient_bytes
            found = state_before_bytes(parameters, parallelism, gradient_bytes, num_replicas)
            if has_outer_state:
                found = found + outer_state_before_bytes(parameters, parallelism)
            return found

        key = "state", self.number, degrees, precision, num_replicas, has_outer_state
        return self.shared.part(key, work_out)

    def parameters(self, setting: BoundSetting) -> np.ndarray:
        """Parameters before each layer, see `SiteFigures`."""
        degrees = setting.degrees
        return self.shared.part(
            ("parameters", self.number, degrees.expert, degrees.copies),
            lambda: parameters_before(setting.workload(self.job), degrees.parallelism(1)),
        )
