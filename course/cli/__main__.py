"""`python -m course.cli`, which is `sluice`."""

import sys

from course.cli import main

sys.exit(main())
