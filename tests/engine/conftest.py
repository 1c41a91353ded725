"""What tests of the Spark engine share: one small Spark application, since each takes seconds to start."""

from __future__ import annotations

import pytest

from loginfer.errors import InputError

# One task a step, no compiled queries and little compiled Java: on a handful of triples that is what takes
# the time.
SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="session")
def needs_spark() -> None:
    """Skip where there is no PySpark, or no Java for it."""
    from loginfer.engine.spark.session import require_java, require_pyspark

    try:
        require_pyspark()
        require_java()
    except InputError as error:
        pytest.skip(f"needs Spark: {error.message}")


@pytest.fixture(scope="session")
def spark(needs_spark, tmp_path_factory):
    """Spark on two cores of this machine, for all engines that name no other master."""
    from loginfer.engine.spark.session import spark_application

    with spark_application("local[2]", SMALL, tmp_path_factory.mktemp("spark")):
        yield
