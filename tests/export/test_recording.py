"""What the pages say of the black box."""

from __future__ import annotations

import dataclasses

import pytest

from spark_watch.blackbox.ring import RecorderStatus
from spark_watch.export.page import Page
from spark_watch.export.views import index
from tests.export.snapshots import SNAPSHOT


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (RecorderStatus(active=False, reason="no_space"), True),
        (RecorderStatus(active=True), False),
        (RecorderStatus(), False),
        (None, False),
    ],
    ids=["off", "on", "not yet", "none"],
)
def test_the_status_page_says_that_nothing_is_recorded(
    status: RecorderStatus | None, said: bool
) -> None:
    """A recording that is off has a line with the reason; any other has none."""
    page = Page()
    page.publish(dataclasses.replace(SNAPSHOT, recorder=status))
    text = index(page, {}).body.decode()
    assert ("The black box does not record: no_space." in text) is said
    assert ("black box" in text) is said
