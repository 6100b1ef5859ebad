/** Checks the certificate that was issued, writes it to the cache, and removes what is no longer needed. */
import { codeOf, removeWork, writeCredential } from '../files/cache.ts';
import { checkCredential, nodeSubject, splitPem } from '../files/check-credential.ts';
import type { Credential } from '../files/check-credential.ts';
import { removeBootstrapToken } from '../request/login.ts';
import type { Attempt } from './attempt.ts';
import { readIssuers } from './credential.ts';

type Installed =
  | { readonly kind: 'issued'; readonly credential: Credential }
  | { readonly kind: 'unusable'; readonly message: string };

export function installCertificate({ spec, state }: Attempt, pem: string): Installed {
  const { settings, slot, wanted, provider, dependencies } = spec;
  const { now, log } = dependencies;
  const stored = { certificatePem: splitPem(pem).join(''), keyPem: state.keyPem, issuedAt: now() };
  const issuers = slot.name === 'client' ? readIssuers(settings, dependencies) : undefined;
  const checked = checkCredential(stored, {
    subject: nodeSubject(settings.nodeName),
    now: now(),
    ...(issuers === undefined ? {} : { issuers }),
    names: [...wanted.names.ip, ...wanted.names.dns],
  });
  if (!checked.ok)
    return { kind: 'unusable', message: `the certificate that was issued cannot be used: it ${checked.problem}` };
  const { credential } = checked;

  try {
    writeCredential(slot, stored);
  } catch (error) {
    // The key is on disk and the cluster keeps the certificate for an hour, so a later run can still fetch and write it.
    const why = error instanceof Error ? error.message : codeOf(error);
    log(`the new ${slot.name} certificate is used, but could not be written: ${why}`);
    return { kind: 'issued', credential: { ...credential, renewAt: Math.min(credential.renewAt, now() + 60_000) } };
  }
  // Crash here: the work file still names the request. The next run sees that the certificate is in the cache (isFinished).
  removeWork(slot);
  // Crash here: the bootstrap token stays on disk until the next renewal removes it.
  if (slot.name === 'client' && provider.renews && settings.keepBootstrapToken !== true)
    discardBootstrapToken(settings.bootstrapCredentialsFile, log);
  log(
    `got the ${slot.name} certificate of ${settings.nodeName}, valid until ${credential.leaf.validToDate.toISOString()}`,
  );
  return { kind: 'issued', credential };
}

/** Only where the node renews with its certificate: otherwise the next request needs the same token. */
function discardBootstrapToken(file: string, log: (line: string) => void): void {
  try {
    if (removeBootstrapToken(file)) log(`removed the bootstrap token, which is not needed any more: ${file}`);
  } catch (error) {
    log(`the bootstrap token is not needed any more, but could not be removed: ${file} (${codeOf(error)})`);
  }
}
