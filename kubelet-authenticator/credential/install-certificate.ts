/** Checks the certificate that was issued, writes it to the cache, and removes what is no longer needed. */
import { pemBlocks } from '../../core/encoding/pem.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import { codeOf, removeFile, workFile, writeCredential } from '../files/cache.ts';
import { checkCredential } from '../files/check-credential.ts';
import type { Credential } from '../files/check-credential.ts';
import { removeBootstrapToken } from '../request/login.ts';
import type { Attempt } from './attempt.ts';
import { expectationOf } from './credential.ts';

/** The problem says why the certificate cannot be used. */
export function installCertificate({ spec, state }: Attempt, pem: string): Result<Credential, string> {
  const { settings, slot, wanted, provider, dependencies } = spec;
  const { now, log } = dependencies;
  const stored = { certificatePem: pemBlocks(pem, 'CERTIFICATE').join(''), keyPem: state.keyPem, issuedAt: now() };
  const checked = checkCredential(stored, expectationOf(settings, slot, dependencies, wanted.names));
  if (!checked.ok) return failure(`the certificate that was issued cannot be used: it ${checked.problem.why}`);
  const credential = checked.value;

  try {
    writeCredential(slot, stored);
  } catch (error) {
    // The key is on disk and the cluster keeps the certificate for an hour, so a later run can still fetch and write it.
    log(`the new ${slot.name} certificate is used, but could not be written: ${errorMessage(error)}`);
    return success({ ...credential, renewAt: Math.min(credential.renewAt, now() + 60_000) });
  }
  // Crash here: the work file still names the request. The next run sees that the certificate is in the cache (isFinished).
  removeFile(workFile(slot));
  // Crash here: the bootstrap token stays on disk until the next renewal removes it.
  if (slot.name === 'client' && provider.renews && settings.keepBootstrapToken !== true)
    discardBootstrapToken(settings.bootstrapCredentialsFile, log);
  log(
    `got the ${slot.name} certificate of ${settings.nodeName}, valid until ${credential.leaf.validToDate.toISOString()}`,
  );
  return checked;
}

/** The caller checks that the node renews with its certificate: otherwise the next request needs the token. */
function discardBootstrapToken(file: string, log: (line: string) => void): void {
  try {
    if (removeBootstrapToken(file)) log(`removed the bootstrap token, which is not needed any more: ${file}`);
  } catch (error) {
    log(`the bootstrap token is not needed any more, but could not be removed: ${file} (${codeOf(error)})`);
  }
}
