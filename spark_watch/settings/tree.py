"""The settings tree and how it is read: defaults < TOML file < ``SPARK_WATCH_*`` < flags.

An unknown key or variable, a value of the wrong kind or an impossible combination ends in one line
that names the setting and the place it came from.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import BaseModel, Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from spark_watch.errors import ConfigurationError
from spark_watch.settings.alerts import AlertmanagerSettings
from spark_watch.settings.blackbox import BlackBoxSettings
from spark_watch.settings.conditions import ConditionSettings
from spark_watch.settings.progress import EnginesSettings, ProgressSettings

PREFIX: Final = "SPARK_WATCH_"
"""What every environment variable of ours starts with; nothing else may start with it."""

MAXIMUM_PORT: Final = 65535

DEFAULT_FILE: Final = Path("/etc/spark-watch/spark-watch.toml")
"""Read where it exists and no other file was named."""


class Settings(BaseSettings):
    """Everything that can be set.

    Sources in rising order: the defaults here, the TOML file, ``SPARK_WATCH_*`` variables (nested
    names joined by ``__``), command-line flags.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
    )

    file: ClassVar[Mapping[str, Any]] = {}
    environment: ClassVar[Mapping[str, str]] = {}

    listen: str = Field(
        default="127.0.0.1:9810",
        description="Address and port of the page. The page names processes and readings of this "
        "machine and is open to whoever reaches the port.",
    )
    interval_seconds: float = Field(
        default=1.0,
        ge=0.25,
        le=60.0,
        description="Seconds between two samples. A pool can collapse in two seconds.",
    )
    state_dir: Path | None = Field(
        default=None,
        description="Where recordings and acknowledgements are kept. Unset: what systemd names, "
        "else /var/lib/spark-watch as root, else ~/.local/state/spark-watch.",
    )
    lock_memory: bool = Field(
        default=True,
        description="Keep the daemon's own memory from being paged out, where its limits allow "
        "it, so that it still runs when the machine does not.",
    )
    proc_root: Path = Field(default=Path("/proc"), description="Where proc is mounted.")
    sys_root: Path = Field(default=Path("/sys"), description="Where sysfs is mounted.")
    kmsg_path: Path = Field(
        default=Path("/dev/kmsg"), description="The kernel log; needs CAP_SYSLOG on most systems."
    )
    instance: str | None = Field(
        default=None,
        min_length=1,
        description="How Prometheus calls this box (its label instance). Unset: the host's name "
        "and the port of the page.",
    )
    job: str = Field(
        default="spark-watch",
        min_length=1,
        description="The job under which Prometheus scrapes this box (its label job).",
    )
    gpu_clock_limit_hertz: float | None = Field(
        default=None,
        gt=0.0,
        description="The SM clock you locked the GPU to (nvidia-smi -lgc), so that a clock below "
        "the usual one is not taken for a fault. Unset: no lock.",
    )
    blackbox: BlackBoxSettings = BlackBoxSettings()
    progress: ProgressSettings = ProgressSettings()
    alertmanager: AlertmanagerSettings = AlertmanagerSettings()
    engines: EnginesSettings = EnginesSettings()
    conditions: ConditionSettings = ConditionSettings()

    def conditions_in_force(self) -> ConditionSettings:
        """Return the conditions' settings, the clock lock at those that do not set their own."""
        if self.gpu_clock_limit_hertz is None:
            return self.conditions
        locked = {}
        for name in ConditionSettings.model_fields:
            settings = getattr(self.conditions, name)
            if getattr(settings, "gpu_clock_limit_hertz", self) is None:
                locked[name] = settings.model_copy(
                    update={"gpu_clock_limit_hertz": self.gpu_clock_limit_hertz}
                )
        return self.conditions.model_copy(update=locked)

    @field_validator("listen")
    @classmethod
    def _listen(cls, value: str) -> str:
        split_address(value)
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take flags, then the environment, then the file; no dotenv, no secrets folder."""
        del env_settings, dotenv_settings, file_secret_settings
        return (
            init_settings,
            _Environment(settings_cls, cls.environment),
            _File(settings_cls, cls.file),
        )


class _Environment(EnvSettingsSource):
    """The variables it is given instead of the process's own, so that a test needs no patching."""

    def __init__(self, settings_cls: type[BaseSettings], variables: Mapping[str, str]) -> None:
        self._variables = {name.lower(): value for name, value in variables.items()}
        super().__init__(settings_cls)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return self._variables


