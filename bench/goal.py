"""One goal of the bench, and its verdict."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal: its name, the measured value (None if it was not measured), and its bound."""

    says: str
    value: float | None
    bound: float
    is_least: bool = False
    unit: str = "x"

    @property
    def verdict(self) -> str:
        """`met`, `missed`, or `not measured`."""
        if self.value is None:
            return "not measured"
        is_met = self.value >= self.bound if self.is_least else self.value <= self.bound
        return "met" if is_met else "missed"

    @property
    def wanted(self) -> str:
        """The bound as text."""
        return f"{'≥' if self.is_least else '≤'} {self._told(self.bound)}"

    @property
    def found(self) -> str:
        """The value as text."""
        return "–" if self.value is None else self._told(self.value)

    def _told(self, value: float) -> str:
        if self.unit == "%":
            return f"{value:.1%}"
        digits = 0 if self.unit == "MB" else 2
        return f"{value:.{digits}f} {self.unit}"
