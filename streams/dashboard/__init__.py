"""The dashboard: pages, the data behind them, and word of every change.

1. `site` adds its routes to the worker's HTTP port, or to that of `tailbudget dashboard`;
2. `pages` answers with HTML from templates, under a policy that lets a page load nothing foreign;
3. `asked` reads what a page looks at from its address;
4. `answers` keeps an answer until something is written, so that many readers cost one query;
5. `overview`, `series`, `analysis`, `alerts` and `queries` make the data;
6. `events` tells open pages that something was written.
"""
