"""What happens on a node, in the stories that a keeper must survive."""

from collections.abc import Callable, Mapping

import attrs

from accelkit.core.allocation import Piece
from accelkit.core.policy import Offer
from tests.agent.keeping.board import CUT, WHOLE, Board, ident
from tests.agent.keeping.kubelet import Life
from tests.agent.keeping.world import OFFER, allocation, library


@attrs.frozen(kw_only=True)
class Scenario:
    lives: tuple[Life, ...]
    board: Callable[[], Board] = lambda: Board(plain=("a", "b"), tells_numbers=False)
    slow: Mapping[str, float] = attrs.field(factory=dict)
    """Seconds that calls of the vendor take, by name."""
    offer: Offer = OFFER
    give_up_after_s: float = 600.0


def _board(**fields: object) -> Callable[[], Board]:
    def make() -> Board:
        board = Board(tells_numbers=False)
        for name, value in fields.items():
            setattr(board, name, dict(value) if isinstance(value, dict) else value)
        return board

    return make


def _with_stranger() -> Board:
    board = Board(modes={"g": CUT}, tells_numbers=False)
    board.add_part("g", "half", 2)
    return board


def _shares(uid: str, value: str) -> Life:
    piece = Piece(device=ident("a"), request="r", share=f"{uid * 8}-0")
    return Life(claim=allocation(uid, piece, config={"slice": value}))


CUTTABLE = _board(modes={"g": WHOLE})

SCENARIOS: Mapping[str, Scenario] = {
    "plain": Scenario(lives=(Life(claim=allocation("1", "a", "b")),)),
    "two claims side by side": Scenario(
        lives=(Life(claim=allocation("1", "a")), Life(claim=allocation("2", "b")))
    ),
    "a partition and its mode": Scenario(
        board=CUTTABLE, lives=(Life(claim=allocation("1", "g-half-0")),)
    ),
    "two partitions of one device": Scenario(
        board=CUTTABLE, lives=(Life(claim=allocation("1", "g-half-0", "g-quarter-3")),)
    ),
    "two claims on one device": Scenario(
        board=CUTTABLE,
        lives=(
            Life(claim=allocation("1", "g-half-0"), ends=frozenset({"2 ran"})),
            Life(
                claim=allocation("2", "g-half-2"),
                begins=frozenset({"1 ran"}),
                ends=frozenset({"1 ended"}),
            ),
        ),
    ),
    "partitions, then the whole": Scenario(
        board=CUTTABLE,
        lives=(
            Life(claim=allocation("1", "g-half-0"), ends=frozenset({"2 asked"})),
            Life(claim=allocation("2", "g"), begins=frozenset({"1 ran"})),
        ),
    ),
    "a place that is being given back": Scenario(
        board=CUTTABLE,
        slow={"destroy": 3.0},
        lives=(
            Life(claim=allocation("1", "g-half-0")),
            Life(
                claim=allocation("2", "g-half-0"),
                begins=frozenset({"1 ends"}),
                ends=frozenset({"1 ended"}),
            ),
        ),
    ),
    "one setting of two claims": Scenario(
        lives=(
            attrs.evolve(_shares("1", "long"), ends=frozenset({"2 ran"})),
            attrs.evolve(
                _shares("2", "long"), begins=frozenset({"1 ran"}), ends=frozenset({"1 ended"})
            ),
        )
    ),
    "a setting that is being undone": Scenario(
        slow={"revert": 3.0},
        lives=(
            _shares("1", "long"),
            attrs.evolve(
                _shares("2", "long"), begins=frozenset({"1 ends"}), ends=frozenset({"1 ended"})
            ),
        ),
    ),
    "two settings of two claims": Scenario(
        lives=(
            attrs.evolve(_shares("1", "long"), ends=frozenset({"2 refused"})),
            attrs.evolve(_shares("2", "short"), begins=frozenset({"1 ran"})),
        )
    ),
    "a device that is given back": Scenario(
        lives=(
            Life(claim=allocation("1", "a"), ends=frozenset({"2 asked"})),
            Life(claim=allocation("2", "a"), begins=frozenset({"1 ran"})),
        )
    ),
    "a device that stays taken": Scenario(
        lives=(
            Life(claim=allocation("1", "a"), ends=frozenset({"2 refused"})),
            Life(claim=allocation("2", "a"), begins=frozenset({"1 ran"})),
        )
    ),
    "a stranger's partition": Scenario(
        board=_with_stranger, lives=(Life(claim=allocation("1", "g-half-0")),)
    ),
    "a stranger's partition that a claim has": Scenario(
        board=_with_stranger, lives=(Life(claim=allocation("1", "g-half-2", "g-quarter-0")),)
    ),
    "given back twice": Scenario(
        board=CUTTABLE, lives=(Life(claim=allocation("1", "g-half-0"), twice=True),)
    ),
    "given back while it is made": Scenario(
        board=CUTTABLE,
        slow={"create": 5.0},
        lives=(Life(claim=allocation("1", "g-half-0"), ends=frozenset({"1 asked"}), hasty=True),),
    ),
    "made half, then failed": Scenario(
        board=_board(modes={"g": CUT}, failures={"create g-half-2": 1}),
        lives=(Life(claim=allocation("1", "g-half-0", "g-half-2")),),
    ),
    "unmade at the third try": Scenario(
        board=_board(modes={"g": CUT}, failures={"destroy g-half-0": 2}),
        lives=(Life(claim=allocation("1", "g-half-0")),),
    ),
    "given up, then unmade": Scenario(
        board=_board(modes={"g": CUT}, failures={"destroy g-half-0": 5}),
        lives=(Life(claim=allocation("1", "g-half-0")),),
        give_up_after_s=20.0,
    ),
    "one name, two claims": Scenario(
        lives=(
            Life(claim=allocation("1", "a", name="c"), ends=frozenset({"2 asked"})),
            Life(claim=allocation("2", "b", name="c"), begins=frozenset({"1 ran"})),
        )
    ),
    "a library that needs scratch space": Scenario(
        offer=library(), lives=(Life(claim=allocation("1", "a")),)
    ),
    "never given back": Scenario(
        board=CUTTABLE, lives=(Life(claim=allocation("1", "g-half-0"), lost=True),)
    ),
}
