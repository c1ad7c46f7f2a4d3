"""Every story; importing this fills the table."""

from tests.conformance.sims.api_scheduler import (
    stories_claims,
    stories_constraints,
    stories_counters,
    stories_extended,
    stories_pools,
    stories_shares,
    stories_taints,
)
from tests.conformance.sims.api_scheduler.stories import STORIES, Story

FILES = (
    stories_claims,
    stories_constraints,
    stories_counters,
    stories_extended,
    stories_pools,
    stories_shares,
    stories_taints,
)
ALL: tuple[Story, ...] = tuple(STORIES)
