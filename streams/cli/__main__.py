"""`python -m tailbudget.streams.cli`: the command line where no script is installed."""

from tailbudget.streams.cli import main

main()
