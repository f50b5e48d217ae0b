"""Loading a part of an artifact when it is first asked for, once, whichever threads ask."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Lockable(Protocol):
    """An object whose parts are loaded under its lock."""

    @property
    def lock(self) -> RLock:
        """Held while a part is loaded; reentrant, since one part may need another."""
        ...


class loaded_once(Generic[T]):  # noqa: N801  # used like a property
    """A property that is computed once, under its object's lock.

    `functools.cached_property` of Python 3.11 holds a lock of its own meanwhile: two threads that take the two locks in
    opposite order would wait for each other for ever.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: Lockable, kind: type) -> T:
        with owner.lock:
            if self._name not in owner.__dict__:
                # found there from now on, without coming here: this descriptor has no __set__
                owner.__dict__[self._name] = self._make(owner)
            return owner.__dict__[self._name]
