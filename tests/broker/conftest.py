"""Tests against real brokers run when they are asked for (`make test-broker`), never by themselves: they fetch jars and take minutes."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", "broker: starts real brokers; runs only where -m names it")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests marked `broker`, unless `-m` names them."""
    if "broker" not in config.option.markexpr:
        left_out = [item for item in items if item.get_closest_marker("broker")]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item not in left_out]
