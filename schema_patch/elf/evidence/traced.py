"""Numbers of whose bytes it is known where in the library they stand: in data, or in an instruction that holds them.

They are numbers like others to whoever reckons with them; what moves bytes keeps where those came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOWHERE = -1


class Traced(int):
    """`places`: the address of each of its bytes, the lowest first; NOWHERE where that is not known."""

    places: tuple[int, ...]

    def __and__(self, mask: int) -> int:
        whole = int.__and__(self, mask)
        size = (mask.bit_length() + 7) // 8
        return _of(whole, self.places[:size]) if mask == (1 << 8 * size) - 1 else whole

    __rand__ = __and__

    def __rshift__(self, count: int) -> int:
        return _of(int.__rshift__(self, count), () if count % 8 else self.places[count // 8 :])

    def __eq__(self, other: object) -> bool:
        return int.__eq__(self, other) is True and (type(other) is not Traced or self.places == other.places)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__


def traced(number: int, places: Sequence[int]) -> Traced:
    result = Traced(number)
    result.places = tuple(places)
    return result


def _of(number: int, places: Sequence[int]) -> int:
    return traced(number, places) if any(place != NOWHERE for place in places) else number


def parts(number: Traced, size: int = 8) -> tuple[int, ...]:
    """The bytes of a number, each with its place."""
    places = (*number.places, *(NOWHERE,) * size)
    data = int.to_bytes(number, size, "little")
    return tuple(
        traced(byte, (place,)) if place != NOWHERE else byte for byte, place in zip(data, places, strict=False)
    )


def joined(number: int, bytes_: Iterable[object]) -> Traced:
    """A number that is made of bytes, some of them traced."""
    return traced(number, places(bytes_))


def places(bytes_: Iterable[object]) -> tuple[int, ...]:
    """Where each of some bytes stands; one for each."""
    return tuple(byte.places[0] if type(byte) is Traced else NOWHERE for byte in bytes_)
