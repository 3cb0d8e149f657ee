"""Entry point of `python -m drillrank`."""

import sys

from drillrank.cli import main

if __name__ == "__main__":
    sys.exit(main())
