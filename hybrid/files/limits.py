"""The limits of input files: a small file may unpack to very many bytes, and a line may have no end."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.schema.problem import Problem


@dataclass(frozen=True, slots=True)
class FileLimits:
    """What is read at once, and how far a compressed file may unpack."""

    # JSON lines files are cut after this many bytes, at the next line end, so that several workers share a large one.
    slice_bytes: int = 32 * 1024 * 1024
    # A line is read whole before it is parsed.
    line_bytes_max: int = 64 * 1024 * 1024
    # For a file that is one JSON text, and a block of Avro.
    text_bytes_max: int = 1024 * 1024 * 1024
    # The size of packed bytes does not show the unpacked size. Less than `ratio_from` bytes are always read.
    ratio_max: int = 300
    ratio_from: int = 64 * 1024 * 1024

    def is_bomb(self, unpacked: int, packed: int) -> bool:
        """Whether so many bytes unpack to far too many."""
        return unpacked > self.ratio_from and unpacked > self.ratio_max * packed

    def check_ratio(self, unpacked: int, packed: int) -> None:
        """Problem when a file unpacks to far more than its bytes."""
        if self.is_bomb(unpacked, packed):
            raise Problem(0, "", f"unpacks to more than {self.ratio_max} times its size, which is not read")

    def unpacked_max(self, packed: int) -> int:
        """The bytes to which a block of so many may unpack."""
        return min(self.text_bytes_max, max(self.ratio_from, self.ratio_max * packed))


DEFAULT_LIMITS = FileLimits()
