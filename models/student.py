"""Student's t distribution, as far as intervals need it."""

from __future__ import annotations

import math
from statistics import NormalDist


def t_quantile(confidence: float, freedom: int) -> float:
    """Return the t that lies between -t and t with a probability, to about six digits.

    Hill, Algorithm 396: Student's t-quantiles, Communications of the ACM 13 (1970), 619-620;
    exact for one and two degrees of freedom.

    Args:
        confidence: the probability, such as 0.95.
        freedom: degrees of freedom, 1 or more.

    Raises:
        ValueError: the probability is not between 0 and 1, or there is no degree of freedom.
    """
    if not 0 < confidence < 1 or freedom < 1:
        raise ValueError(f"want 0 < confidence < 1 and freedom >= 1, not {confidence}, {freedom}")
    p, n = 1 - confidence, freedom
    if n == 1:
        return 1 / math.tan(p * math.pi / 2)
    if n == 2:
        return math.sqrt(2 / (p * (2 - p)) - 2)
    a = 1 / (n - 0.5)
    b = 48 / a**2
    c = ((20_700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    y = (d * p) ** (2 / n)
    if y > 0.05 + a:
        return math.sqrt(n * math.expm1(_near_normal(p, n, a, (b, c, d))))
    inner = ((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3
    y = ((1 / inner + 0.5 / (n + 4)) * y - 1) * (n + 1) / (n + 2) + 1 / y
    return math.sqrt(n * y)


def _near_normal(p: float, n: int, a: float, terms: tuple[float, float, float]) -> float:
    """Return ln(1 + t²/n) by the expansion about the normal deviate."""
    b, c, d = terms
    x = NormalDist().inv_cdf(p / 2)
    y = x * x
    if n < 5:
        c += 0.3 * (n - 4.5) * (x + 0.6)
    c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
    y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
    return a * y * y
