"""The charts of the HTML report, one module a kind.

Each has a public function to a `Chart`, or to None when there is nothing to draw. Figures are
plotly's, as plain data without any styling of the page: the page's script puts in its colours.
"""
