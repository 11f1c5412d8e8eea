"""Pure maths over requests: no I/O, no clock, no environment.

Everything merges: a summary of two batches is the merge of their summaries, in any order.
"Don't know yet" is None, never a number and never "normal".
"""
