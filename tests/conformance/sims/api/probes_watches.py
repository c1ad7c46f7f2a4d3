"""What watches tell, until their time is over."""

from tests.conformance.sims.api.asking import MERGE, Probe, Step
from tests.conformance.sims.api.probes_slices import PATH, slice_of

ONE = f"{PATH}/probe"
MAKE = Step("POST", PATH, slice_of([], driver="watch.test"))
LABEL = Step("PATCH", ONE, {"metadata": {"labels": {"x": "y"}}}, MERGE)
UNLABEL = Step("PATCH", ONE, {"metadata": {"labels": None}}, MERGE)
END = Step("DELETE", ONE)
FRESH = Step("GET", PATH)
"""After it, a server's cache knows what was before it."""
CHANGES = (MAKE, LABEL, UNLABEL, LABEL, END)
MINE = "watch=1&timeoutSeconds=1&fieldSelector=spec.driver%3Dwatch.test"
ALL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


def watched(name: str, query: str, *before: Step) -> Probe:
    return Probe(name, (Step("GET", f"{PATH}?{MINE}&{query}"),), before, (END,))


# "$first" is the version of the first object that was seen: the changes after it are told.
WATCHES = (
    watched("watched from its making on", "resourceVersion=$first", *CHANGES),
    watched("watched by a label", "resourceVersion=$first&labelSelector=x%3Dy", *CHANGES),
    watched("watched from anywhere", "resourceVersion=0", MAKE, LABEL, FRESH),
    watched("watched from the newest version", "", MAKE, LABEL),
    watched("watched with bookmarks", "resourceVersion=0&allowWatchBookmarks=true", MAKE, FRESH),
    watched("watched with initial events", ALL, MAKE),
    watched(
        "watched without initial events",
        f"{ALL.replace('true&resource', 'false&resource')}&resourceVersion=$first",
        *CHANGES[:2],
    ),
)
