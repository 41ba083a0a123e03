"""FAST's structure in plain Python: dictionaries, lists and a stack, as its description reads."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from nearcast.index.fast.nodes import CROWDED, DEPTHS, PATH, THRESHOLD
from nearcast.index.posted import PostedIndex
from nearcast.index.posting import UNIVERSAL, boxes_of, outward
from nearcast.kernels import slots as sl

Box = tuple[float, float, float, float]
Entry = tuple[int, Box]
Words = tuple[int, ...]
Cell = tuple[int, int, int]  # depth, column, row
Path = tuple[Cell, Words]


@dataclass
class Node:
    """A keyword in a cell, or one more on a path."""

    entries: list[Entry] | None = None  # the same list object where cells share it
    frequent: bool = False
    finals: list[Entry] = field(default_factory=list)
    uses: int = 0


@dataclass
class Task:
    """An entry to be posted in the cells of `depth` below `cell`, or in `cell` itself."""

    entry: Entry
    words: Words
    cell: Cell
    inside: bool
    cursor: int = 0
    shared: list[Entry] | None = None


class Twin:
    """All cells; `side` is the exponent of what spans the whole."""

    def __init__(self, side: int) -> None:
        self.side = side
        self.nodes: dict[Path, Node] = {}
        self.seen: Counter[int] = Counter()
        self.tasks: list[Task] = []
        self.conjunctions: dict[int, Words] = {}

    def add(self, slot: int, hooks: list[Words], counted: list[int], boxes: list[Box]) -> None:
        self.seen.update(counted)
        for words in hooks:
            for box in boxes:
                self.tasks.append(Task((slot, box), words, (0, 0, 0), False))
        while self.tasks:
            self.do(self.tasks[-1])

    def do(self, task: Task) -> None:
        if task.inside:
            self.tasks.pop()
            self.post(task, task.cell, None)
            return
        cells = self.below(task)
        if task.cursor == len(cells):
            self.tasks.pop()
            return
        cell = cells[task.cursor]
        task.cursor += 1
        task.shared = self.post(task, cell, task.shared)

    def place(self, depth: int, v: float) -> int:
        return math.floor(v / 2.0 ** (self.side - depth)) if depth else 0

    def below(self, task: Task) -> list[Cell]:
        depth, column, row = task.cell
        box = task.entry[1]
        columns = range(self.place(depth, box[0]), self.place(depth, box[2]) + 1)
        rows = range(self.place(depth, box[1]), self.place(depth, box[3]) + 1)
        return [
            (depth, c, r)
            for c in columns
            for r in rows
            if depth < 2 or (c // 2 == column and r // 2 == row)
        ]

    def touches(self, box: Box, cell: Cell) -> bool:
        depth, column, row = cell
        return self.place(depth, box[0]) <= column <= self.place(depth, box[2]) and self.place(
            depth, box[1]
        ) <= row <= self.place(depth, box[3])

    # -- one cell ------------------------------------------------------------------------------

    def post(self, task: Task, cell: Cell, shared: list[Entry] | None) -> list[Entry] | None:
        word = min(task.words, key=lambda w: (self.seen[w], w))
        if shared is not None and self.share(cell, word, shared):
            return shared
        if self.in_list(cell, word, task.entry):
            return self.nodes[cell, (word,)].entries
        rooms = [(len(self.entries(cell, w)), w) for w in task.words if not self.frequent(cell, w)]
        if rooms and min(rooms)[0] < THRESHOLD:
            self.in_list(cell, min(rooms)[1], task.entry)
            return None
        full = [w for w in task.words if not self.frequent(cell, w)]
        for w in full:
            self.dissolve(cell, (w,))
        if full:
            self.tasks.append(Task(task.entry, task.words, cell, True))
        else:
            self.in_trie(task, cell)
        return None

    def frequent(self, cell: Cell, word: int) -> bool:
        node = self.nodes.get((cell, (word,)))
        return node is not None and node.frequent

    def entries(self, cell: Cell, word: int) -> list[Entry]:
        node = self.nodes.get((cell, (word,)))
        return [] if node is None or node.entries is None else node.entries

    def in_list(self, cell: Cell, word: int, entry: Entry) -> bool:
        node = self.nodes.setdefault((cell, (word,)), Node())
        if node.frequent:
            return False
        if node.entries is None:
            node.entries = []
        if entry in node.entries:
            return True
        if len(node.entries) >= THRESHOLD:
            return False
        node.entries.append(entry)
        return True

    def share(self, cell: Cell, word: int, shared: list[Entry]) -> bool:
        node = self.nodes.setdefault((cell, (word,)), Node())
        if node.frequent:
            return False
        if node.entries is not shared:
            more = [e for e in node.entries or [] if e not in shared]
            if len(shared) + len(more) > THRESHOLD:
                return False
            shared += more
            node.entries = shared
        return True

    def words_of(self, slot: int, word: int) -> Words:
        return self.conjunctions.get(slot, (word,))

    def dissolve(self, cell: Cell, words: Words) -> None:
        node = self.nodes[cell, words]
        for entry in node.entries or []:
            own = self.words_of(entry[0], words[0])
            if len(words) > 1:
                self.count(cell, own, -1)
            if self.touches(entry[1], cell):
                self.tasks.append(Task(entry, own, cell, True))
        node.entries, node.frequent = None, True

    def count(self, cell: Cell, words: Words, more: int) -> None:
        for w in words:
            self.nodes[cell, (w,)].uses += more

    def in_trie(self, task: Task, cell: Cell) -> None:
        for n in range(2, len(task.words) + 1):
            node = self.nodes.setdefault((cell, task.words[:n]), Node())
            if node.frequent:
                continue
            if len(node.entries or []) >= THRESHOLD:
                self.dissolve(cell, task.words[:n])
                self.tasks.append(Task(task.entry, task.words, cell, True))
                return
            node.entries = [*(node.entries or []), task.entry]
            self.count(cell, task.words, 1)
            return
        node = self.nodes[cell, task.words]
        if self.final(cell[0], task.entry[1]):
            node.finals.append(task.entry)
        else:
            node.entries = [*(node.entries or []), task.entry]
            if len(node.entries) > CROWDED:
                self.go_down(node, cell, task.words[0])
        self.count(cell, task.words, 1)

    def final(self, depth: int, box: Box) -> bool:
        longer = max(box[2] - box[0], box[3] - box[1])
        return depth == DEPTHS or longer > 2.0 ** (self.side - depth - 1)

    def go_down(self, node: Node, cell: Cell, word: int) -> None:
        assert node.entries is not None
        n = len(node.entries)
        by_area = sorted(range(n), key=lambda i: (self.overlap(node.entries, i, cell), i))
        down = set(by_area[: n - 1 - n // 2])
        depth, column, row = cell
        for i in sorted(down, reverse=True):
            entry = node.entries[i]
            words = self.words_of(entry[0], word)
            self.tasks.append(Task(entry, words, (depth + 1, column, row), False))
            last = node.entries.pop()
            if i < len(node.entries):
                node.entries[i] = last

    def overlap(self, entries: list[Entry] | None, i: int, cell: Cell) -> float:
        assert entries is not None
        a, b, c, d = entries[i][1]
        depth, column, row = cell
        if depth:
            side = 2.0 ** (self.side - depth)
            a, b = max(a, column * side), max(b, row * side)
            c, d = min(c, (column + 1) * side), min(d, (row + 1) * side)
        return (c - a) * (d - b)


def twin_of(index: PostedIndex, side: int) -> Twin:
    """A twin that was given every subscription of `index`, in order."""
    twin = Twin(side)
    half, heap = index._slots.half, index._slots.heap
    for slot in range(len(index)):
        body, length = int(index._slots.rows[slot, sl.BODY]), int(half[slot, sl.PROGRAM])
        program = [int(w) for w in heap[body : body + length]]
        cover = [int(w) for w in heap[body + length : body + length + half[slot, sl.COVER]]]
        conjunction = bool(half[slot, sl.FLAGS] & sl.CONJUNCTION) and program and not cover
        hooks: list[Words] = [(w,) for w in cover] or [(int(UNIVERSAL),)]
        if conjunction:
            twin.conjunctions[slot] = tuple(sorted(set(program))[:PATH])
            hooks = [twin.conjunctions[slot]]
        twin.add(slot, hooks, program if conjunction else [], _boxes(index, slot))
    return twin


def _boxes(index: PostedIndex, slot: int) -> list[Box]:
    first, n = boxes_of(index._index, slot)
    found = []
    for b in range(first, first + 4 * n, 4):
        box = np.empty(4, np.float32)
        outward(box, *index._slots.reals[b : b + 4])
        found.append((float(box[0]), float(box[1]), float(box[2]), float(box[3])))
    return found
