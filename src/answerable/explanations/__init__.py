"""Questions about why a model decided as it did."""
