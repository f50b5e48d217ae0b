"""The sub-commands of the base install. Everything heavy is imported when a command runs."""
