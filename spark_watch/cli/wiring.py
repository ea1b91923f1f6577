"""From settings and a source's name to a running daemon."""

from __future__ import annotations

import argparse
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from spark_watch.blackbox.trace import TraceHeader
from spark_watch.cli.common import note, with_probe
from spark_watch.daemon import log as logs
from spark_watch.daemon.daily import DailyPreflight
from spark_watch.daemon.loop import Daemon, Sink
from spark_watch.daemon.memory_lock import keep_one_heap, lock_memory
from spark_watch.daemon.notify import Notifier
from spark_watch.daemon.recorder import BlackBox
from spark_watch.daemon.replay import OWN_RECORDER, judge_for
from spark_watch.daemon.warm_up import warm_up
from spark_watch.detectors.catalogue import conditions
from spark_watch.detectors.g3_memory.danger import DangerMode
from spark_watch.detectors.judge import Judge
from spark_watch.errors import ConfigurationError, InputError, UsageError
from spark_watch.export.page import Page
from spark_watch.export.server import Server
from spark_watch.export.snapshot import Snapshot
from spark_watch.model import Machine, Sample
from spark_watch.preflight.report import Report
from spark_watch.settings.blackbox import state_directory
from spark_watch.settings.progress import socket_path
from spark_watch.settings.tree import Settings, load, split_address
from spark_watch.sources.feed import Feed, Played

DEMO_SPEED: Final = 30.0
DEMO_INTERVAL_SECONDS: Final = 0.25
"""Real seconds between two samples of the demonstration: its slow stretches are watched closely."""

LOOK_INTERVAL_SECONDS: Final = 1.0
"""A short look takes a sample at least this often, however seldom the daemon does."""

LIVE: Final = "live"
"""The source that is this machine."""

MOST_RECALLED_SECONDS: Final = 900.0
"""More of the last run than this is not judged again at a start, which must stay short."""

FIXED_AT_START: Final = (
    "listen",
    "interval_seconds",
    "state_dir",
    "lock_memory",
    "instance",
    "job",
    "alertmanager",
    "blackbox",
    "proc_root",
    "sys_root",
    "kmsg_path",
    "progress",
    "engines",
)
"""Settings that a reload cannot change: the sources and the port stand once the loop runs."""


def feed_for(
    settings: Settings, source: str, speed: float | None, *, reports_to: Path | None = None
) -> tuple[Feed, TraceHeader]:
    """Return what a source's name stands for, and the header its recording would have.

    Args:
        settings: everything that is set.
        source: ``live``, ``simulate:NAME`` or ``replay:FILE``.
        speed: seconds of what is played that pass in a real second.
        reports_to: the socket to listen on for workloads, of the live source alone: a short look
            leaves it to the daemon.

    Raises:
        UsageError: no such source, or a speed that makes no sense for it.
        InputError: the recording cannot be read.
    """
    kind, _, name = source.partition(":")
    if speed is not None and not 0.01 <= speed <= 1000.0:  # noqa: PLR2004 - said in the message
        raise UsageError(f"--speed {speed:g}: must be 0.01 to 1000")
    if source == LIVE:
        if speed is not None:
            raise UsageError("--speed is for simulations and recordings; live time has its own")
        return _live(settings, reports_to)
    if kind == "simulate" and name:
        return _simulated(name, settings, speed)
    if kind == "replay" and name:
        return _recorded(Path(name), speed or 1.0)
    raise UsageError(f"--source {source}: must be live, simulate:NAME or replay:FILE")


def _live(settings: Settings, reports_to: Path | None) -> tuple[Feed, TraceHeader]:
    from spark_watch.sources.live import LiveFeed, memory_total  # noqa: PLC0415 - loads NVML
    from spark_watch.sources.mailbox import Mailbox  # noqa: PLC0415 - see above
    from spark_watch.sources.nvml import NvmlSource  # noqa: PLC0415 - see above

    mailbox = None
    if reports_to is not None:
        mailbox = Mailbox(
            path=reports_to, group=settings.progress.group, proc_root=settings.proc_root
        )
    total = memory_total(settings.proc_root)
    feed = LiveFeed(
        interval_seconds=settings.interval_seconds,
        proc_root=settings.proc_root,
        sys_root=settings.sys_root,
        kmsg_path=settings.kmsg_path,
        nvml=NvmlSource(period_seconds=settings.interval_seconds, memory_total_bytes=total),
        mailbox=mailbox,
        engines=settings.engines.discover,
        engine_urls=settings.engines.urls,
        engine_seconds=settings.engines.period_seconds,
    )
    return feed, TraceHeader(
        interval_seconds=settings.interval_seconds,
        machine=Machine(memory_total_bytes=total),
        origin="recorded by spark-watch",
        recorder=OWN_RECORDER,
    )


