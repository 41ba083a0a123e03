"""How compiled functions are declared."""

import pytest

from nearcast.model.jit import njit


def test_both_forms_compile() -> None:
    @njit(cache=False)
    def add(a: int, b: int) -> int:
        return a + b

    @njit(cache=False, nogil=True)
    def twice(a: int) -> int:
        return add(a, a)

    assert twice(21) == 42


def test_fast_math_is_refused() -> None:
    with pytest.raises(ValueError, match="fastmath"):
        njit(fastmath=True)
