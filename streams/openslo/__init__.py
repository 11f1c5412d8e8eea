"""OpenSLO v1 documents read to objectives, and written from them.

`read` takes the text of one or many documents, `write` gives such a text; what was written reads
back the same. What a document asks for and tailbudget can't do is refused with the path of the
field, for an SLO that is watched otherwise than it says is worse than none.
"""
