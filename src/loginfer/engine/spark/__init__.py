"""Rules by Spark: on many machines, for graphs larger than one."""

from loginfer.engine.spark.application import spark_application
from loginfer.engine.spark.engine import SparkEngine

__all__ = ["SparkEngine", "spark_application"]
