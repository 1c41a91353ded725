from .base import Exported as Exported
from .base import ExportFormat as ExportFormat
from .base import NamedTriple as NamedTriple
from .export import FORMATS as FORMATS
from .export import export_benchmark as export_benchmark
from .export import read_export as read_export
from .export import register_export as register_export

NO_FORMATS: tuple[str, ...]
