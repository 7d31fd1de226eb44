"""Statistics of a probe: shares with their uncertainty, and what times come to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist, median, quantiles
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

_Z = NormalDist().inv_cdf(0.975)  # 95 %, two-sided


def wilson_interval(count: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share of which `count` in `total` were seen.

    Wilson's score interval: unlike the usual one it holds for small numbers and near 0 and 1.
    https://en.wikipedia.org/wiki/Binomial_proportion_confidence_interval#Wilson_score_interval

    Args:
        count: From 0 to `total`.
        total: At least 0; of nothing nothing is known, so the interval is from 0 to 1.

    """
    if total == 0:
        return 0.0, 1.0
    share = count / total
    weight = _Z**2 / total
    middle = share + weight / 2
    reach = _Z * sqrt(share * (1 - share) / total + weight / (4 * total))
    low, high = (middle - reach) / (1 + weight), (middle + reach) / (1 + weight)
    # At the ends the bound is exact, and would miss it by a rounding error.
    return (0.0 if count == 0 else low), (1.0 if count == total else high)


@dataclass(frozen=True)
class Share:
    """How often something was seen, and between which bounds its true rate lies (95 %)."""

    count: int
    rate: float
    """From 0 to 1; 0 of nothing."""
    low: float
    high: float

    @classmethod
    def of(cls, count: int, total: int) -> Self:
        """The share of `count` in `total`."""
        return cls(count, count / total if total else 0.0, *wilson_interval(count, total))


@dataclass(frozen=True)
class Spread:
    """What a number of times come to, in seconds."""

    median: float
    p95: float
    """95 % are at most as long."""

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Self | None:
        """Of any number of times; None if there are none."""
        if not seconds:
            return None
        # `quantiles` wants two values, before Python 3.13 also where one would do.
        values = seconds if len(seconds) > 1 else [*seconds] * 2
        return cls(median(values), quantiles(values, n=20, method="inclusive")[-1])
