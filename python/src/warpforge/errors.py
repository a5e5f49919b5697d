"""The one error that users of the package see."""


class TraceError(Exception):
    """What went wrong, where, and what to do about it."""

    def __init__(self, what: str, advice: str | None = None) -> None:
        super().__init__(what if advice is None else f"{what}\n  {advice}")