def _simulated(name: str, settings: Settings, speed: float | None) -> tuple[Feed, TraceHeader]:
    from spark_watch.sources.simulated import (  # noqa: PLC0415 - not loaded by the daemon
        DemoSource,
        SimulatedSource,
    )

    samples: Iterator[Sample]
    if name == "demo":
        demo = DemoSource(speed=speed or DEMO_SPEED)
        samples = _by_the_clock(demo.read)
        interval, pace, real = DEMO_INTERVAL_SECONDS, 1.0, 1.0
    else:
        interval = real = settings.interval_seconds
        simulated = SimulatedSource(name, interval_seconds=interval)
        samples = _by_the_grid(simulated.read, interval)
        pace = speed or 1.0
    feed = Played(
        samples,
        origin=f"simulate:{name}",
        interval_seconds=interval,
        speed=pace,
        own_recording=True,
    )
    return feed, TraceHeader(
        interval_seconds=real, origin=f"simulated: {name}", recorder=OWN_RECORDER
    )


def _recorded(path: Path, speed: float) -> tuple[Feed, TraceHeader]:
    from spark_watch.sources.recorded import open_recording  # noqa: PLC0415 - not for the daemon

    recording = open_recording(path)
    for line in recording.notes:
        note(f"{path}: {line}")
    header = recording.header
    feed = Played(
        iter(recording),
        origin=f"replay:{path.name}",
        interval_seconds=header.interval_seconds,
        speed=speed,
        own_recording=header.recorder == OWN_RECORDER,
        machine=header.machine,
    )
    return feed, header


def _by_the_clock(read: Callable[[float], Sample]) -> Iterator[Sample]:
    while True:
        yield read(time.time())


def _by_the_grid(read: Callable[[float], Sample], step: float) -> Iterator[Sample]:
    now = time.time()
    while True:
        yield read(now)
        now += step


def daemon_for(
    settings: Settings,
    source: str,
    *,
    environment: Mapping[str, str],
    speed: float | None = None,
    publish: Callable[[Snapshot], None] | None = None,
    sink_for: Callable[[TraceHeader], Sink] | None = None,
    sinks: Sequence[Sink] = (),
    reload: Callable[[], Judge | None] | None = None,
    max_ticks: int | None = None,
    log: Any = None,
    memory_locked: bool | None = None,
    reports_to: Path | None = None,
) -> Daemon:
    """Return a daemon that is ready to run.

    A sink that is a black box also tells the judge what it holds of earlier runs.

    Raises:
        UsageError, InputError: see :func:`feed_for`.
    """
    feed, header = feed_for(settings, source, speed, reports_to=reports_to)
    sink = sink_for(header) if sink_for is not None else None
    black_box = sink if isinstance(sink, BlackBox) else None
    return Daemon(
        feed=feed,
        judge=judge_for(header, settings.conditions_in_force()),
        danger=DangerMode(settings.conditions.memory_collapse),
        publish=publish if publish is not None else _unseen,
        log=log if log is not None else _Silent(),
        notifier=Notifier(environment),
        sinks=[*sinks] if sink is None else [sink, *sinks],
        reload=reload,
        recall=None if black_box is None else black_box.recall,
        recorder=None if black_box is None else lambda: black_box.status,
        memory_locked=memory_locked,
        max_ticks=max_ticks,
    )


def _unseen(snapshot: Snapshot) -> None:
    """Take a snapshot that nobody looks at."""


class _Silent:
    """A log for commands whose output is their answer."""

    def _drop(self, event: str, **values: object) -> None:
        """Say nothing."""

    debug = info = warning = error = _drop


