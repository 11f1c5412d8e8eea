"""`tailbudget top`: what ClickHouse has of all services, live in a terminal.

`asking` gets answers, `questions` are the queries, `cells` says in words and colours what came,
and `app` and `screens` show it. Nothing that records bring is read as markup.
"""
