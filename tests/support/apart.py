"""A worker whose others have what it has: it meets nobody."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from torch import Tensor
from torch.distributed import Work

from convs2s.training.workers import Workers


class Apart(Workers):
    """One of several workers, the only one that there is."""

    def check_same(self, parameters: Iterable[Tensor]) -> None:
        """Find nothing that differs."""

    def start_sum(self, tensor: Tensor) -> Work:
        tensor.mul_(self.count)
        return _Done()

    def totals(self, values: Sequence[float]) -> list[float]:
        return list(values)

    def least(self, number: int) -> int:
        return number


class _Done(Work):
    """A sum that is over."""

    def wait(self, timeout: timedelta = timedelta()) -> bool:
        return True
