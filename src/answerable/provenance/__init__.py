"""Questions about where a model, a text, an image or a data set came from."""
