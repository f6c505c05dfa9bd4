"""Waits in front of c servers: Erlang's formulas for Poisson arrivals, and how bursts and variable work stretch them.

Erlang B and C are exact to about 1e-12 for any number of servers: the recursion starts near the load, where the one
before it no longer matters, and takes O(√load) steps. a = λS is the offered load in erlangs, ρ = a/c the utilisation.
Where a ≥ c everybody waits (probability 1) and no mean is finite (`inf`).
"""

from __future__ import annotations

import math
from typing import Final

SETTLED: Final = 12.0
"""Where the recursion may start: so many roots below load or servers. An error there shrinks by exp(−12²/2)."""


def erlang_b(servers: float, load: float) -> float:
    """Share of the arrivals that find all servers busy and are lost, M/M/c/c (F15; Erlang 1917).

    B_k = a B_{k−1}/(k + a B_{k−1}). For large loads it starts at k ≪ a, where 1/B_k ≈ a/(a − k); a number of servers
    that is not whole starts at its fraction (Jagerman 1974).

    Args:
        servers: c ≥ 0, not necessarily whole.
        load: a ≥ 0, erlangs.

    >>> round(erlang_b(12, 10.8), 7), erlang_b(0, 3), erlang_b(5, 0)
    (0.1509673, 1.0, 0.0)
    """
    if load <= 0:
        return float(servers <= 0)
    fraction = servers % 1.0
    least = min(load, servers)
    skipped = max(0, math.floor(least - SETTLED * math.sqrt(least)))
    k = skipped + fraction
    blocking = 1.0 - k / load if skipped else 1.0 / _inverse_at_fraction(fraction, load)
    for _ in range(math.floor(servers) - skipped):
        k += 1.0
        blocking = load * blocking / (k + load * blocking)
        if not blocking:  # underflown, and so it stays
            break
    return blocking


def erlang_c(servers: float, load: float) -> float:
    """P(wait > 0) in M/M/c: B_c/(1 − ρ(1 − B_c)) (F15; Erlang 1917).

    >>> round(erlang_c(12, 10.8), 7), round(erlang_c(512, 490), 7), round(erlang_c(544, 490), 7), erlang_c(2, 2)
    (0.6400429, 0.2320791, 0.0097391, 1.0)
    """
    return waiting(erlang_b(servers, load), load / servers) if load < servers else 1.0


def waiting(blocking: float, utilisation: float) -> float:
    """Erlang C from Erlang B at the same c and ρ < 1.

    >>> waiting(0.25, 0.5)
    0.4
    """
    return blocking / (1.0 - utilisation * (1.0 - blocking))


def variability(arrival_cv2: float = 1.0, service_cv2: float = 1.0) -> float:
    """The factor f = (Ca² + Cs²)/2 by which waits are stretched (F18; Allen 1990, after Cunneen). 1 for M/M/c.

    Args:
        arrival_cv2: Ca², squared coefficient of variation of the gaps between arrivals, ≥ 0.
        service_cv2: Cs², the same of service times.

    >>> variability(4, 1)
    2.5
    """
    return (arrival_cv2 + service_cv2) / 2


def mean_wait(servers: float, rate: float, service: float, stretch: float = 1.0) -> float:
    """Mean wait of all arrivals, seconds: f·C/(cμ − λ) (F16, F18). Low by up to 7 times where arrivals are bursty.

    Args:
        servers: c > 0.
        rate: λ ≥ 0, arrivals/s.
        service: S = 1/μ > 0, mean seconds of service.
        stretch: f of `variability`.

    >>> [round(1 + mean_wait(12, 12 * rho, 1.0), 4) for rho in (0.7, 0.8, 0.9, 0.95)]  # response over service
    [1.0511, 1.1537, 1.5334, 2.3484]
    """
    load = rate * service
    return stretch * erlang_c(servers, load) / (servers / service - rate) if load < servers else math.inf


def late_share(servers: float, rate: float, service: float, wait: float, stretch: float = 1.0) -> float:
    """P(wait > t) = C·exp(−(cμ − λ)t/f), first come first served (F17, F19). f stretches the tail, not P(wait > 0).

    Args:
        servers: c > 0.
        rate: λ ≥ 0, arrivals/s.
        service: S > 0, mean seconds of service.
        wait: t ≥ 0, seconds.
        stretch: f of `variability`; 0 means that neither arrivals nor service vary.

    >>> round(late_share(32, 1.7, 12.25, 0.5), 4), round(late_share(544, 40, 12.25, 0.5, 2.5), 4)
    (0.0097, 0.004)
    """
    load = rate * service
    if load >= servers:
        return 1.0
    return erlang_c(servers, load) * tail((servers / service - rate) * wait, stretch)


