"""Convert the weights that the example of generated-images uses.

With ``example``, make its images again too; with ``settings``, print RIGID's AUROC under settings that were left open.
"""

import sys

from reproductions.natural_images import efficientnet_ready, write_example

if "example" in sys.argv[1:]:
    write_example()
print(f"ready: {efficientnet_ready()}")
if "settings" in sys.argv[1:]:
    from reproductions.natural_images.settings import areas

    for what, area in areas():
        print(f"{what:42s} {area.value:.3f}  {area.low:.3f} to {area.high:.3f}", flush=True)
