"""Plugins for a command that somebody waits for. Not here: what they bring."""

from threading import Timer

import click

from accelkit.core.registry import Registry, load_plugins

LONG_S = 3.0
"""So long a plugin may take to load without a word."""


def load_installed() -> Registry:
    """What is installed; whoever waits for a plugin that hangs is told for which."""
    waiting: list[Timer] = []

    def loading(label: str) -> None:
        for timer in waiting:
            timer.cancel()
            timer.join()  # a process with one thread tries plugins before it loads them
        waiting.clear()
        if label:
            timer = Timer(LONG_S, _say, (label,))
            timer.daemon = True
            timer.start()
            waiting.append(timer)

    return load_plugins(told=loading)


def _say(label: str) -> None:
    click.echo(f"the plugin {label} is still being loaded: if it hangs, uninstall it", err=True)
