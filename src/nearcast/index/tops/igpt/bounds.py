"""The bounds of Skype (section 5), one function each, under their names in the paper.

A message `m` matters to a subscription `s` only if its score is at least the threshold of `s`: the
floor of its buffer, which the paper calls s.theta (section 6) and, where a buffer is as long as its
result, kScore(s). The paper divides by 1 - alpha and by alpha. Here no alpha is nearer to 1 than
2^-20 (the threshold is lower by as much, so no score is lost), and what divides by an alpha of 0
skips nothing. Every threshold is lower by `SLACK` of a score, which is more than float64 can lose.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit

SLACK = 1e-9  # of a score
GROUP_SLACK = 1e-7  # the same where a whole group is skipped: more, see `theorem_3`
_MOST_ALPHA = 1.0 - 2.0**-20

__all__ = [
    "GROUP_SLACK",
    "SLACK",
    "alpha_star",
    "kscore_star",
    "lambda_s",
    "lambda_t",
    "lemma_1",
    "lemma_4",
    "lemma_6",
    "ssim_ub",
    "suffix_maxima",
    "suffix_sums",
    "theorem_1",
    "theorem_2",
    "theorem_3",
    "theorem_4",
    "tsim_ub",
]


@njit(lean=True, forceinline=True)
def alpha_star(alpha: float) -> float:
    """s.alpha* = alpha / (1 - alpha). Skype 5.2.1."""
    alpha = min(alpha, _MOST_ALPHA)
    return alpha / (1.0 - alpha)


@njit(lean=True, forceinline=True)
def kscore_star(threshold: float, alpha: float) -> float:
    """kScore*(s) = kScore(s) / (1 - alpha). Skype 5.2.1."""
    if alpha > _MOST_ALPHA:
        threshold -= alpha - _MOST_ALPHA
        alpha = _MOST_ALPHA
    return threshold / (1.0 - alpha)


@njit(lean=True, forceinline=True)
def lambda_t(kscore: float, alpha: float, ssim: float) -> float:
    """The textual similarity that a message needs. Skype 5.1.1, equation 2.

    Of kScore*, alpha* and the spatial upper bound SSimUB(s, m).
    """
    return kscore - alpha * ssim - SLACK * (1.0 + alpha)


@njit(lean=True, forceinline=True)
def lemma_1(tsim: float, needed: float) -> bool:
    """Whether s is safe to skip: TSim(s, m) < lambda_T(s, m). Skype 5.1.1, lemma 1."""
    return tsim < needed


@njit(lean=True)
def suffix_sums(weights: NDArray[np.float64], n: int, out: NDArray[np.float64]) -> None:
    """wtsum(psi[i]): the weights from the i-th keyword on. Skype 5.1.1, equation 3."""
    out[n] = 0.0
    for i in range(n - 1, -1, -1):
        out[i] = weights[i] + out[i + 1]


@njit(lean=True)
def suffix_maxima(weights: NDArray[np.float64], n: int, out: NDArray[np.float64]) -> None:
    """maxwt(psi[i]): the largest weight from the i-th keyword on. Skype 5.1.1, equation 4."""
    out[n] = 0.0
    for i in range(n - 1, -1, -1):
        out[i] = max(weights[i], out[i + 1])


@njit(lean=True, forceinline=True)
def theorem_1(maxwt_m: float, wtsum_s: float, needed: float) -> bool:
    """Whether s.w is no part of the refined prefix pref+(s|m). Skype 5.1.1, theorem 1.

    `maxwt_m` is that of m at the same keyword. A subscription whose first shared keyword is no part
    of it can be skipped. With a `maxwt_m` of 1, the most there is, these are lemmas 2 and 3.
    """
    return maxwt_m * wtsum_s < needed


@njit(lean=True, forceinline=True)
def ssim_ub(distance: float, maxdist: float) -> float:
    """SSimUB for a lower bound of the distance. Skype 5.1.2, definitions 6, 7 and 8.

    With mindist(s, c) alone it is the inner bound, with mindist(m, c) the outer one, with their sum
    the bound for a message outside of the cell. A score is never less than 0 by place (SPEC 4).
    """
    return min(max(1.0 - distance / maxdist, 0.0), 1.0)


@njit(lean=True, forceinline=True)
def tsim_ub(wtsum_s: float, maxwt_m: float, wtsum_m: float, maxwt_s: float) -> float:
    """What keywords not seen yet can add. Skype 5.1.3, equation 5."""
    return min(wtsum_s * maxwt_m, wtsum_m * maxwt_s)


@njit(lean=True, forceinline=True)
def theorem_2(partial: float, unseen: float, needed: float) -> bool:
    """Whether s is safe to skip with what is known of it. Skype 5.1.3, theorem 2."""
    return partial + unseen < needed


@njit(lean=True, forceinline=True)
def lemma_4(maxwt_s: float, wtsum_m: float, needed: float) -> bool:
    """Whether m.w is no part of the prefix pref+(m|s) of the message. Skype 5.2, lemma 4."""
    return maxwt_s * wtsum_m < needed


@njit(lean=True, forceinline=True)
def theorem_3(maxwt_g: float, wtsum_m: float, kscore: float, alpha: float, ssim: float) -> bool:
    """Whether a whole group is safe to skip. Skype 5.2.1, lemma 5 and theorem 3.

    `maxwt_g` and `alpha` are the largest of the group, `kscore` its least kScore*, `ssim` the outer
    bound of its cell. The slack is that of a score times 1 + alpha*, as in `lambda_t`, but larger:
    whoever is skipped here under one keyword is then also skipped by `lemma_4` under later ones.
    """
    return maxwt_g * wtsum_m < kscore - alpha * ssim - GROUP_SLACK * (1.0 + alpha)


@njit(lean=True)
def theorem_4(
    maxwt: NDArray[np.float32],
    kscore: NDArray[np.float32],
    alpha: NDArray[np.float32],
    start: int,
    stop: int,
    wtsum_m: float,
    ssim: float,
) -> int:
    """The first entry of a group from which on none needs a look. Skype 5.2.2, theorem 4.

    Entries are in the order of kScore*; `maxwt` and `alpha` of an entry are the largest of it and
    all behind it (equations 6 and 7). So the condition holds for all behind the first: a binary
    search finds that.
    """
    while start < stop:
        mid = (start + stop) >> 1
        if theorem_3(
            np.float64(maxwt[mid]), wtsum_m, np.float64(kscore[mid]), np.float64(alpha[mid]), ssim
        ):
            stop = mid
        else:
            start = mid + 1
    return start


@njit(lean=True, forceinline=True)
def lambda_s(threshold: float, alpha: float) -> float:
    """The spatial similarity that a message needs. Skype 5.2.3, equation 8."""
    if alpha == 0.0:
        return -np.inf
    return (threshold - SLACK - (1.0 - alpha)) / alpha


@njit(lean=True, forceinline=True)
def lemma_6(least: float, ssim: float) -> bool:
    """Whether a cell is safe to skip: `least` is the least lambda_S in it. Skype 5.2.3, lemma 6."""
    return least > ssim
