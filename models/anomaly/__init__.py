"""Which stages take longer than their shapes explain: scores, sequential tests, alarms.

Read in this order: `calibration` turns a residual into a normal score by the key's own history,
`tick` sums the scores of one tick, `coverage`, `jitter` and `clumps` follow how a key behaves by
itself, `allowance` says how much of a tick is no news, `sequential` accumulates what is left,
`alarms` says when one begins and ends, `effect` how large it is, `pending` lets rows wait before
they are learnt, `said` tells every change once, `saved` keeps the state, and `guard` puts all of
it together: one call a tick. `detector` is one key with river's interface.

Contract: score before learning; nothing is learnt from a key that is alarmed or suspicious; "not
learnt yet" and "never seen here" are states of their own, neither normal nor anomalous; time is an
argument; state goes through `dump` and `load` to the bit.
"""
