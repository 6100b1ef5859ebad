"""Validates a CycloneDX document of version 1.6, given on standard input. Prints what is wrong with it, or nothing."""

import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read())
if problem is not None:
    print(problem)
