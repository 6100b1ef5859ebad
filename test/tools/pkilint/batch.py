"""Runs pkilint's own command line programs many times in one process: starting Python and loading pkilint takes
half a second, a certificate ten milliseconds.

Standard input: JSON, a list of [program, argument, ...]. Standard output: JSON, in the same order, for each its
results, or {"failure": why there are none}.
"""

import contextlib
import io
import json
import sys

from pkilint.bin import lint_pkix_cert, lint_pkix_signer_signee_cert_chain

PROGRAMS = {
    "lint_pkix_cert": lint_pkix_cert.main,
    "lint_pkix_signer_signee_cert_chain": lint_pkix_signer_signee_cert_chain.main,
}


def run(program, *arguments):
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            PROGRAMS[program](["lint", "--format", "JSON", "--severity", "NOTICE", *arguments])
        return json.loads(out.getvalue())["results"]
    except (Exception, SystemExit) as failure:  # a certificate it cannot read must not hide those after it
        return {"failure": err.getvalue().strip() or repr(failure)}


json.dump([run(*job) for job in json.load(sys.stdin)], sys.stdout)
