"""The table of stories: what is done, and what is seen."""

from collections.abc import Callable

from attrs import frozen

from tests.conformance.sims.api_scheduler.world import World

FULL = "0/1 nodes are available: 1 cannot allocate all claims."


@frozen
class Story:
    """What is done in a world, and what is seen of it."""

    tell: Callable[[World], object]
    seen: object

    @property
    def name(self) -> str:
        return self.tell.__name__


STORIES: list[Story] = []


def seen(expected: object) -> Callable[[Callable[[World], object]], Callable[[World], object]]:
    """Put a story into the table."""

    def put(tell: Callable[[World], object]) -> Callable[[World], object]:
        STORIES.append(Story(tell, expected))
        return tell

    return put
