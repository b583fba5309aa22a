"""Numbers of any size as digits."""

from __future__ import annotations

import random
import sys

import pytest

from patternlake.udfs.digits import digits, number_of, show_number


@pytest.mark.parametrize("bits", [1, 60, 4095, 4096, 4097, 8191, 8193, 14_000])
def test_digits_are_those_of_str(bits: int) -> None:
    for number in (2**bits, 2**bits - 1, -(2**bits), random.Random(bits).getrandbits(bits), 0):
        assert digits(number) == str(number)
        assert number_of(str(number)) == number


def test_digits_go_on_where_str_stops() -> None:
    limit = sys.get_int_max_str_digits()
    with pytest.raises(ValueError, match="Exceeds the limit"):
        str(10 ** (limit + 1))
    assert digits(10**50_000) == "1" + "0" * 50_000
    assert digits(10**50_000 - 1) == "9" * 50_000
    assert digits(-(10**5000)) == "-1" + "0" * 5000
    rng = random.Random(5)
    for size in (5000, 20_001, 200_000):
        text = rng.choice("123456789") + "".join(rng.choices("0123456789", k=size - 1))
        assert digits(number_of(text)) == text
        assert digits(number_of("-" + text)) == "-" + text
    assert number_of("1" + "0" * 50_000) == 10**50_000
    assert sys.get_int_max_str_digits() == limit, "the setting belongs to the process"


def test_a_message_shows_what_can_be_read() -> None:
    assert show_number(0) == "0"
    assert show_number(2**198) == str(2**198)
    assert show_number(10**99) == "1" + "0" * 99
    assert show_number(10**100) == "about 10^100"
    assert show_number(2**14_998) == "about 10^4515"
    assert show_number(9 * 10**4515) == "about 10^4516"
