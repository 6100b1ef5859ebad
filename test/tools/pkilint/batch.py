"""Runs the command line programs of pkilint many times in one process.

Starting Python and loading pkilint takes half a second; linting a certificate takes ten milliseconds.

Standard input: JSON, a list of [program, argument, ...]. Standard output: JSON, a list in the same order. Each element
has the results of one program, or {"failure": reason}.
"""

import contextlib
import io
import json
import sys

from pkilint.bin import lint_crl, lint_pkix_cert, lint_pkix_signer_signee_cert_chain

PROGRAMS = {
    "lint_crl": lint_crl.main,
    "lint_pkix_cert": lint_pkix_cert.main,
    "lint_pkix_signer_signee_cert_chain": lint_pkix_signer_signee_cert_chain.main,
}


def run(program, *arguments):
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            PROGRAMS[program](["lint", "--format", "JSON", "--severity", "NOTICE", *arguments])
        return json.loads(out.getvalue())["results"]
    except (Exception, SystemExit) as failure:  # an unreadable certificate must not stop the rest of the batch
        return {"failure": err.getvalue().strip() or repr(failure)}


json.dump([run(*job) for job in json.load(sys.stdin)], sys.stdout)
