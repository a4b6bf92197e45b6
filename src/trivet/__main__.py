"""What does `python -m trivet` do? The same as `trivet`."""

import trivet.surfaces.cli

trivet.surfaces.cli.main()
