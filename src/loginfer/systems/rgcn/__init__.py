"""R-GCN: relational message passing as the encoder, DistMult as the decoder.

Schlichtkrull and others, Modeling Relational Data with Graph Convolutional Networks (ESWC 2018).
"""

from loginfer.systems.rgcn.system import RGCN

__all__ = ["RGCN"]
