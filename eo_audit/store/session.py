"""The only builder of Spark sessions.

On one machine the two Delta jars come from the project's own cache and stand on the class path: resolving them again at each
start costs seconds, and only classes of the class path can enter an archive of loaded classes (AppCDS).
`eo-audit setup` fills the cache, `python -m eo_audit.store.session archive DUMPS` adds that archive.
Under spark-submit the cluster's own settings are left alone.
"""

import contextlib
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from eo_audit.config import Config, Profile, submitted
from eo_audit.errors import ConfigurationError
from eo_audit.store.jars import CHECKOUT, JARS, cache_folder, fetch_jars, jar_paths
from eo_audit.store.meaning import as_ours, refuse_other_meanings
from eo_audit.store.scratch import own_folder

# Delta's rules of planning come with the extension, its tables with the catalog.
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
OLDEST_JAVA = 17
# The Hadoop 3.4 of this Spark asks `Subject.getSubject` whose files it opens, which Java 23 and newer refuse (JEP 486).
NEWEST_JAVA = 22
# Else a thread of Spark dies alone, of those that hand tasks out, and the job waits for ever.
_ENDS_WITHOUT_MEMORY = "-XX:+ExitOnOutOfMemoryError"
_WITHOUT_MEMORY = 3  # with which Java then ends
_ENDS_WITHIN_SECONDS = 2.0
_WRITE_ARCHIVE = "EO_AUDIT_WRITE_CLASS_ARCHIVE"


def session(config: Config, *, input_bytes: int | None = None, notice: Callable[[str], object] = str) -> SparkSession:
    """The Spark session of this process, with Delta.

    Args:
        config: where Spark runs.
        input_bytes: size of what will be read; small inputs get a Java process that starts fast, others one that runs fast.
        notice: hears what is fetched before the first session of a user.

    Raises:
        ConfigurationError: no Java, one that is too old or too new, or Java that does not start, or no jars of Delta.
    """
    _without_json()
    # By size, because starting and planning are most of a small run, and none of a large one (figures in conf/local.yaml).
    profile = config.profile(input_bytes)
    refuse_other_meanings({**config.spark, **profile.spark})
    if config.mode == "cluster" or submitted():
        return _submitted(config)
    require_java()
    # Tasks must run in this very environment: by default Spark takes the `python3` of the PATH, which may have no pyarrow.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Else Spark asks for the address of the host's name: seconds where no name service answers.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # The launcher is a Java process of its own, only there to print the command line of the real one.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
    spark = _start(_local_settings(config, profile, notice))
    if profile.most_partitions:
        # Java counts the cores, as far as the machine or a container leaves them to it.
        spark.conf.set("spark.sql.shuffle.partitions", str(min(profile.most_partitions, spark.sparkContext.defaultParallelism)))
    return spark


