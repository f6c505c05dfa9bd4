"""Mix drift: has the cost of a request moved, since when, through what and by whom? Arrays in, events out.

`rows` are finished requests of one pool; `resend` leaves out what only repeats a failed attempt; `ticks` are sums of
ten seconds, all that is kept; a `model` is fitted on past ticks (`reference` of levels, `channels` of evidence,
`scale` of alarm levels); the `detector` compares new ticks with it and raises `event`s, explained by `attribution`.
"""
