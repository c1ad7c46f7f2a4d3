"""The policy that is read without being asked for. Not here: reading it."""

from pathlib import Path

POLICY = Path("/etc/accelkit/policy.yaml")


def standing_policy() -> Path | None:
    """POLICY, unless nothing is there.

    What may not be looked at, and a link to nowhere, count as there: whoever reads it says why
    it cannot, where the built-in policy would say something else of the node without a word.
    """
    try:
        POLICY.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        pass
    return POLICY
