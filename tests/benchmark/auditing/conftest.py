"""What tests of the audit share."""

import pytest

from loginfer.benchmark import learned_shortcut


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch):
    """Learn shortcuts in a moment: here they stand beside what is tested."""
    monkeypatch.setattr(learned_shortcut, "ROUNDS", 5)
