"""The channel to Slack, and to servers that take its messages, through an incoming webhook.

Slack tells no repetition apart: what may have arrived is not sent again.
"""

import json
from dataclasses import dataclass
from typing import ClassVar

from pydantic import SecretStr

from pipeline.alerts import http
from pipeline.alerts.base import Delivery
from pipeline.alerts.message import Alert
from pipeline.alerts.slack_message import slack_message


@dataclass(frozen=True, slots=True)
class SlackChannel:
    """Posts to one incoming webhook; `url` has passed `check_slack_url`; `timeout` in seconds."""

    name: str
    url: SecretStr
    timeout: float = http.TIMEOUT
    may_repeat: ClassVar[bool] = False

    def deliver(self, alert: Alert) -> Delivery:
        """Post the alert once."""
        body = json.dumps(slack_message(alert)).encode()
        return http.post(self.url, body, {}, timeout=self.timeout)
