import typing

from .datasets import LogInfer as LogInfer
from .datasets import LogInferInductive as LogInferInductive
from .datasets import dataset as dataset
from .negatives import ExplicitNegativeSampler as ExplicitNegativeSampler
from .scoring import Trained as Trained
from .scoring import scorer as scorer

def model_system(name: str) -> type[typing.Any]: ...
