"""The command line as people use it, and machines to use it on."""

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from accelkit.cli.main import main
from accelkit.testing.simulate import simulate
from tests.cli.golden import golden

__all__ = ["golden"]


@attrs.frozen(kw_only=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Run = Callable[..., Answer]  # type: ignore[explicit-any]  # of as many words as a test likes


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run accelkit in this process: words in, exit code and what was printed out."""
    monkeypatch.setenv("NODE_NAME", "n1")

    def run_words(*words: object) -> Answer:
        capsys.readouterr()
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return Answer(code=code, out=said.out, err=said.err)

    return run_words


@pytest.fixture
def basic(tmp_path: Path) -> Path:
    """Two simulated accelerators, without links."""
    simulate("sim", "basic", 2, str(tmp_path / "basic"))
    return tmp_path / "basic"


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    """Eight in a ring."""
    simulate("sim", "ring", 8, str(tmp_path / "ring"))
    return tmp_path / "ring"


@pytest.fixture
def cube(tmp_path: Path) -> Path:
    """Eight that can be used in aligned blocks only."""
    simulate("sim", "cube", 8, str(tmp_path / "cube"))
    return tmp_path / "cube"


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """Two that are cut in halves."""
    simulate("sim", "split", 2, str(tmp_path / "split"))
    return tmp_path / "split"


@pytest.fixture
def policy(tmp_path: Path) -> Callable[[str], Path]:
    """Write a policy file."""

    def write(text: str) -> Path:
        file = tmp_path / "policy.yaml"
        file.write_text(text)
        return file

    return write
