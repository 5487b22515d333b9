"""What can be relied on."""
