"""What the agent of a node answers, as values. Not here: how it is reached."""

import json
from typing import TYPE_CHECKING, TypeVar

import attrs

from accelkit.cli.agent_socket import ANSWER_S, NoAgent, NotKnown, ask

if TYPE_CHECKING:
    from accelkit.agent.clearing import Forgotten
    from accelkit.agent.cutting import Applied
    from accelkit.cli.options import Asked
    from accelkit.core.claims import LedgerEntry
    from accelkit.core.model import Evidence, Problem
    from accelkit.core.view import View

T = TypeVar("T")

CLEAR_S = 60.0
"""Vendors are asked how their devices are, after whatever they are asked just now."""
APPLY_S = 600.0
"""Cutting takes its time: a GPU that is reset, partitions that linger."""


@attrs.frozen
class Agent:
    """A running agent."""

    run: str
    """Its run directory."""

    def view(self) -> "View":
        from accelkit.core.view import View  # noqa: PLC0415 - help does without

        return self._ask(View, "/view")

    def claims(self) -> "tuple[LedgerEntry, ...]":
        from accelkit.core.claims import LedgerEntry  # noqa: PLC0415 - help does without

        return self._ask(tuple[LedgerEntry, ...], "/ledger")

    def evidence(self) -> "tuple[Evidence, ...]":
        from accelkit.core.model import Evidence  # noqa: PLC0415 - help does without

        return self._ask(tuple[Evidence, ...], "/evidence")

    def clear(self, subject: str, code: str | None) -> "Forgotten":
        """Tell it that a fault is gone.

        Raises:
            UnknownDevice: It knows no such device, or nothing of that code.
        """
        from accelkit.agent.clearing import Forgotten  # noqa: PLC0415 - help does without
        from accelkit.core.errors import UnknownDevice  # noqa: PLC0415 - see above

        body = json.dumps({"subject": subject, "code": code}).encode()
        try:
            return self._ask(Forgotten, "/evidence/clear", post=True, body=body, within_s=CLEAR_S)
        except NotKnown as error:
            raise UnknownDevice(str(error), remedy="see: accelkit health") from error

    def problems(self) -> "tuple[Problem, ...]":
        from accelkit.core.model import Problem  # noqa: PLC0415 - help does without

        return self._ask(tuple[Problem, ...], "/problems")

    def apply(self) -> "Applied":
        """Let it cut devices as its policy says."""
        from accelkit.agent.cutting import Applied  # noqa: PLC0415 - help does without

        return self._ask(Applied, "/apply", post=True, within_s=APPLY_S)

    def _ask(
        self,
        kind: type[T],
        path: str,
        *,
        post: bool = False,
        body: bytes = b"",
        within_s: float = ANSWER_S,
    ) -> T:
        from accelkit.core.serde import from_tree  # noqa: PLC0415 - loads cattrs

        answer = ask(self.run, path, post=post, body=body, within_s=within_s)
        return from_tree(kind, json.loads(answer))


def agent_of(asked: "Asked") -> Agent | None:
    """The agent that runs for the node that *asked* names; None: there is none.

    Raises:
        ConfigError: The policy is wrong.
        TransportError: There is one, and it cannot be asked.
    """
    try:
        return the_agent_of(asked)
    except NoAgent:
        return None


def the_agent_of(asked: "Asked") -> Agent:
    """The agent that runs for the node that *asked* names.

    Raises:
        ConfigError: The policy is wrong.
        NoAgent: There is none.
        TransportError: It cannot be asked.
    """
    from accelkit.agent.reload import read_policy_file  # noqa: PLC0415 - help does without
    from accelkit.core.policy import Policy  # noqa: PLC0415 - see above

    policy = Policy() if asked["policy"] is None else read_policy_file(asked["policy"])
    if asked["host"] not in {None, policy.paths.host}:
        raise NoAgent(
            f"no agent is known for {asked['host']}: the policy's is for {policy.paths.host}",
            remedy="name the policy of its agent: --policy FILE",
        )
    run = policy.paths.run
    ask(run, "/livez")
    return Agent(run)
