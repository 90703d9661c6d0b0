"""Where text comes from: local files, the Hub, WikiText, the documentation in this environment."""
