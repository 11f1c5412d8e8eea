"""From the alerts topic to chat channels: nothing lost, nothing doubled, nobody kept waiting.

Follow one alert: `agent` takes it from the topic, `told` decides whether a channel is to hear of
it and says why not, `grouping` puts what belongs together into one message, `sender` sends it
within `rate` and tries again, `offsets` commits once every channel is done with it.

The topic is the durable queue: what was not taken by a channel is read again after a restart, and
`alert_notices` in ClickHouse says which channels had taken it.
"""
