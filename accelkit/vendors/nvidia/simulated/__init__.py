"""NVML in Python, for a simulated machine.

Each function has the C signature of nvml.h and answers like the C function of driver R580.
Functions that are not here are missing, as from an older library.
"""

from collections.abc import Mapping, Sequence
from functools import wraps

from accelkit.testing.machines import Function, Live
from accelkit.vendors.nvidia.board import Board
from accelkit.vendors.nvidia.simulated import carving, events, gpus, health, links, measures, mig
from accelkit.vendors.nvidia.simulated.calls import C, Library

_MODULES = (gpus, links, health, measures, events, mig, carving)


def library(board: Board, live: Live, units: Sequence[str], version: str) -> Mapping[str, Function]:
    """All functions by symbol, for one process."""
    process = Library(board, live, units, version)
    return {
        symbol: _bound(function, process)
        for module in _MODULES
        for symbol, function in module.SYMBOLS.items()
    }


def _bound(function: Function, process: Library) -> Function:
    @wraps(function)
    def call(*args: C) -> int:
        return int(function(process, *args))

    return call
