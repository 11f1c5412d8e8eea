"""`tailbudget` as a file, for profilers that want one."""

from tailbudget.streams.cli import main

if __name__ == "__main__":
    main()