def tail(exponent: float, stretch: float) -> float:
    """exp(−x/f), with its limit at f = 0: a step.

    >>> tail(0.0, 0.0), tail(1.0, 0.0), round(tail(1.0, 2.0), 4)
    (1.0, 0.0, 0.6065)
    """
    if stretch <= 0:
        return float(exponent <= 0)
    return math.exp(-exponent / stretch)


def wait_quantile(servers: float, rate: float, service: float, quantile: float, stretch: float = 1.0) -> float:
    """The wait that a share of the arrivals stays within, seconds: f·ln(C/(1 − q))/(cμ − λ), at least 0 (from F19).

    Args:
        servers, rate, service, stretch: as `late_share` has them.
        quantile: q in 0 ≤ q < 1.

    >>> round(wait_quantile(12, 10.8, 1.0, 0.95), 3), wait_quantile(12, 6.0, 1.0, 0.5)
    (2.125, 0.0)
    """
    load = rate * service
    if load >= servers:
        return math.inf
    delayed = erlang_c(servers, load)
    if delayed <= 1 - quantile:
        return 0.0
    return stretch * math.log(delayed / (1 - quantile)) / (servers / service - rate)


def peakedness(arrival_cv2: float) -> float:
    """The peakedness z = (Ca² + 1)/2 of arrivals (Fredericks 1980).

    Where gaps are correlated, the variance-to-mean ratio of counts over a service time takes the place of Ca².

    >>> peakedness(4)
    2.5
    """
    return (arrival_cv2 + 1) / 2


def hayward_late_share(servers: float, rate: float, service: float, wait: float, peak: float) -> float:
    """P(wait > t) with bursty arrivals: Erlang C at c/z servers and a/z load, tail × z (Hayward; Fredericks 1980).

    Close to simulation where `late_share` is too low, since bursts also raise the share that waits at all.

    Args:
        servers, rate, service, wait: as `late_share` has them.
        peak: z > 0 of `peakedness`.

    >>> round(hayward_late_share(32, 0.8 * 32 / 12.25, 12.25, 0.5, 2.5), 3)
    0.319
    """
    return late_share(servers / peak, rate / peak, service, wait)


def hayward_mean_wait(servers: float, rate: float, service: float, peak: float) -> float:
    """Mean wait with bursty arrivals, seconds (Hayward; Fredericks 1980); arguments as `hayward_late_share` has them.

    >>> round(hayward_mean_wait(32, 0.8 * 32 / 12.25, 12.25, 2.5), 2)
    1.7
    """
    return mean_wait(servers / peak, rate / peak, service)


def single_server_wait(utilisation: float) -> float:
    """Mean wait over service time with one server, M/M/1: ρ/(1 − ρ) (F14). One more is the response over service.

    >>> [round(single_server_wait(rho), 3) for rho in (0.5, 0.65, 0.8, 0.9)]
    [1.0, 1.857, 4.0, 9.0]
    """
    return utilisation / (1 - utilisation) if utilisation < 1 else math.inf


def backlog_wait(queued_cost: float, replicas: float) -> float:
    """Wait of a request that arrives now behind a visible queue, seconds: queued replica-seconds over replicas.

    >>> backlog_wait(40 * 0.825, 12)
    2.75
    """
    return queued_cost / replicas


def _inverse_at_fraction(fraction: float, load: float) -> float:
    """1/B_f = a∫₀^∞ e^(−ay)(1 + y)^f dy = e^a a^(−f) Γ(1 + f, a) for 0 ≤ f < 1; 1 at f = 0.

    By Legendre's continued fraction of the incomplete gamma function where it converges fast (a ≥ 2, by the modified
    Lentz method), and by its power series below.
    """
    if not fraction:
        return 1.0
    if load < 2.0:
        term = total = 1.0 / (1.0 + fraction)
        for n in range(1, 60):  # the terms fall by at least 2/(1 + n): under 1e-17 long before
            term *= load / (1.0 + fraction + n)
            total += term
        try:
            power = math.pow(load, -fraction)
        except OverflowError:  # nobody comes, so nobody is lost
            return math.inf
        return math.exp(load) * power * math.gamma(1.0 + fraction) - load * total
    b = load - fraction
    c, d = math.inf, 1.0 / b
    found = d
    for n in range(1, 200):  # 60 steps give 1e-16 at a = 2, fewer above
        term = n * (1.0 + fraction - n)
        b += 2.0
        d = 1.0 / (term * d + b)
        c = b + term / c
        found *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
    return load * found
