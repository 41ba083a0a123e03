"""The arrays of `igpt` are what they say: leaves, lists, groups, bounds, through all upkeep."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import numpy as np
import pytest
from tests.index.tops.logs import Json, Watched, bound, topk, weighed

from nearcast.index.tops import state as st
from nearcast.index.tops.igpt import bounds
from nearcast.index.tops.igpt import state as ig
from nearcast.index.tops.igpt.index import Igpt, Pruned
from nearcast.index.tops.igpt.lists import RUN_BITS, run_of
from nearcast.index.tops.igpt.places import inner_distance, longitude, outer_distance
from nearcast.index.tops.ipt.index import Ipt
from nearcast.index.tops.places import point
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.model.frame import Window
from nearcast.model.space import Space
from nearcast.testing.cases import publish, subscribe, unsubscribe
from nearcast.testing.drive import plan

WINDOW = 340  # so many that few of them leave in a batch


def clustered(space: Space, subs: int, seed: int = 4) -> list[Json]:
    """Most at two places, some everywhere; then objects that raise floors, ends, and more."""
    rng, log = Random(seed), list[Json]()
    centres = (
        [(0.25, 0.25), (6.0, -3.0)] if space is Space.PLANAR else [(179.999, 60.0), (9.0, 9.0)]
    )

    def at() -> tuple[float, float]:
        if rng.random() < 0.1:
            return rng.uniform(-9, 9), rng.uniform(-9, 9)
        x, y = rng.choice(centres)
        x += rng.gauss(0, 0.05)
        return x if x <= 180 else x - 360, y + rng.gauss(0, 0.05)

    def words() -> list[str]:
        return rng.sample("aaabbcdefgh", rng.randint(1, 4))

    for n in range(WINDOW):
        log.append(publish(f"o{n}", 0, *at(), *words()))
    for n in range(subs):
        x, y = at()
        # For these it matters most where objects are, and there are enough of them.
        near = space is Space.PLANAR and x > 5.0 and y < -2.0
        own = ["a", "b"] if near else words()
        alpha = rng.uniform(0.95, 1.0) if near else rng.random()
        maxdist = 9.0 if near else rng.choice((9.0, 3e6))
        query = topk(
            rng.choice((1, 2)), *dict.fromkeys(own), at=(x, y), alpha=alpha, maxdist=maxdist
        )
        log.append(subscribe(f"s{n}", 1, query))
    for n in range(240):
        log.append(publish(f"p{n}", 2, *at(), *words()))
        if n % 4 == 0:
            log.append(unsubscribe(f"s{rng.randrange(subs)}", 2))
    for n in range(200):
        query = topk(1, *dict.fromkeys(words()), at=(rng.uniform(-40, 40), 5), alpha=0.5)
        log.append(subscribe(f"t{n}", 3, query))
    log += [publish(f"q{n}", 4, *at(), *words()) for n in range(60)]
    return log


CUTS = (WINDOW, 1750, 3240, 3300, 3360, 3420, 3480, 3700)


def order_of(held: ig.Arrays, number: int) -> tuple[int, int]:
    """Where a word stands among all."""
    rows = np.flatnonzero(held.words[:, ig.WORD])
    row = rows[held.words[rows, ig.NUMBER] == number][0]
    return -int(held.words[row, ig.IDF]), -number


def check_keywords(held: ig.Arrays, t: st.Tops, slots: list[int]) -> None:
    """Equations 3 and 4, in the order of all keywords."""
    for slot in slots[::17]:
        first, n = int(held.half[slot, ig.KEYS]), int(t.half[slot, st.KEYWORDS])
        keys, numbers = (
            held.keys[first : first + n + 1],
            held.numbers[first : first + n, ig.ORDINAL],
        )
        order = [order_of(held, int(number)) for number in numbers]
        assert order == sorted(order)
        for j in range(n + 1):
            assert keys[j, ig.WTSUM] == pytest.approx(keys[j:n, ig.WT].sum())
            assert keys[j, ig.MAXWT] == keys[j:n, ig.WT].max(initial=0.0)
        heap = int(t.half[slot, st.HEAP])
        given = dict(
            zip(t.heap[heap : heap + n].tolist(), t.reals[heap + n : heap + 2 * n], strict=True)
        )
        for j in range(n):
            word = held.words[held.words[:, ig.NUMBER] == np.uint64(numbers[j])]
            assert any(given.get(w) == keys[j, ig.WT] for w in word[:, ig.WORD].tolist())


def check_leaves(held: ig.Arrays, t: st.Tops, space: Space, slots: list[int]) -> int:
    """Every living slot is in the one leaf where it lies, which has no more than LEAF."""
    found: list[int] = []
    leaves = 0
    for node in range(int(held.meta[ig.NODES])):
        links, link = [], int(held.tree[node, ig.HEAD])
        while link:
            links.append(link - 1)
            link = int(held.half[link - 1, ig.NEXT])
        assert len(links) == held.tree[node, ig.MEMBERS] <= ig.LEAF
        if held.tree[node, ig.CHILD] or not links:
            assert not links
            assert held.cells[node, ig.LEAST] == np.inf or not held.tree[node, ig.CHILD]
            continue
        leaves += 1
        r = held.rects[node]
        for slot in links:
            x, y = longitude(space.code, t.rows[slot, st.X]), t.rows[slot, st.Y]
            inside = r[0] <= x <= r[2] and r[1] <= y <= r[3]
            assert inside != (node == 0) or node == 0
            assert held.half[slot, ig.CELL] == node + 1
            own = inner_distance(space.code, x, y, r) if node else 0.0
            assert held.subs[slot, ig.INNER] == own
            assert held.subs[slot, ig.FARTHEST] <= held.cells[node, ig.MAXDIST]
            least = bounds.lambda_s(t.rows[slot, st.FLOOR], t.rows[slot, st.ALPHA])
            assert held.cells[node, ig.LEAST] <= least
        found += links
    assert len(found) == len(set(found))
    assert set(slots) <= set(found)
    return leaves


def lists_of(held: ig.Arrays) -> dict[int, list[int]]:
    """By row of the table: the entries."""
    out = {}
    for row in np.flatnonzero(held.lists[:, ig.KEY]).tolist():
        first = ig.first_of(held, row)
        out[row] = list(range(first, first + ig.count_of(held, row)))
        assert not int(held.lists[row, ig.HELD]) >> 32
    return out


def check_lists(held: ig.Arrays, t: st.Tops, slots: list[int], groups: int) -> None:
    """Each slot once on each of its lists and on no others; groups, order, suffixes, bounds."""
    living, posted = set(slots), dict[int, int]()
    for entries in lists_of(held).values():
        at = 0
        seen: list[int] = []
        while at < len(entries):
            run = run_of(held, entries[at])
            group = held.entries[entries[at], ig.RUN] >> RUN_BITS
            part = entries[at : at + run]
            assert run >= 1
            assert len(part) == run
            seen.append(int(group))
            kscores = [float(held.bounds[e, ig.E_KSCORE]) for e in part]
            assert kscores == sorted(kscores)
            for place, e in enumerate(part):
                slot = int(held.entries[e, ig.SLOT])
                key, node = int(held.entries[e, ig.AT]), int(held.half[slot, ig.CELL]) - 1
                posted[slot] = posted.get(slot, 0) + 1
                assert held.half[slot, ig.GROUP] == group
                alpha, floor = t.rows[slot, st.ALPHA], t.rows[slot, st.FLOOR]
                assert group == sum(alpha > held.quantiles)
                if slot in living:
                    assert kscores[place] <= bounds.kscore_star(floor, alpha)
                behind = held.bounds[part[place:]]
                assert held.bounds[e, ig.E_MAXWT] == behind[:, ig.OWN_MAXWT].max()
                assert held.bounds[e, ig.E_ALPHA] == behind[:, ig.OWN_ALPHA].max()
                assert held.bounds[e, ig.OWN_ALPHA] >= bounds.alpha_star(alpha)
                assert held.bounds[e, ig.OWN_MAXWT] >= held.keys[key, ig.MAXWT]
                assert held.bounds[e, ig.OWN_WTSUM] >= held.keys[key, ig.WTSUM]
                word = int(held.numbers[key, ig.ORDINAL])
                row = pl.find(held.lists, np.uint64(ig.key_of(node, word)))
                assert e in range(ig.first_of(held, row), ig.first_of(held, row) + len(entries))
            at += run
        assert seen == sorted(set(seen))
        assert all(group < groups for group in seen)
    for slot in slots:
        assert posted[slot] == held.half[slot, ig.LISTED] == t.half[slot, st.KEYWORDS]


@pytest.mark.parametrize("space", list(Space))
def test_what_is_posted_where(space: Space) -> None:
    kind, log = bound(Window(count=WINDOW), fitted=True), clustered(space, 2900)
    held = Watched(kind, space, Igpt if space is Space.PLANAR else Ipt)
    leaves, fell = 0, 0
    floors = np.empty(0)
    for batch in plan(log, kind, space, cuts=CUTS):
        held.step(batch)
        index, t = held.index, held.index._tops.state
        pruned = cast("Pruned", index._found_by)
        # What ended is taken out when it is met; what has begun by now is posted.
        slots = [s for s, _ in held.slots() if pruned.held.half[s, ig.CELL] > 0]
        check_keywords(pruned.held, t, slots)
        leaves = check_leaves(pruned.held, t, space, slots)
        check_lists(pruned.held, t, slots, pruned.groups)
        n = min(len(floors), len(index))
        fell += int(np.sum(t.rows[:n, st.FLOOR] < floors[:n]))
        floors = t.rows[: len(index), st.FLOOR].copy()
    assert leaves > 6
    assert fell > 0


def test_groups_are_of_equal_size() -> None:
    """The quantiles of alpha: 10 groups, each with a tenth, also when there are more of them."""
    kind, log = bound(Window(count=WINDOW), fitted=True), clustered(Space.PLANAR, 2900)
    held = Watched(kind, Space.PLANAR, Igpt)
    for batch in plan(log, kind, Space.PLANAR, cuts=CUTS):
        held.step(batch)
    arrays = cast("Pruned", held.index._found_by).held
    sizes = np.bincount(arrays.half[arrays.half[:, ig.CELL] > 0, ig.GROUP], minlength=10)
    assert len(arrays.quantiles) == 9
    assert sizes.min() > 0.07 * sizes.sum()


class Message:
    """One object of a batch, as the search reads it."""

    def __init__(self, index: Any, w: st.Weighed, i: int) -> None:
        held, row = index._found_by.held, w.o.order[i]
        own = range(w.o.word_offsets[row], w.o.word_offsets[row + 1])
        rows = [(pl.find(held.words, w.o.words[j]), w.weights[j]) for j in own]
        numbers = [(int(held.words[r, ig.NUMBER]), wt) for r, wt in rows if r >= 0]
        self.words = sorted(numbers, key=lambda one: order_of(held, one[0]))
        self.sums = np.cumsum([wt for _, wt in self.words][::-1])[::-1]
        self.point = point(index.space.code, w.o.x[row], w.o.y[row])


def test_what_is_pruned_would_take_nothing() -> None:
    """Cells, groups and tails that the theorems skip have no subscription that would accept."""
    kind, space = bound(Window(count=WINDOW), fitted=True), Space.PLANAR
    held = Watched(kind, space, Igpt)
    batches = plan(clustered(space, 2900), kind, space, cuts=CUTS)
    for batch in batches:
        held.step(batch)
    index, t = held.index, held.index._tops.state
    arrays, w = cast("Pruned", index._found_by).held, weighed(index, batch)
    latest, subs = held.objects[len(held.objects) - len(w.ranks) :], dict(held.slots())
    cells = groups = tails = 0
    for i, o in list(enumerate(latest))[::4]:
        message = Message(index, w, i)
        for node in range(int(arrays.meta[ig.NODES])):
            least = arrays.cells[node, ig.LEAST]
            if least == np.inf:
                continue
            away = outer_distance(space.code, *message.point, arrays.cells[node])
            ssim = bounds.ssim_ub(away, arrays.cells[node, ig.MAXDIST])
            if bounds.lemma_6(least, ssim):
                cells += 1
                inside = np.flatnonzero(arrays.half[:, ig.CELL] == node + 1).tolist()
                assert not any(takes(subs, t, slot, o) for slot in inside)
            for (number, _), wtsum in zip(message.words, message.sums, strict=True):
                row = pl.find(arrays.lists, np.uint64(ig.key_of(node, number)))
                first = ig.first_of(arrays, row) if row >= 0 else 0
                end = first + (ig.count_of(arrays, row) if row >= 0 else 0)
                while first < end:
                    stop = first + run_of(arrays, first)
                    b = arrays.bounds
                    columns = b[:, ig.E_MAXWT], b[:, ig.E_KSCORE], b[:, ig.E_ALPHA]
                    cut = bounds.theorem_4(*columns, first, stop, wtsum, ssim)
                    groups += cut == first
                    tails += first < cut < stop
                    for e in range(cut, stop):
                        check_skipped(arrays, t, subs, e, o, number, message)
                    first = stop
    assert cells > 20
    assert groups > 100
    assert tails > 20
    index.close()


def takes(subs: dict[int, Any], t: st.Tops, slot: int, o: Any) -> bool:
    """Whether a living subscription accepts an object now."""
    if slot not in subs or not subs[slot].matches(o):
        return False
    return bool(subs[slot].score(o) >= t.rows[slot, st.FLOOR])


def check_skipped(
    arrays: ig.Arrays, t: st.Tops, subs: dict[int, Any], e: int, o: Any, number: int,
    message: Message,
) -> None:  # fmt: skip
    """If the word is the first that both have, the object is refused."""
    slot = int(arrays.entries[e, ig.SLOT])
    first, n = int(arrays.half[slot, ig.KEYS]), int(t.half[slot, st.KEYWORDS])
    own = arrays.numbers[first : first + n, ig.ORDINAL].tolist()
    if next(word for word, _ in message.words if word in own) == number:
        assert not takes(subs, t, slot, o)


def test_the_dead_go() -> None:
    """Those that were dropped leave lists and leaves when they are met."""
    kind = bound(Window(count=90))
    log: list[Json] = [subscribe(f"s{n}", 0, topk(1, "a", at=(n % 7, 0))) for n in range(400)]
    log += [publish(f"o{n}", 1, n % 7, 0, "a") for n in range(3)]
    log += [publish(f"p{n}", 3 + n, n % 7, 0, "a") for n in range(30)]
    held = Watched(kind, Space.PLANAR, Igpt)
    for batch in plan(log, kind, Space.PLANAR, cuts=(403, 418)):
        held.step(batch)
        held.index.drop(np.arange(390))
    arrays = cast("Pruned", held.index._found_by).held
    assert sum(map(len, lists_of(arrays).values())) == 10
    assert arrays.tree[: arrays.meta[ig.NODES], ig.MEMBERS].sum() == 10
    assert arrays.meta[ig.POSTED] == 10
    assert not np.any(held.index._slots.half[:390, sl.FLAGS] & sl.LIVE)


def test_a_larger_space_gets_a_larger_root() -> None:
    kind = bound(Window(count=9))
    log: list[Json] = [subscribe(f"s{n}", 0, topk(1, "a", at=(n / 100, 0))) for n in range(2500)]
    log += [subscribe(f"t{n}", 2, topk(1, "a", at=(1e6 + n, n))) for n in range(1500)]
    log.append(publish("o", 3, 0, 0, "a"))
    held = Watched(kind, Space.PLANAR, Igpt)
    outside = []
    for batch in plan(log, kind, Space.PLANAR, cuts=(2500, 3000)):
        held.step(batch)
        outside.append(int(cast("Pruned", held.index._found_by).held.tree[0, ig.MEMBERS]))
    assert outside == [0, 500, 0]
