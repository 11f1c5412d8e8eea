"""OpenSLO v1 documents, as https://github.com/OpenSLO/OpenSLO specifies them.

Each kind is a model whose fields are those of the specification; a key that it does not have is
refused. What a document means to us, and what of it we can't honour, is `streams.openslo`.
"""
