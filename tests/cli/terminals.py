"""A terminal that keeps what is printed on it."""

import io


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True
