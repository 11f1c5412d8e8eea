"""Which channels can follow their messages, and how."""

from __future__ import annotations

import apprise
from apprise.plugins.discord import NotifyDiscord
from apprise.plugins.google_chat import NotifyGoogleChat
from apprise.plugins.opsgenie import NotifyOpsgenie
from apprise.plugins.pagerduty import NotifyPagerDuty
from apprise.plugins.slack import NotifySlack
from apprise.plugins.telegram import NotifyTelegram

from tailbudget.sinks.follow.base import Follow
from tailbudget.sinks.follow.discord import DiscordEdit
from tailbudget.sinks.follow.incidents import GoogleChatThread, OpsgenieAlias, PagerDutyKey
from tailbudget.sinks.follow.slack import SlackThread
from tailbudget.sinks.follow.telegram import TelegramReply


def follow_of(plugin: apprise.NotifyBase) -> Follow | None:
    """Return how a channel follows its messages; None where it cannot, or its URL says a key."""
    if isinstance(plugin, NotifyPagerDuty) and not plugin.dedup:
        return PagerDutyKey(plugin)
    if isinstance(plugin, NotifyOpsgenie) and not (plugin.alias or plugin.entity):
        return OpsgenieAlias(plugin)
    if isinstance(plugin, NotifyGoogleChat) and not plugin.thread_key:
        return GoogleChatThread(plugin)
    if isinstance(plugin, NotifySlack) and SlackThread.fits(plugin):
        return SlackThread(plugin)
    if isinstance(plugin, NotifyTelegram) and TelegramReply.fits(plugin):
        return TelegramReply(plugin)
    return DiscordEdit(plugin) if isinstance(plugin, NotifyDiscord) else None


def keeps_incidents(plugin: apprise.NotifyBase) -> bool:
    """Return whether a channel opens and closes incidents: each alert is told by itself."""
    return isinstance(plugin, NotifyPagerDuty | NotifyOpsgenie)
