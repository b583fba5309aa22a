"""What the jobs that run machines share: subscriptions, and forecasts."""