def _without_json() -> None:
    """pyspark writes each refused query on standard error as a line of JSON, stack and all; what fails raises, and is told once."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


class Starting:
    """A session that starts in the background, while this process reads dumps. Call it to have it."""

    def __init__(self, config: Config, *, input_bytes: int | None = None, notice: Callable[[str], object] = str) -> None:
        """Nothing starts before `begin` or the first call. Arguments as for `session`."""
        self._start = lambda: session(config, input_bytes=input_bytes, notice=notice)
        self._begun: Future[SparkSession] | None = None

    def begin(self) -> None:
        """Start now."""
        if self._begun is None:
            pool = ThreadPoolExecutor(1)
            self._begun = pool.submit(self._start)
            pool.shutdown(wait=False)

    def __call__(self) -> SparkSession:
        """The session; waits until it is there. Errors as for `session`."""
        self.begin()
        assert self._begun is not None
        return self._begun.result()


def _submitted(config: Config) -> SparkSession:
    # Only what results depend on. Memory, parallelism and where jars come from are the business of whoever submits.
    conf = SparkConf().setAppName("eo-audit").setAll(list({**DELTA, **config.spark}.items()))
    return as_ours(_opened(SparkContext.getOrCreate(conf), conf, config.spark))


def _local_settings(config: Config, profile: Profile, notice: Callable[[str], object]) -> dict[str, str]:
    return {
        "spark.app.name": "eo-audit",
        "spark.master": config.master,
        # Nothing but this machine talks to a local run: no port is open to the network.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": profile.driver_memory,
        # Python of the tasks is a new process, which would not find a checkout that is not installed.
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")])),
        # Shuffles and spills hold rows of the dumps: in a folder of this run that goes with it, not in the temporary folder of all.
        "spark.local.dir": str(own_folder()),
        # No table lies in Spark's own warehouse, but each session makes the folder: by default in the current one.
        "spark.sql.warehouse.dir": str(own_folder() / "spark-warehouse"),
        "spark.driver.extraJavaOptions": " ".join(
            filter(None, [profile.java_options, _ENDS_WITHOUT_MEMORY, _scratch_options(), _archive_options()])
        ),
        **DELTA,
        **_delta_jars(notice),
        # The last one wins: the file's settings over ours, those of the size over both.
        **config.spark,
        **profile.spark,
    }


def _start(settings: Mapping[str, str]) -> SparkSession:
    """Start Java and open a session; what Java says goes to a file without a name, and is quoted only when it does not start."""
    # Without the defaults: a spark-defaults.conf of the machine is for other programs, and could change what is found.
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    with tempfile.TemporaryFile() as log:
        try:
            # One Java a process: a second session lives with the memory and the options that the first one started with.
            if SparkContext._gateway is None:
                SparkContext(conf=conf, gateway=_gateway(conf, log))
            spark = as_ours(_opened(SparkContext.getOrCreate(), conf, settings))
            _ = spark.sparkContext.defaultParallelism  # read as late as here, and by each job again
        except (Py4JJavaError, PySparkException) as error:
            said = str(getattr(error, "java_exception", error)).strip().splitlines()[0]
            raise ConfigurationError(f"Spark did not start with these settings (--config): {said}") from error
    # Spark warns of much that is meant so (no native Hadoop, windows without a partition); what fails raises.
    spark.sparkContext.setLogLevel("ERROR")
    _remember_classes(spark)
    return spark


def _opened(context: SparkContext, conf: SparkConf, settings: Mapping[str, str]) -> SparkSession:
    """The session with these settings. A value of theirs that SQL refuses must be told before there is one: pyspark asks the session's
    settings how to word an error, is refused, words that error, and so on for ever (`CapturedException.__str__`)."""
    scratch = getattr(context._jvm, "org.apache.spark.sql.internal.SQLConf")()
    for name, value in settings.items():
        if name.startswith("spark.sql."):
            scratch.setConfString(name, str(value))
    return SparkSession.builder.config(conf=conf).getOrCreate()


class _Remembered:
    """A Java class whose members are looked up once."""

    def __init__(self, java_class: object) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> object:
        member = getattr(self._java_class, name)
        setattr(self, name, member)
        return member


def _remember_classes(spark: SparkSession) -> None:
    """py4j asks Java for the class and for the member at every `F.col`, in every package there is: a third of all talk with Java."""
    jvm = spark.sparkContext._jvm
    for name in ("functions", "PythonUtils", "PythonSQLUtils", "org.apache.spark.sql.functions", "org.apache.spark.sql.expressions.Window"):
        setattr(jvm, name, _Remembered(getattr(jvm, name)))


class _Launched(subprocess.Popen[bytes]):
    """The Java that pyspark waits for: for ever, where it ends with 0 (`while not proc.poll()`), as `-version` among its options does."""

    only_told = False

    def poll(self) -> int | None:
        """As of any process, but a 0 is told as an error."""
        code = super().poll()
        type(self).only_told = code == 0
        return 1 if code == 0 else code


def _gateway(conf: SparkConf, log: IO[bytes]):  # type: ignore[no-untyped-def]
    # In a process group of its own: a terminal's Ctrl-C is Python's alone. That Java is to ignore it is not enough: what starts it is a
    # script, and bash 5.2 spins for ever where one comes just as it begins to wait for a child (`wait_sigint_handler` of its jobs.c).
    setattr(java_gateway, "Popen", _Launched)  # noqa: B010 - no public name of it
    try:
        return java_gateway.launch_gateway(conf, {"stderr": log, "process_group": 0})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        log.seek(0)
        if _Launched.only_told:
            options = "java_options or spark.driver.extraJavaOptions"
            raise ConfigurationError(
                f"Java ended at once, without an error: with these options ({options}, --config) it starts nothing"
            ) from error
        raise ConfigurationError(f"Java did not start: {_why_not(log.read().decode(errors='replace')) or error}") from error


def _why_not(said: str) -> str:
    """The line that says why Java, or Spark's launcher in it, ended at once; around it stand warnings, frames and that it ended."""
    lines = [line for line in said.splitlines() if line.strip() and not re.match(r"\s+(at |\.\.\. )|WARNING: |Using Spark's ", line)]
    told = [line for line in lines if not line.startswith(("Error: A fatal exception", "Error: Could not create"))]
    complaints = [line for line in told if re.search("(?i)exception|error|invalid|could not", line)]
    return (complaints or told or lines or [""])[-1]


