"""Traffic of an inference service with known faults: seeded, and with counterfactual truth.

Every record is made twice from the same random numbers, with the fault and without, so that what
a detector should have said is known to the record. `scenarios` holds the permanent names,
`workload` who asks for what and when, `stage_models` how long stages take, `queueing` who waits,
`faults` what goes wrong, `truth` what a detector should say, and `generate` puts them together.
"""
