"""Waiting for writes into folders: woken by the system where it can (inotify), else by the clock.

A `Watch` only wakes: whoever waits looks at the files itself afterwards, and now and then without
having been woken, because writes of other machines to a shared file system wake nobody.
"""

from __future__ import annotations

import ctypes
import os
import select
import threading
import weakref
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["SHORT_SECONDS", "Watch"]

SHORT_SECONDS = 0.02
"""The longest wait where the system wakes nobody."""

_MODIFY, _CLOSE_WRITE, _MOVED_TO, _CREATE = 0x2, 0x8, 0x80, 0x100  # of <sys/inotify.h>
_ONLYDIR = 0x01000000
_EVENTS = _MODIFY | _CLOSE_WRITE | _MOVED_TO | _CREATE | _ONLYDIR
_IGNORED = 0x8000  # a watch is gone: its folder was removed, renamed over or unmounted
_HEAD = 16  # bytes of an event before its name: int wd, uint32 mask, cookie, length


@cache
def _libc() -> Any:
    """The C library, if it knows inotify."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        library.inotify_init1.restype = ctypes.c_int
        library.inotify_add_watch.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32]
    except (OSError, AttributeError):
        return None
    return library


class Watch:
    """Wakes one waiting thread when something is written into one of some folders."""

    def __init__(self, folders: Iterable[Path] = (), inotify: bool = True) -> None:
        """`inotify`: whether the system may be used for it, where it can."""
        self.folders = list(folders)
        self._lock = threading.Lock()
        self._inotify = -1
        self._watched: dict[int, tuple[Path, int]] = {}  # by number of the watch: folder, inode
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        if inotify and self.folders and _libc() is not None:
            self._inotify = int(_libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
            self._add()
        handles = [h for h in (self._woken, self._wake, self._inotify) if h >= 0]
        # A machine has few of them (128 for inotify): who forgets a watch gives them back too.
        self._give_back = weakref.finalize(self, _close_all, handles)

    @property
    def complete(self) -> bool:
        """Whether the system wakes for writes into each of the folders."""
        return len(self._watched) == len(self.folders)

    def _add(self) -> None:
        """Watch the folders that are not watched, as far as they are there."""
        if self._inotify < 0:
            return
        now: dict[Path, int] = {}
        for folder in self.folders:
            with suppress(OSError):
                now[folder] = folder.stat().st_ino
        for number, (folder, inode) in list(self._watched.items()):
            if now.get(folder) != inode:  # away, or another one of that name
                del self._watched[number]
        known = {folder for folder, _ in self._watched.values()}
        for folder, inode in now.items():
            if folder not in known:
                name = os.fsencode(folder)
                number = int(_libc().inotify_add_watch(self._inotify, name, _EVENTS))
                if number >= 0:
                    self._watched[number] = folder, inode

    def wait(self, seconds: float) -> bool:
        """Wait until something was written, `wake` was called, or so many seconds have passed.

        Whether it was woken. Where the system does not wake, it waits no longer than
        `SHORT_SECONDS`.
        """
        self._add()
        if self.folders and not self.complete:
            seconds = min(seconds, SHORT_SECONDS)
        poll = select.poll()
        for handle in (self._woken, self._inotify):
            if handle >= 0:
                poll.register(handle, select.POLLIN)
        ready = poll.poll(max(seconds, 0.0) * 1000)
        for handle, _ in ready:
            with suppress(BlockingIOError):
                if handle == self._inotify:
                    self._forget(os.read(handle, 1 << 16))
                else:
                    os.read(handle, 1 << 16)
        return bool(ready)

    def _forget(self, events: bytes) -> None:
        """Forget watches that ended, so that `_add` begins them again."""
        at = 0
        while at + _HEAD <= len(events):
            number = int.from_bytes(events[at : at + 4], "little", signed=True)
            mask = int.from_bytes(events[at + 4 : at + 8], "little")
            if mask & _IGNORED:
                self._watched.pop(number, None)
            at += _HEAD + int.from_bytes(events[at + 12 : at + 16], "little")

    def wake(self) -> None:
        """Wake whoever waits, or the next one who does; from any thread."""
        with self._lock:
            if self._wake >= 0:
                with suppress(BlockingIOError):  # it is woken already
                    os.write(self._wake, b"w")

    def close(self) -> None:
        """Give back what the system holds for it. Nobody may wait meanwhile."""
        with self._lock:
            self._give_back()
            self._woken = self._wake = self._inotify = -1
            self._watched.clear()


def _close_all(handles: list[int]) -> None:
    for handle in handles:
        os.close(handle)
