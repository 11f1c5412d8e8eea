"""How long a stage should take for its input and load: one regression a stage and cohort.

A prediction is a sum of non-negative terms, each work times load: a constant, the sizes, their
squares and products, each by itself and multiplied by the batch, by what is in flight, and by
both; and waiting terms. `roles` says which covariate is work, load or waiting, `terms` makes the
terms, `evidence` holds what was seen, with forgetting, `solve` fits, `bank` does all of that for
many keys at once, and `regressor` is one key of it with river's interface.

Contract: predict before learning; a key that has seen too little predicts NaN in arrays and None
by name; inputs are not changed; time is an argument; state goes through `dump` and `load` to the
bit.
"""
