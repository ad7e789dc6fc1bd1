"""Run every benchmark with its defaults: `make bench`, or `python -m bench.run NAME ...`."""

import argparse
import subprocess
import sys

BENCHMARKS = ("scoring", "retrieval", "resampling")


def main() -> int:
    """Run the command line; return 1 when a benchmark failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.add_argument("names", nargs="*", default=BENCHMARKS, metavar="NAME",
                        help=f"default: {' '.join(BENCHMARKS)}")  # fmt: skip
    failed = 0
    for name in parser.parse_args().names:
        print(f"== bench.{name}", flush=True)
        done = subprocess.run((sys.executable, "-m", f"bench.{name}"), check=False)
        failed += done.returncode != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
