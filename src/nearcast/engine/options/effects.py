"""Options that would change nothing in a run are refused, with the reason and what to do instead.

Values of single options are checked by `engine.options.run_options`; here it is what one option
makes of another: a strategy that makes no plan, a run that is not live, one shard that has nothing
to balance with. An option that has its default changes nothing and is never refused.
"""

from __future__ import annotations

from collections.abc import Callable

from nearcast.engine.options.run_options import DEFAULTS, LIVE, OPTIONS, RunOptions, no_effect
from nearcast.engine.options.settings import FRAME, Settings
from nearcast.engine.options.spans import AUTO, OFF
from nearcast.engine.spark.session import OURS
from nearcast.kinds.strategies import Strategy
from nearcast.routing import ROUTERS, Router
from nearcast.routing.balance import Balance


def check(options: RunOptions, way: str | None = None) -> None:
    """Refuse options that are wrong together, or have no effect; `way`: how it runs, if known."""
    check_strategies(options, Settings.of(options))
    for key in options.spark_conf:
        if key in OURS:
            raise no_effect(f"spark_conf {key}", f"{OURS[key]}; leave it out")
    if way is not None:
        check_way(options, way)


def check_way(options: RunOptions, way: str) -> None:
    """Refuse options that have no effect in this way to run."""
    for name in options.given():
        if way not in OPTIONS[name].ways:
            raise no_effect(name, OPTIONS[name].otherwise)
    # Only a replay can see in its logs how far back their asks reach.
    retain = options.retain or (OFF if way in LIVE else AUTO)
    _check_store(options, Settings.of(options), retain)


def check_strategies(options: RunOptions, settings: Settings) -> None:
    """Refuse options that have no effect with the chosen strategies."""
    chosen = settings.chosen
    if options.bounds is not None:
        _need(chosen, "bounds", "divides space into cells", lambda r: r.by_place)
    _check_store(options, settings, options.retain or AUTO)
    events = [event for strategy in chosen.values() for event in strategy.kind.events]
    if options.changes != DEFAULTS["changes"] and not any(event.sign for event in events):
        raise no_effect(
            "changes", f"no result of {', '.join(chosen)} ever loses an object; leave it out"
        )
    if options.warmup:
        _need(chosen, "warmup", "makes a plan", lambda r: r.plans)
    _check_frame(options, settings)
    _check_balance(options, chosen)


def _check_frame(options: RunOptions, settings: Settings) -> None:
    """Options for kinds, where no kind of the run reads them."""
    given = options.given()
    for name in FRAME:
        if name in given and not any(
            name in kind.frame_options for kind in settings.kinds.values()
        ):
            there = ", ".join(settings.kinds)
            raise no_effect(
                name,
                f"no kind of query of this run uses it ({there}); leave it out, or take more kinds",
            )


def _check_store(options: RunOptions, settings: Settings, retain: str) -> None:
    """A store that nothing would rest in."""
    if options.store == DEFAULTS["store"] or any(k.keeps for k in settings.kinds.values()):
        return
    if retain == OFF and not options.archive:
        raise no_effect("store", "no objects are retained; leave it out, or use retain")


def _need(
    chosen: dict[str, Strategy], name: str, what: str, able: Callable[[type[Router]], bool]
) -> None:
    """Refuse the option unless a chosen strategy can do what it is about."""
    if not any(able(s.router) for s in chosen.values()):
        now = ", ".join(f"{kind}={s.name}" for kind, s in chosen.items())
        there = [
            f"{kind}={router}"
            for kind, s in chosen.items()
            for router in s.kind.routers
            if able(ROUTERS[router])
        ]
        raise no_effect(
            name,
            f"no chosen strategy {what} ({now}); leave it out, or use one of {', '.join(there)}",
        )


def _check_balance(options: RunOptions, chosen: dict[str, Strategy]) -> None:
    """Settings of a balance that is off, of one shard, or of another mode or paper."""
    given = options.balance_settings()
    balance, usual = Balance.from_json(given), Balance()
    settings = [n for n in given if n != "mode" and getattr(balance, n) != getattr(usual, n)]
    if not balance.on:
        if settings:
            raise no_effect(f"balance {settings[0]}", "the mode is off; use auto, local or global")
        return
    if options.shards == 1:
        raise no_effect("balance", "one shard has no other; leave it out, or use more shards")
    able = [s for s in chosen.values() if s.router.balances]
    read = {n for s in able for n in s.router.balances[balance.mode]}
    for name in settings:
        if able and name not in read:
            who = ", ".join(f"{s.kind.name}={s.router.name}" for s in able)
            raise no_effect(
                f"balance {name}",
                f"with mode {balance.mode} {who} reads only {', '.join(sorted(read))}; "
                "leave it out, or use another mode or strategy",
            )
