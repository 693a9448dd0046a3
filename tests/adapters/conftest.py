from __future__ import annotations

import pytest
from adapter_fakes import Counting


@pytest.fixture
def policy() -> type[Counting]:
    """Return a class of its own, so that each test has its own list of instances."""
    return type("Policy", (Counting,), {"built": []})