class _File(PydanticBaseSettingsSource):
    """A parsed file as a source."""

    def __init__(self, settings_cls: type[BaseSettings], values: Mapping[str, Any]) -> None:
        super().__init__(settings_cls)
        self._values = dict(values)

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        """Return one value of the file, as the base class asks for it."""
        del field
        return self._values.get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the whole file."""
        return self._values


def split_address(value: str) -> tuple[str, int]:
    """Split ``HOST:PORT`` or ``[HOST]:PORT``.

    Raises:
        ValueError: it has no port, or the port is not 0 to 65535.
    """
    host, colon, port = value.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    number = int(port) if port.isascii() and port.isdigit() else MAXIMUM_PORT + 1
    if not colon or not host or number > MAXIMUM_PORT:
        message = f"{value!r} is not HOST:PORT with a port from 0 to 65535"
        raise ValueError(message)
    return host, number


def load(file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any]) -> Settings:
    """Read the settings.

    Args:
        file: the TOML file; ``None`` reads the default one where it exists.
        environment: the process's variables; those without our prefix are passed over.
        flags: values from the command line, by field name; ``None`` values are passed over.

    Raises:
        ConfigurationError: one line that names the setting and where it came from.
    """
    values = _read_file(file)
    place = str(file or DEFAULT_FILE)
    ours = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
    known = set(variable_names(Settings))
    groups = {name.rpartition("__")[0] for name in known} - {""}
    for name in sorted(ours):
        if name.upper() not in known:
            raise ConfigurationError(f"{name}: no such setting (environment)")
        if name.upper() in groups:
            _check_group(name, ours[name])
    given = {name: value for name, value in flags.items() if value is not None}

    class Bound(Settings):
        file = values
        environment = ours

    try:
        return Bound(**given)
    except SettingsError as error:
        raise ConfigurationError(f"environment: {error}".splitlines()[0]) from error
    except ValidationError as error:
        raise ConfigurationError(_one_line(error, values, ours, given, place)) from error


def _read_file(file: Path | None) -> dict[str, Any]:
    path = file or DEFAULT_FILE
    try:
        with path.open("rb") as stream:
            return tomllib.load(stream)
    except FileNotFoundError as error:
        if file is None:
            return {}
        raise ConfigurationError(f"{path}: no such file") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: not TOML: {error}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: not UTF-8: {error.reason}") from error
    except OSError as error:
        raise ConfigurationError(f"{path}: {(error.strerror or str(error)).lower()}") from error


def _check_group(name: str, value: str) -> None:
    """See that a variable that stands for a whole group holds a JSON object."""
    try:
        group = json.loads(value)
    except ValueError:
        group = None
    if not isinstance(group, dict):
        dotted = name[len(PREFIX) :].lower().replace("__", ".")
        raise ConfigurationError(f"{name}: {dotted}: not JSON, or no object")


def variable_names(model: type[BaseModel], prefix: str = PREFIX) -> Iterator[str]:
    """Yield the name of every environment variable the tree knows, groups included."""
    for name, field in model.model_fields.items():
        full = f"{prefix}{name.upper()}"
        yield full
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from variable_names(kind, f"{full}__")


def _one_line(
    error: ValidationError,
    file: Mapping[str, Any],
    variables: Mapping[str, str],
    flags: Mapping[str, Any],
    place: str,
) -> str:
    """Say which setting is wrong, where it stands and why, in one line."""
    first = error.errors(include_url=False)[0]
    path = [str(step) for step in first["loc"]]
    dotted = ".".join(path) or "settings"
    variable = PREFIX + "__".join(path).upper()
    source = "combination"
    if path and path[0] in flags:
        source = f"--{path[0].replace('_', '-')}"
    elif any(name.upper() in {variable, PREFIX + path[0].upper()} for name in variables if path):
        source = variable
    elif _holds(file, path):
        source = place
    reason = "no such setting" if first["type"] == "extra_forbidden" else first["msg"]
    return f"{source}: {dotted}: {reason.removeprefix('Value error, ')}".replace("\n", " ")


def _holds(values: Any, path: list[str]) -> bool:
    """Whether a parsed file holds the setting, or a group that lacks it."""
    for step in path:
        if not isinstance(values, Mapping):
            return True
        if step not in values:
            return False
        values = values[step]
    return bool(path)
