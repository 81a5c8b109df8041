"""What is published: values and their certificate; how both are verified and shown."""

from spdp.release.files import CERTIFICATE, REPORT, MissingArray
from spdp.release.release import Release

__all__ = ["CERTIFICATE", "REPORT", "MissingArray", "Release"]
