from .boxe import BoxE as BoxE
from .complex import ComplEx as ComplEx
from .distmult import DistMult as DistMult
from .rotate import RotatE as RotatE
from .transe import TransE as TransE
