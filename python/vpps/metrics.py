"""Writes the numbers of a training to a CSV file, TensorBoard or a progress bar."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TextIO, TypeVar

from ._arrays import Path, whole
from .errors import ArgumentError, Closing

T = TypeVar("T")


class Metrics(Closing):
    """Writes numbers of each batch to `folder`/metrics.csv, and, if the package tensorboardX is installed (`pip install vpps[tensorboard]`), to
    TensorBoard's event files in the folder. `tensorboard` True: fails without that package; False: writes no event files.

        trainer = vpps.Trainer(model, on_step=vpps.Metrics("runs/1"))

    The columns of the CSV file are those of the first row; other numbers are in the event files only. An existing file is continued."""

    def __init__(self, folder: Path, *, every: int = 1, tensorboard: bool | None = None) -> None:
        """every: writes the numbers of every batch (1), every second batch (2), and so on."""
        self.every = whole(every, "every")
        if not every:
            raise ArgumentError("every: 0; expected a whole number from 1 on")
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, "metrics.csv")
        self._columns: list[str] | None = None
        if os.path.exists(self.path) and os.path.getsize(self.path):
            with open(self.path, newline="", encoding="utf-8") as old:
                self._columns = next(csv.reader(old))[1:]
        self._file: TextIO = open(self.path, "a", newline="", encoding="utf-8")  # noqa: SIM115
        self._csv = csv.writer(self._file)
        self._events: Any = None
        if tensorboard is not False:
            try:
                from tensorboardX import SummaryWriter

                self._events = SummaryWriter(os.fspath(folder))
            except ImportError:
                if tensorboard:
                    raise

    def __call__(self, step: int, values: Mapping[str, float]) -> None:
        """Writes named numbers of batch `step`."""
        if step % self.every:
            return
        if self._columns is None:
            self._columns = list(values)
            self._csv.writerow(["step", *self._columns])
        self._csv.writerow([step, *(values.get(name, "") for name in self._columns)])
        self._file.flush()
        if self._events is not None:
            for name, value in values.items():
                self._events.add_scalar(name, value, step)

    def close(self) -> None:
        """Closes the CSV file and TensorBoard's."""
        self._file.close()
        if self._events is not None:
            self._events.close()


def progress(items: Iterable[T], **options: Any) -> Iterable[T]:
    """Iterates with tqdm's progress bar, in notebooks its widget; without tqdm (`pip install vpps[progress]`) returns the items."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return items
    return tqdm(items, **options)


def read_csv(path: Path) -> Iterator[dict[str, float]]:
    """The rows of a metrics.csv: numbers by the names of their columns."""
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield {k: float(v) for k, v in row.items() if v}
