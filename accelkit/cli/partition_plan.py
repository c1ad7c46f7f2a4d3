"""What is left to do until a node's devices are cut as a policy says. Not here: doing it."""

import attrs

from accelkit.agent.cutting_steps import root_of
from accelkit.cli.node import NodeReading
from accelkit.core.errors import SourceError
from accelkit.core.model import Problem
from accelkit.core.partitioning import Create, Destroy, SetMode, Step, plan, steps
from accelkit.core.policy import PartitioningHow, When
from accelkit.core.values import freeze


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Todo:
    """A step, and whether it waits to be told."""

    step: str
    """destroy, set-mode or create."""
    device: str
    """Of set-mode the whole device, else the partition."""
    mode: str | None = None
    """Of set-mode."""
    when: When = When.IDLE
    """DRAINED: only when `partition apply` asks for it."""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.step, self.device, self.mode)))


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Left:
    """What a policy leaves to do."""

    steps: tuple[Todo, ...] = ()
    """In the order in which they are done."""
    problems: tuple[Problem, ...] = ()
    """What cannot be, and who is in the way."""
    cuts: bool = True
    """Whether the policy wants anything cut."""

    @property
    def nothing(self) -> bool:
        """Whether everything is as it should be."""
        return not (self.steps or self.problems)


def left_to_do(found: NodeReading) -> Left:
    """What is left to do on the node that was *found*, by its policy."""
    snapshot, policy = found.view.snapshot, found.policy
    wanted = plan(
        snapshot,
        policy,
        found.view.holdings,
        made=found.made,
        claimed=found.view.made,
        makers=found.makers,
    )
    when = {one.device: one.when for one in wanted.wanted}
    return Left(
        steps=tuple(_todo(step, when[root_of(snapshot, step)]) for step in steps(snapshot, wanted)),
        problems=wanted.problems,
        cuts=any(rule.how is not PartitioningHow.NONE for rule in policy.partitioning),
    )


def check_known(found: NodeReading) -> None:
    """Refuse to say that all is well where it is not known what there is.

    Raises:
        SourceError: A vendor did not answer, or sees hardware that it cannot read.
    """
    snapshot = found.view.snapshot
    there = {device.id.vendor for device in snapshot.devices}
    troubled = {problem.vendor for problem in snapshot.problems if problem.vendor} - there
    if unknown := sorted(({*found.asked} - snapshot.answered) | (troubled & {*found.asked})):
        raise SourceError(
            f"it is not known what there is of {', '.join(unknown)}",
            remedy="see what is wrong: accelkit devices",
        )


def _todo(step: Step, when: When) -> Todo:
    match step:
        case Destroy():
            return Todo(step="destroy", device=str(step.partition), when=when)
        case SetMode():
            return Todo(step="set-mode", device=str(step.device), mode=step.mode, when=when)
        case Create():
            return Todo(step="create", device=str(step.partition), when=when)
