"""What the command line takes, and the commands that only read results."""
