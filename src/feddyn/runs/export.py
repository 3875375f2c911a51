"""A trained model as a file for others: PyTorch's, safetensors, or ONNX."""

import io
import json
import logging
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from feddyn.batches import owned
from feddyn.data.transforms import Transform
from feddyn.errors import FeddynError, InputError
from feddyn.records.files import home


class Whole(nn.Module):
    """A model that takes raw samples: what is done to them comes first."""

    def __init__(self, model: nn.Module, transform: Transform | None):
        super().__init__()
        self.model, self._transform = model, transform
        self._dtype = next(model.parameters()).dtype

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        inputs = samples if self._transform is None else self._transform(samples, self._dtype)
        return torch.as_tensor(self.model(inputs))


def export(model: nn.Module, transform: Transform | None, inputs: Mapping[str, Any], path: Path) -> Path:
    """Write a model to a new file, in the form that its name ends in: .pt and .safetensors have the state_dict, .onnx
    the whole computation from raw samples on, and as `feddyn.inputs` in its metadata how the record's `inputs` describe
    them."""
    path = home(path)
    if path.suffix not in WRITERS:
        raise InputError(f"{path}: models are written as {', '.join(WRITERS)}: end the name in one of these")
    if path.exists():
        raise InputError(f"{path} exists: nothing is overwritten, choose another name")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}; make it, or choose another one")
    part = path.with_name(f".{path.stem}.part{path.suffix}")  # what is cut off leaves nothing that looks like a model
    try:
        WRITERS[path.suffix](Whole(model, transform).cpu(), inputs, part)
        part.rename(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return path


def _torch(whole: Whole, inputs: Mapping[str, Any], path: Path) -> None:
    buffer = io.BytesIO()  # PyTorch's own errors of files do not say what is wrong
    torch.save(whole.model.state_dict(), buffer)
    path.write_bytes(buffer.getbuffer())


def _safetensors(whole: Whole, inputs: Mapping[str, Any], path: Path) -> None:
    tensors = {name: value for name, value in whole.model.state_dict().items() if isinstance(value, torch.Tensor)}
    save_file(owned(tensors), path)  # tied ones each by itself


def _onnx(whole: Whole, inputs: Mapping[str, Any], path: Path) -> None:
    if find_spec("onnx") is None or find_spec("onnxscript") is None:
        raise FeddynError("ONNX needs packages that are not installed: pip install 'feddyn[onnx]'")
    sample = inputs.get("sample", {})
    if "shape" not in sample:
        known = f"are {sample['form']}" if sample else "are not described in its record"
        raise InputError(f"ONNX export is for models of one array of samples; those of this run {known}: use .pt")
    dtype = getattr(torch, sample["dtype"])
    # raw floating-point samples are given to the model in its own type
    example = torch.zeros(2, *sample["shape"], dtype=whole._dtype if dtype.is_floating_point else dtype)
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # it lists operators of other packages that are not installed
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                whole,
                (example,),
                path,
                dynamo=True,
                dynamic_shapes=({0: torch.export.Dim.DYNAMIC},),
                input_names=["samples"],
                output_names=["outputs"],
                external_data=False,
                verbose=False,
            )
        import onnx

        written = onnx.load(path)
        onnx.helper.set_model_props(written, {"feddyn.inputs": json.dumps(dict(inputs))})
        onnx.save(written, path)
    except OSError:
        raise
    except Exception as error:  # whatever the exporter meets in somebody's network
        words = str(error).strip().splitlines()
        raise FeddynError(f"PyTorch cannot export this model to ONNX: {words[0] if words else error!r}") from error
    finally:
        logging.disable(before)


WRITERS: Mapping[str, Callable[[Whole, Mapping[str, Any], Path], None]] = {
    ".pt": _torch,
    ".safetensors": _safetensors,
    ".onnx": _onnx,
}
