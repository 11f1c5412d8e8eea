"""The sections of the report, one module each, in the order in which `lines` puts them.

Each has one public function from an `Audit` to a `Section`. What was not measured is said, with
the reason where one is known: a section is never empty and never leaves a cell blank.
"""
