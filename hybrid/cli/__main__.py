"""`python -m hybrid.cli`: the command line where its console script is not on the path."""

from hybrid.cli.main import main

main()
