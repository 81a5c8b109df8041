"""The errors spdp raises on purpose. Both are ``ValueError``: existing handlers keep working."""

__all__ = ["DataError", "InvalidMatrixError", "ParameterError"]


class ParameterError(ValueError):
    """A number or option is outside the range in which its meaning, or its privacy guarantee, is defined."""


class DataError(ValueError):
    """A data source is unusable: the message names the file or array and says what was found.

    Messages of this class may describe records. They are for the holder of the data, not for publication.
    """


class InvalidMatrixError(DataError):
    """A matrix is not symmetric positive definite; the message names the first one by index.

    Attributes
    ----------
    index : tuple of int
        Position of the first offending matrix in the batch.
    """

    def __init__(self, message: str, index: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.index = index
