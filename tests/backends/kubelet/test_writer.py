"""Work on files that hangs."""

import threading
from collections.abc import Callable

import pytest

from accelkit.backends.kubelet.writer import Writer


class Gate:
    """A job that ends when it is let."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.begun = 0
        self.opened = threading.Event()

    def job(self) -> str:
        self.begun += 1
        assert self.opened.wait(20)
        return self.answer


async def until_told(writer: Writer[str], job: Callable[[], str]) -> str:
    while True:
        if (answer := await writer.run(job, 0.01)) is not None:
            return answer


async def test_job_that_ends_is_answered() -> None:
    assert await Writer[str]().run(lambda: "done", 20) == "done"


async def test_error_of_a_job_reaches_whoever_waits() -> None:
    def fails() -> str:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await Writer[str]().run(fails, 20)


async def test_job_that_hangs_is_not_begun_again_and_answers_when_it_ends() -> None:
    writer, gate = Writer[str](), Gate("late")
    assert await writer.run(gate.job, 0.01) is None
    assert await writer.run(gate.job, 20) is None
    gate.opened.set()

    assert await until_told(writer, gate.job) == "late"
    assert gate.begun == 1


async def test_other_job_waits_for_the_one_that_hangs() -> None:
    writer, old, new = Writer[str](), Gate("old"), Gate("new")
    new.opened.set()
    assert await writer.run(old.job, 0.01) is None
    assert await writer.run(new.job, 0.01) is None
    assert new.begun == 0
    old.opened.set()

    assert await until_told(writer, new.job) == "new"
