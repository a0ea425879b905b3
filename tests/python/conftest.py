# SPDX-License-Identifier: Apache-2.0
"""Fixtures that several files of tests use."""
import warnings

import pytest


@pytest.fixture
def no_warning_was_given():
    """Check that no test makes an unexpected copy of an array, which gives a warning."""
    import graft
    graft.arrays._warned.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error", graft.CopyWarning)
        yield
