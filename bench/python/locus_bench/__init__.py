# SPDX-License-Identifier: Apache-2.0
"""The peers beside Locus in one run: ``python -m locus.bench --help``."""
