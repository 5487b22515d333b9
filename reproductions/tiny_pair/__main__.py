"""``python -m reproductions.tiny_pair FOLDER``: train the pair."""

import sys

from reproductions.tiny_pair import main

sys.exit(main())
