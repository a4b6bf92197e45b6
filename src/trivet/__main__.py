"""Run the command line: `python -m trivet` is the same as `trivet`."""

import trivet.cli

trivet.cli.main()
