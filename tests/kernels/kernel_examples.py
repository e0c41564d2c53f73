# SPDX-License-Identifier: MIT
"""What hypothesis draws for kernels: the same examples in every run."""

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# The fixture that chooses the kernels holds nothing that an example changes.
SLOW_FIXTURE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def fixed(examples):
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=SLOW_FIXTURE,
    )


# One pixel and small sides come often.
SIDES = st.one_of(
    st.just(1), st.integers(1, 3), st.integers(1, 12), st.integers(1, 100), st.integers(1, 400)
)
SEEDS = st.integers(0, (1 << 32) - 1)
KEYS = st.integers(0, (1 << 64) - 1)
POSITIONS = st.integers(0, (1 << 40) - 1)


def noise(seed, width, height):
    """A picture; every third one has only black and white, the worst case for rounding."""
    image = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    return np.where(image > 127, 255, 0).astype(np.uint8) if seed % 3 == 0 else image
