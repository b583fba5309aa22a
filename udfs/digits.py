"""Whole numbers of any size as decimal digits, and back.

Python refuses `str` and `int` beyond 4300 digits, by a setting of the whole process that guards it against texts from
outside, and both take time that grows with the square of the digits. Here a number is halved until its parts are short,
and `decimal`, whose multiplication is nearly linear, puts the parts together.
"""

from __future__ import annotations

import decimal

_SHORT_BITS = 4096
_SHORT_DIGITS = 1000
_SHOWN = 100
"""Digits that a message shows."""


def digits(number: int) -> str:
    """A number as decimal digits, all of them: what `str` gives."""
    if number < 0:
        return "-" + digits(-number)
    if number.bit_length() <= _SHORT_BITS:
        return str(number)
    powers: dict[int, decimal.Decimal] = {}

    def power(bits: int) -> decimal.Decimal:
        """2^bits."""
        if bits not in powers:
            half = bits // 2
            powers[bits] = decimal.Decimal(2**bits) if bits <= _SHORT_BITS else power(half) * power(bits - half)
        return powers[bits]

    def whole(part: int, bits: int) -> decimal.Decimal:
        if bits <= _SHORT_BITS:
            return decimal.Decimal(part)
        low = bits // 2
        return whole(part >> low, bits - low) * power(low) + whole(part & ((1 << low) - 1), low)

    exact = decimal.Context(
        prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.Inexact]
    )
    with decimal.localcontext(exact):
        return format(whole(number, number.bit_length()), "f")


def number_of(text: str) -> int:
    """The number that digits stand for: what `int` gives."""
    if len(text) <= _SHORT_DIGITS:
        return int(text)
    if text[0] == "-":
        return -number_of(text[1:])
    powers: dict[int, int] = {}

    def whole(part: str) -> int:
        if len(part) <= _SHORT_DIGITS:
            return int(part)
        low = len(part) // 2
        if low not in powers:
            powers[low] = 10**low
        return whole(part[:-low]) * powers[low] + whole(part[-low:])

    return whole(text)


def show_number(number: int) -> str:
    """A number for a message: its digits, or, where they are too many to be read, ``about 10^4515``."""
    found = digits(number)
    if len(found) <= _SHOWN:
        return found
    # The nearest power of ten: 3.16… is its root.
    return f"about 10^{len(found) - (found[:3] < '316')}"