def serve(
    settings: Settings, options: argparse.Namespace, *, environment: Mapping[str, str]
) -> None:
    """Run the daemon with its page until a signal ends it.

    Raises:
        OutputError: the port is in use, or may not be bound.
        UsageError, InputError: see :func:`feed_for`.
    """
    live = options.source == LIVE
    keep_one_heap()
    logger, lines = logs.configure()
    page = Page()
    host, port = split_address(settings.listen)
    server = Server(page, host=host, port=port)
    current = settings
    daily = _daily(settings, environment, logger) if live else None
    try:

        def reload() -> Judge | None:
            nonlocal current
            try:
                new = with_probe(
                    load(options.config, environment, {"listen": options.listen}), environment
                )
            except ConfigurationError as error:
                logger.warning("reload_refused", error=str(error))
                return None
            for name in FIXED_AT_START:
                if getattr(new, name) != getattr(settings, name):
                    logger.warning("reload_needs_restart", setting=name)
            same = new.conditions_in_force() == current.conditions_in_force()
            current = new
            logger.info("reloaded", conditions_changed=not same)
            if same:
                return daemon.judge
            daemon.danger_mode = DangerMode(new.conditions.memory_collapse)
            return daemon.judge.renewed(conditions(new.conditions_in_force()))

        def black_box(header: TraceHeader) -> BlackBox:
            return _black_box(settings, header, environment, logger, lambda: daemon.judge)

        def publish(snapshot: Snapshot) -> None:
            page.publish(snapshot if daily is None else daily.add_to(snapshot))
            # Who asked before waits for this: no scrape is answered without the series in it.
            server.start()

        daemon = daemon_for(
            settings,
            options.source,
            environment=environment,
            speed=options.speed,
            publish=publish,
            # A played source is no past of this machine: it is kept only where a place is named.
            sink_for=black_box if live or settings.state_dir is not None else None,
            sinks=_alert_push(settings, logger),
            reload=reload,
            log=logger,
            reports_to=socket_path(settings.progress, environment, is_root=os.geteuid() == 0),
            memory_locked=_locked(settings, logger) if live and settings.lock_memory else None,
        )
        if daily is not None:
            daily.start()
        logger.info("listening", url=server.url)
        daemon.run()
    finally:
        if daily is not None:
            daily.close()
        server.close()
        lines.close()


def _daily(settings: Settings, environment: Mapping[str, str], log: Any) -> DailyPreflight:
    """Return the daily look before a run, of those checks that run nobody's code."""
    from spark_watch.preflight.checks import report  # noqa: PLC0415 - of the live source alone
    from spark_watch.preflight.gather import Request, gather_beside  # noqa: PLC0415 - see above

    request = Request(
        variables=environment,
        conditions=settings.conditions_in_force(),
        recordings=(state_directory(settings.state_dir, environment, is_root=os.geteuid() == 0),),
        foreign=False,
        proc_root=settings.proc_root,
        sys_root=settings.sys_root,
    )

    def look(snapshot: Snapshot) -> Report:
        machine = snapshot.machine or Machine()
        return report(gather_beside(request, snapshot.latest, snapshot.identities, machine))

    return DailyPreflight(look, log=log)


def _black_box(
    settings: Settings,
    header: TraceHeader,
    environment: Mapping[str, str],
    log: Any,
    judge: Callable[[], Judge],
) -> BlackBox:
    restart = settings.conditions.unclean_reboot
    return BlackBox(
        state_directory(settings.state_dir, environment, is_root=os.geteuid() == 0),
        header,
        max_bytes=settings.blackbox.max_bytes,
        log=log,
        judge=judge,
        kmsg_path=settings.kmsg_path,
        tail_seconds=min(restart.precursor_seconds, MOST_RECALLED_SECONDS),
        back_seconds=restart.stand_seconds,
    )


def _alert_push(settings: Settings, log: Any) -> list[Sink]:
    """Return the way to Alertmanager, where one is named."""
    url = settings.alertmanager.url
    if url is None:
        return []
    from spark_watch.export.alert_push import AlertPush  # noqa: PLC0415 - loads an HTTP client

    port = split_address(settings.listen)[1]
    labels = {
        **settings.alertmanager.labels,
        "instance": settings.instance or f"{socket.gethostname()}:{port}",
        "job": settings.job,
    }
    return [AlertPush(url, labels=labels, log=log)]


def _locked(settings: Settings, log: Any) -> bool:
    """Keep the process in memory, with the danger path walked once; say why where it cannot be."""
    warm_up(settings.conditions_in_force())
    done = lock_memory()
    if not done.locked:
        log.info("memory_not_locked", reason=done.reason)
    return done.locked


def look(
    settings: Settings, source: str, seconds: float, *, environment: Mapping[str, str]
) -> Snapshot:
    """Watch for a few seconds and return the last picture.

    Raises:
        UsageError: the time makes no sense, or see :func:`feed_for`.
        InputError: the source had no sample at all.
    """
    if not 0.5 <= seconds <= 3600.0:  # noqa: PLR2004 - said in the message
        raise UsageError(f"--seconds {seconds:g}: must be 0.5 to 3600")
    seen: list[Snapshot] = []
    interval = min(settings.interval_seconds, LOOK_INTERVAL_SECONDS)
    settings = settings.model_copy(update={"interval_seconds": interval})
    daemon = daemon_for(
        settings,
        source,
        environment={name: value for name, value in environment.items() if name != "NOTIFY_SOCKET"},
        publish=lambda snapshot: seen.__setitem__(slice(None), [snapshot]),
        max_ticks=max(1, round(seconds / interval)) + 1,
    )
    daemon.run()
    if not seen:
        raise InputError(f"{source}: no sample in it")
    return seen[-1]
