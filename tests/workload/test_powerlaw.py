"""The law of word frequencies."""

import numpy as np
import pytest

from nearcast.workload.powerlaw import PowerLaw


@pytest.mark.parametrize("exponent", [0.0, 0.8, 1.0, 1.3])
def test_drawn_ranks_follow_the_probabilities(exponent: float, rng: np.random.Generator) -> None:
    law = PowerLaw(50, exponent, 1.5)
    drawn = np.bincount(law.draw(200_000, rng), minlength=50) / 200_000
    expected = law.probabilities()
    assert expected.sum() == pytest.approx(1.0)
    # Six standard deviations: no seed should ever fail.
    assert (np.abs(drawn - expected) < 6 * np.sqrt(expected / 200_000)).all()


@pytest.mark.parametrize("exponent", [0.8, 1.0, 1.3])
def test_probabilities_are_close_to_zipf_mandelbrot(exponent: float) -> None:
    law = PowerLaw(10_000, exponent, 2.7)
    zipf = (np.arange(1, 10_001) + 2.7) ** -exponent
    assert np.allclose(law.probabilities(), zipf / zipf.sum(), rtol=0.02)


def test_one_rank_is_always_drawn(rng: np.random.Generator) -> None:
    assert (PowerLaw(1, 1.0).draw(10, rng) == 0).all()


@pytest.mark.parametrize(
    ("size", "exponent", "shift"), [(0, 1.0, 0.0), (5, -1.0, 0.0), (5, 1.0, -1.0)]
)
def test_nonsense_is_refused(size: int, exponent: float, shift: float) -> None:
    with pytest.raises(ValueError, match="power law"):
        PowerLaw(size, exponent, shift)
