import ctypes

from accelkit.core.tables import FunctionTable


def test_a_loaded_library_is_a_function_table() -> None:
    table: FunctionTable = ctypes.CDLL("libc.so.6")

    assert table.abs(-3) == 3
    assert not hasattr(table, "no_such_function")
