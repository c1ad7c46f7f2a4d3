"""The simulated scheduler does what the real one was seen to do."""

import pytest

from tests.conformance.sims.api_scheduler.all_stories import ALL
from tests.conformance.sims.api_scheduler.simulated import Simulated
from tests.conformance.sims.api_scheduler.stories import Story


@pytest.mark.parametrize("story", ALL, ids=lambda story: story.name)
def test_scheduler_does_as_seen(story: Story) -> None:
    assert story.tell(Simulated.fresh()) == story.seen
