"""A disk that is full, by the best means that this machine permits."""

from __future__ import annotations

import subprocess
from pathlib import Path


class Disk:
    """A file system of 64 kB where mounting is permitted; else a file where a folder should be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.mounted = self._mount("size=64k")
        if not self.mounted:
            folder.rmdir()
            folder.touch()

    def _mount(self, options: str) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.folder)]
        try:
            return subprocess.run(command, capture_output=True, check=False).returncode == 0
        except FileNotFoundError:
            return False

    def make_room(self) -> None:
        """Writing works again."""
        if self.mounted:
            assert self._mount("remount,size=256m")
        else:
            self.folder.unlink()
            self.folder.mkdir()

    def remove(self) -> None:
        if self.mounted:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)
