from contextlib import ExitStack

import pytest
from consortium import Consortium


@pytest.fixture
def opened():
    """Sites of a consortium, open until the test ends."""
    with ExitStack() as stack:
        yield lambda consortium: [stack.enter_context(site) for site in consortium.sites()]


@pytest.fixture
def oneshot(tmp_path):
    return Consortium(tmp_path / "study")


@pytest.fixture
def adaptive(tmp_path):
    return Consortium(tmp_path / "study", method="adaptive")
