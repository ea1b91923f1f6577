"""``python -m spark_watch``."""

import sys

from spark_watch.cli import main

if __name__ == "__main__":
    sys.exit(main())
