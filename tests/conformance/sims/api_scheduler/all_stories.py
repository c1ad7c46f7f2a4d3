"""Every story; importing this fills the table."""

from tests.conformance.sims.api_scheduler import (
    stories_claims,
    stories_counters,
    stories_extended,
    stories_shares,
)
from tests.conformance.sims.api_scheduler.stories import STORIES, Story

FILES = (stories_claims, stories_counters, stories_extended, stories_shares)
ALL: tuple[Story, ...] = tuple(STORIES)
