"""Rates from what a history or a Prometheus tells: sums of five minutes, of which only means are known.

Rough: within a fifth of engines of known rates, where single requests give 3 %. The rows are those of `windows`, of a
mean request in a pool whose replicas share evenly: while it waits for its first token, as many prompt tokens are
computed beside its own as arrive in that time, and with each of its tokens run as many as there are on average, and
itself (arrivals by chance see time averages; Wolff 1982).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.calibrate.fit import Fit, settled
from capwatch.calibrate.windows import Rows
from capwatch.errors import CapwatchError

FEWEST: Final = 6
"""Windows below which nothing is fitted."""
FEWEST_REQUESTS: Final = 20
"""Requests below which the means of a window say nothing."""
APART: Final = 1.5
"""Largest over smallest number of requests at once: with less, steps and sequences cannot be told apart."""
ROUGH: Final = 0.1
"""Relative standard error of what means leave out: engines of known rates come out up to 19 % off."""


@dataclass(frozen=True, slots=True)
class Sums:
    """What one replica did in a window, on average over the replicas.

    Attributes:
        seconds: of the window.
        requests: that ended in it.
        computed, output: their tokens.
        first_s: seconds until their first tokens, waiting included.
        decode_s: seconds from there to their last.
    """

    seconds: float
    requests: float
    computed: float
    output: float
    first_s: float
    decode_s: float


def fit(windows: Sequence[Sums]) -> Fit:
    """Fit sums of windows.

    Raises:
        CapwatchError: there are too few, or they do not tell prefill and decode apart.
    """
    told = [
        one
        for one in windows
        if one.requests >= FEWEST_REQUESTS and one.output > one.requests and one.first_s > 0 and one.decode_s > 0
    ]
    if len(told) < FEWEST:
        raise CapwatchError(
            f"{len(told)} windows of five minutes have {FEWEST_REQUESTS} requests of a replica that tell tokens and"
            f" times; at least {FEWEST} are needed: take a longer time, or calibrate from a log"
        )
    columns = np.array(
        [(one.seconds, one.requests, one.computed, one.output, one.first_s, one.decode_s) for one in told]
    )
    seconds, requests, computed, output, first_s, decode_s = columns.T
    tpot, ttft = decode_s / (output - requests), first_s / requests
    running = decode_s / seconds + 1
    if running.max() < APART * running.min():
        raise CapwatchError(
            f"{running.min():.2g} to {running.max():.2g} requests ran at once on average: that hardly varies, so that"
            " the rates cannot be told apart; take times of more and of less load, or calibrate from a log"
        )
    calm = ttft / computed * requests <= np.median(ttft / computed * requests)  # others wait for more than prompts
    number = np.arange(len(told) + int(calm.sum()))
    rate = computed / seconds
    return settled(
        Rows(
            seconds=np.concatenate([tpot, ttft[calm]]),
            computed=np.concatenate([rate * tpot, (computed / requests + rate * ttft)[calm]]),
            steps=(number < len(told)).astype(np.float64),
            tokens=np.concatenate([running, np.zeros(int(calm.sum()))]),
            before=np.zeros(len(number)),
            began=number.astype(np.float64),
            request=number,
        ),
        ROUGH,
    )
