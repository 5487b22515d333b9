"""Convert the weights that the example of generated-images uses; with ``example``, make its images again too."""

import sys

from reproductions.natural_images import efficientnet_ready, write_example

if "example" in sys.argv[1:]:
    write_example()
print(f"ready: {efficientnet_ready()}")
