-- What a channel gave for a message, so that news of it edits it or stands in its thread.
ALTER TABLE alert_notices
    ADD COLUMN IF NOT EXISTS handle String COMMENT 'what the channel gave for the message, to follow it';
