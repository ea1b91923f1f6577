"""The base of every settings model: frozen, and an unknown key is an error."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A part of the settings tree that never changes after it was read."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
