# SPDX-License-Identifier: Apache-2.0
"""Do the package, the extension module and the library inside it belong together?"""

from importlib import metadata

from ._errors import Status


def installed_version():
    """The version of the installed distribution; None where the package lies in a source tree."""
    try:
        return metadata.version("locus-attention")
    except metadata.PackageNotFoundError:
        return None


def check(abi, package):
    """Refuse a mixture of versions, which would otherwise show as wrong numbers or a crash."""
    header = ".".join(str(part) for part in abi["header_version"])
    if abi["library_version"] != header:
        raise ImportError(
            f"locus._native: found library {abi['library_version']}, expected {header} (its headers)"
        )
    if package is not None and package != header:
        raise ImportError(
            f"locus._native: found version {header}, expected {package} (the package); install it again"
        )
    if abi["statuses"] != len(Status):
        raise ImportError(
            f"locus._native: found {abi['statuses']} statuses, expected {len(Status)}; install it again"
        )
