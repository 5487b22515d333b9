"""The papers' own figures beside ours."""
