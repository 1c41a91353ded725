from .engine import SparkEngine as SparkEngine
from .session import spark_application as spark_application
