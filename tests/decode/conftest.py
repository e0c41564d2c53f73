# SPDX-License-Identifier: MIT
"""`native` is the library with the core's decoder, `decoder` an object of it."""

import native_decoder
import pytest


@pytest.fixture(scope="session")
def native(tmp_path_factory):
    return native_decoder.build(tmp_path_factory.mktemp("core"))


@pytest.fixture
def decoder(native):
    decoder = native_decoder.Decoder(native)
    yield decoder
    decoder.close()
