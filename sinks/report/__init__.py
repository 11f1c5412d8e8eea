"""The report of an audit: Markdown, HTML, JSON and text, all of them saying the same.

`lines.document` turns an `Audit` into titled sections of sentences and tables; `markdown_report`,
`html_report` and `text_report` lay that document out and add nothing to it (HTML draws the same
figures as charts). `json_report` has the figures themselves. How a number reads is decided in
`figures`, and what of a foreign name may be shown in `clean`.
"""
