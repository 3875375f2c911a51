"""What crosses between device and server: compressors, and messages as bytes."""

from feddyn.wire.base import Compressor
from feddyn.wire.quantized import Quantized, Sign
from feddyn.wire.sparse import RandomK, TopK

__all__ = ["Compressor", "Quantized", "RandomK", "Sign", "TopK"]
