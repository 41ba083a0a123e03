"""ComputeNumberPartitions of PS2Stream: into how many parts each node goes, at the least load."""

from __future__ import annotations

from math import inf


def compute_number_partitions(costs: list[list[float]], m: int) -> list[int]:
    """A: the number of parts of each node, `m` in all, with the least sum of loads.

    `costs[i][k - 1]` is C[i, k], the sum of loads after dividing node i into k parts; infinite
    where it cannot be. L[i, j] = min over 1 <= k <= j - i + 1 of L[i - 1, j - k] + C[i, k]. If not
    even the best way makes m parts, as many as there can be. Equal sums: the smaller k.
    """
    best = [[0.0] + [inf] * m]  # L[0]
    chosen: list[list[int]] = []
    for i, cost in enumerate(costs, 1):
        row, ks = [inf] * (m + 1), [0] * (m + 1)
        for j in range(i, m + 1):
            for k in range(1, min(j - i + 1, len(cost)) + 1):
                value = best[-1][j - k] + cost[k - 1]
                if value < row[j]:
                    row[j], ks[j] = value, k
        best.append(row)
        chosen.append(ks)
    j = max(j for j in range(m + 1) if best[-1][j] < inf)
    parts = []
    for ks in reversed(chosen):
        parts.append(ks[j])
        j -= ks[j]
    return parts[::-1]
