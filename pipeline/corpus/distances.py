"""The names of pgvector's distances, and of the types that a vector can be cast to."""

from typing import Literal

Distance = Literal["cosine", "inner_product", "l2", "l1", "hamming", "jaccard"]
Cast = Literal["vector", "halfvec", "bit"]