def how_java_ended() -> str | None:
    """Why there is no Java any more, in a few words; None while it runs, or was never started."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    # Its connections end a moment before it does.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_ENDS_WITHIN_SECONDS)
    if process.returncode is None:
        return None
    if process.returncode == _WITHOUT_MEMORY:
        return "Java ran out of memory: give it more (driver_memory in a configuration file, --config)"
    return f"Java ended with {process.returncode}" if process.returncode >= 0 else f"Java was ended by signal {-process.returncode}"


def require_java() -> str:
    """Version of the Java that Spark will start.

    Raises:
        ConfigurationError: there is none, or it is older or newer than Spark can use.
    """
    java = _java()
    # A home without a `release` file is rare (a stripped image): only then is a process started to ask.
    version = _release(java) or _asked(java)
    major = re.match(r"(?:1\.)?(\d+)", version)
    if major is None or not OLDEST_JAVA <= int(major.group(1)) <= NEWEST_JAVA:
        needed = f"Java {OLDEST_JAVA} to {NEWEST_JAVA}"
        raise ConfigurationError(f"Spark needs {needed}, but {java} is Java {version}: set JAVA_HOME to one of those")
    return version


def _java() -> Path:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", "java"))) if home else shutil.which("java")
    if found is None:
        where = f"JAVA_HOME={home} holds none" if home else "there is none on the PATH"
        raise ConfigurationError(f"Spark needs Java {OLDEST_JAVA} to {NEWEST_JAVA}, and {where}: install it or set JAVA_HOME")
    return Path(found)


def _release(java: Path) -> str | None:
    """The version in the `release` file of a Java home: a read, where asking Java costs a process."""
    release = java.resolve().parent.parent / "release"
    found = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(), re.MULTILINE) if release.is_file() else None
    return found.group(1) if found else None


def _asked(java: Path) -> str:
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "([^"]+)"', said)
    return found.group(1) if found else "of an unknown version"


def _delta_jars(notice: Callable[[str], object]) -> dict[str, str]:
    """Settings that bring Delta: the jars of the cache, fetched if they are not there."""
    # Not `spark.jars`: that copies them at each start and loads them apart, where no class archive reaches.
    fetch_jars(notice=notice)
    # Of the 33 jars that Ivy brings for Delta two are needed, and on the class path a start takes 2.6 s less.
    class_path = os.pathsep.join(map(str, jar_paths()))
    return {"spark.driver.extraClassPath": class_path, "spark.executor.extraClassPath": class_path}


def archive_path() -> Path:
    """The archive of loaded classes: only good for the very same Java, Spark and jars. Java maps it whatever the garbage collector."""
    spark = importlib.metadata.version("pyspark")
    # Java refuses an archive of other classes and starts without it, slower and in silence: so its name says what it is of.
    about = "\n".join([require_java(), spark, str(_java().resolve()), str(cache_folder()), *JARS.values()])
    return cache_folder() / f"classes-{hashlib.sha256(about.encode()).hexdigest()[:12]}.jsa"


def write_archive(dumps: Path) -> Path:
    """Archive the classes that an audit of some small dumps loads: later small audits start seconds sooner. Done once; some 200 MB.

    Raises:
        ConfigurationError: Java wrote no archive.
    """
    archive = archive_path()
    if archive.is_file():
        return archive
    # Java that is killed leaves half an archive: under its name it would be mapped at every start.
    unfinished = archive.with_suffix(".part")
    with tempfile.TemporaryDirectory() as out:
        # Java writes the archive when Python is gone already; it holds the pipe of its output until it has ended too.
        command = [sys.executable, "-c", "from eo_audit.cli import main; main()", "run", str(dumps), "--out", out]
        ran = subprocess.run(command, env={**os.environ, _WRITE_ARCHIVE: str(unfinished)}, stdout=subprocess.PIPE, text=True, check=False)
    if not unfinished.is_file():
        raise ConfigurationError(f"Java wrote no archive of classes (exit code {ran.returncode}): {ran.stdout[-500:]}")
    return unfinished.replace(archive)


def _scratch_options() -> str:
    """What Java itself would leave in the temporary folder and, when it crashes, in the current one. A path with a blank is no option."""
    own = own_folder()
    return "" if " " in str(own) else f"-Djava.io.tmpdir={own} -XX:ErrorFile={own}/java-crash-%p.log -XX:-UsePerfData"


def _archive_options() -> str:
    quiet = "-Xlog:disable -Xlog:all=off"
    if _WRITE_ARCHIVE in os.environ:
        return f"-XX:ArchiveClassesAtExit={os.environ[_WRITE_ARCHIVE]} {quiet}"
    archive = archive_path()
    # AppCDS: 3.7 of 12.9 s for an input of 8 KB on two cores. Java passes over one that does not fit, in silence.
    return f"-XX:SharedArchiveFile={archive} {quiet}" if archive.is_file() else ""


def _main(arguments: Sequence[str]) -> None:
    """`archive DUMPS`."""
    sys.stdout.write(f"Wrote {write_archive(Path(arguments[1]))}\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
