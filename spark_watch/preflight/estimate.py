"""What a fine-tuning run will need: weights, optimizer states, gradients, activations.

Planning arithmetic, not a guarantee: the four terms of any training run at published bytes a
parameter (huggingface/transformers, "Model training anatomy"; bitsandbytes for the 8-bit states).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from spark_watch.errors import UsageError
from spark_watch.model import GIB

WEIGHT_BYTES: Final[Mapping[str, float]] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "nf4": 0.5,
    "nvfp4": 0.5,
}
"""Bytes of one parameter by data type."""

SCALE_BYTES: Final = 1 / 16
"""Bytes of scale that a four-bit parameter has on top: NF4 keeps four for 64 parameters
(bitsandbytes), NVFP4 one for 16 (NVIDIA, "Introducing NVFP4")."""

FOUR_BIT: Final = frozenset({"nf4", "nvfp4"})

OPTIMIZER_BYTES: Final[Mapping[str, float]] = {"adamw": 8.0, "adamw_8bit": 2.0, "sgd": 0.0}
"""Bytes of state for one trainable parameter."""

GRADIENT_BYTES: Final = 2.0
"""Bytes of gradient for one trainable parameter, in bf16."""

CHECKPOINTING_SAVES: Final = 0.3
"""Share of the activations that gradient checkpointing saves."""

METHODS: Final = ("full", "lora", "qlora")

LARGEST_PARAMS: Final = 1e13


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What a run will need, in bytes.

    Args:
        weights_bytes: the model in its stored form; 0 where only a total was given.
        optimizer_bytes: states of all trainable parameters.
        gradient_bytes: gradients of all trainable parameters.
        activation_bytes: ``None`` where nobody said: then the total is without them.
        load_bytes: the most that loading takes for a moment: each tensor is there twice, once
            mapped from its safetensors file and once where it is going.
        given_bytes: a total from outside; the terms are 0 then.
    """

    weights_bytes: float = 0.0
    optimizer_bytes: float = 0.0
    gradient_bytes: float = 0.0
    activation_bytes: float | None = None
    load_bytes: float | None = None
    given_bytes: float | None = None

    @property
    def total_bytes(self) -> float:
        """What it holds while it runs, activations included where they are known."""
        if self.given_bytes is not None:
            return self.given_bytes
        return (
            self.weights_bytes
            + self.optimizer_bytes
            + self.gradient_bytes
            + (self.activation_bytes or 0.0)
        )

    def terms(self) -> str:
        """Return the terms in words, largest unit GiB."""
        if self.given_bytes is not None:
            return "as given"
        activations = (
            "activations not counted"
            if self.activation_bytes is None
            else f"activations {self.activation_bytes / GIB:.1f}"
        )
        return (
            f"weights {self.weights_bytes / GIB:.1f}, optimizer {self.optimizer_bytes / GIB:.1f}, "
            f"gradients {self.gradient_bytes / GIB:.1f}, {activations}"
        )


def estimate(
    params: float,
    *,
    method: str = "lora",
    dtype: str = "bf16",
    optimizer: str = "adamw",
    activation_gib: float | None = None,
    checkpointing: bool = False,
) -> Workload:
    """Return what a run needs.

    Args:
        params: parameters of the model, 1e6 to 1e13.
        method: ``full`` trains every parameter; ``lora`` and ``qlora`` train adapters, whose
            parameters, states and gradients are small enough to leave out.
        dtype: data type of the weights; ``qlora`` keeps the base in four bits whatever it is.
        optimizer: ``adamw``, ``adamw_8bit`` or ``sgd``.
        activation_gib: activations without checkpointing; ``None`` leaves them out.
        checkpointing: gradient checkpointing, which saves 30 % of the activations.

    Raises:
        UsageError: a value makes no sense, or the method needs another data type.
    """
    if not 1e6 <= params <= LARGEST_PARAMS:  # noqa: PLR2004 - said in the message
        raise UsageError(f"--params {params:g}: must be 1e6 to 1e13")
    if method == "qlora" and dtype not in FOUR_BIT:
        dtype = "nf4"
    if method == "full" and dtype not in {"fp32", "bf16", "fp16"}:
        raise UsageError(f"--method full --dtype {dtype}: only fp32, bf16 and fp16 can be trained")
    trainable = params if method == "full" else 0.0
    per_weight = WEIGHT_BYTES[dtype] + (SCALE_BYTES if dtype in FOUR_BIT else 0.0)
    weights = params * per_weight
    activations = None
    if activation_gib is not None:
        activations = activation_gib * GIB * (1.0 - CHECKPOINTING_SAVES * checkpointing)
    return Workload(
        weights_bytes=weights,
        optimizer_bytes=trainable * OPTIMIZER_BYTES[optimizer],
        gradient_bytes=trainable * GRADIENT_BYTES,
        activation_bytes=activations,
        load_bytes=2.0 * weights,
    )
