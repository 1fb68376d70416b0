# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: plans as tests.

    @pytest.mark.swsim("plans/train.yaml", driver="clock")
    def test_train_plan(swsim_plan):
        assert swsim_plan.properties["race"] == "proved"

The test fails, with the story and the repair, unless the plan is proved. Arguments of the mark are those of
swsim.verify; the fixture is the Verdict. With `proved=False` the test itself judges.
"""
from __future__ import annotations

from typing import Any

import pytest

import swsim


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", "swsim(plan, proved=True, **options): verify the plan before the test")


@pytest.fixture  # type: ignore[untyped-decorator,unused-ignore]
def swsim_plan(request: pytest.FixtureRequest) -> swsim.Verdict:
    """The verdict on the plan that the mark names."""
    mark = request.node.get_closest_marker("swsim")
    if mark is None or not mark.args:
        pytest.fail("swsim_plan needs a mark that names a plan: @pytest.mark.swsim(\"train.yaml\")")
    options: dict[str, Any] = dict(mark.kwargs)
    proved = options.pop("proved", True)
    verdict = swsim.verify(mark.args[0], **options)
    if proved and not verdict:
        pytest.fail(str(verdict), pytrace=False)
    return verdict


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A mark without the fixture is verified, too."""
    mark = item.get_closest_marker("swsim")
    if mark is not None and isinstance(item, pytest.Function) and "swsim_plan" not in item.fixturenames:
        options: dict[str, Any] = dict(mark.kwargs)
        proved = options.pop("proved", True)
        verdict = swsim.verify(mark.args[0], **options)
        if proved and not verdict:
            pytest.fail(str(verdict), pytrace=False)
