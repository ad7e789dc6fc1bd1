"""The recallwatch.toml of the world under test."""

from tests.chaos.oracle import CUTOFFS, K
from tests.chaos.profiles import Profile
from tests.chaos.receiver import RUN_PAGE

SHARD_SIZE = 5
PLAIN, INDEXED = "plain", "indexed"
"""The strategies of each batch: one that scans all vectors, and one that an index serves.

The index is searched so widely that it finds what there is: the oracle knows every number of both.
The second has exact shards beside the served ones.
"""

SCHEDULE = "daily"
SCHEDULED_SET = "scheduled"

# Each run falls below the floor, so that each has an alert to post.
_TEMPLATE = """\
[queue]
lease = {profile.lease}
attempts = {profile.attempts}
deadline = {profile.deadline}

[eval]
set = "chaos"
strategies = ["{plain}", "{indexed}"]
k = {k}
cutoffs = {cutoffs}
shard_size = {shard_size}
look_depth = 10
exact_budget = 10

[embedding]
provider = "openai"
model = "chaos-embedding"
base_url = "{provider}"
timeout = 0.8
attempts = 2
max_wait = 1.0

[strategies.{plain}]
kind = "vector"
exact = true

[strategies.{indexed}]
kind = "vector"
ef_search = 1000

[gate]
floor = {{ hit = 1.0 }}
max_ineligible = 0.5

[alerts]
run_url = "{page}"

[alerts.channels.slack]
kind = "slack"
url_env = "CHAOS_SLACK_URL"
on = ["regressed", "unmeasured"]

[alerts.channels.hook]
kind = "webhook"
url_env = "CHAOS_HOOK_URL"
allow_http = true
on = ["regressed", "unmeasured"]

[[schedule]]
name = "{schedule}"
every = "1d"
grace = "2d"
set = "{scheduled}"

[log]
level = "info"
format = "json"
"""


def settings_file(profile: Profile, provider: str) -> str:
    """Return the file's text; `provider` is the base URL of the embeddings."""
    return _TEMPLATE.format(
        profile=profile, plain=PLAIN,
        indexed=INDEXED, k=K, cutoffs=list(CUTOFFS), shard_size=SHARD_SIZE,
        provider=provider, page=RUN_PAGE, schedule=SCHEDULE,
        scheduled=SCHEDULED_SET,
    )  # fmt: skip
