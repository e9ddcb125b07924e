"""Running a function over tasks: in this process while the input is tiny, as one Spark job where it is not."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from eo_audit.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[str, int, int], None]

# Spark tells nobody in Python how far a job is: the count of an accumulator is looked at.
POLL_SECONDS = 0.5


def silent(what: str, done: int, total: int) -> None:
    """A `Progress` that shows nothing. It is told what is done, how much of it, and of how much."""


@contextmanager
def described(spark: "SparkSession", what: str) -> Iterator[None]:
    """Jobs that this thread starts are called so in Spark's pages and its history server, which know only where in Java they began."""
    context = spark.sparkContext
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(what)
    try:
        yield
    finally:
        context.setJobDescription(before)  # type: ignore[arg-type]  # a notebook's own, or none


class Tasks:
    """Runs functions over tasks and tells the progress."""

    def __init__(self, spark: "Callable[[], SparkSession] | None", progress: Progress = silent) -> None:
        """Without Spark the tasks run in this process, one after another."""
        self._spark = spark
        self._progress = progress

    def run(self, what: str, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        """The results in the order of the tasks.

        Raises:
            InputError: the first one that a task raised, as it was raised.
        """
        self._progress(what, 0, len(tasks))
        if self._spark is None or not tasks:
            return [self._here(what, function, task, done, len(tasks)) for done, task in enumerate(tasks, 1)]
        return self._in_spark(self._spark(), what, function, tasks)

    def _here(self, what: str, function: Callable[[T], R], task: T, done: int, total: int) -> R:
        result = function(task)
        self._progress(what, done, total)
        return result

    def _in_spark(self, spark: "SparkSession", what: str, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        context = spark.sparkContext
        done = context.accumulator(0)

        def counted(task: T) -> R | InputError:
            try:
                return function(task)
            except InputError as error:  # Spark would wrap it into a stack trace
                return error
            finally:
                done.add(1)

        def all_of_them() -> list[R | InputError]:
            with described(spark, what):
                # One partition a task: they differ by orders of magnitude in size, and Spark would deal them out in equal numbers.
                return context.parallelize(tasks, len(tasks)).map(counted).collect()

        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(all_of_them)
            while not wait([job], POLL_SECONDS).done:
                self._progress(what, done.value, len(tasks))
        return [_unless_failed(result) for result in job.result()]


def _unless_failed(result: R | InputError) -> R:
    if isinstance(result, InputError):
        raise result
    return result
