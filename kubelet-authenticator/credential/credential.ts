/**
 * Which client certificate does this node present now?
 *
 *   valid, before its renewal moment   → the cached one, until that moment
 *   valid, renewal due                 → try to obtain the next one for a few seconds, then answer with the newest certificate
 *                                        and the time of the next try
 *   no valid certificate               → try to obtain one for as long as the caller is willing to wait
 *
 * client-go calls the plugin again only at the expirationTimestamp of the last answer or after a 401, and blocks every
 * request of the kubelet during the call. So the first case loads no module that it does not need, and the second is short.
 */
import { readCredentials, whyUnread } from '../files/cache.ts';
import type { Slot } from '../files/cache.ts';
import { checkCredential, nodeSubject, noNames, readBundle } from '../files/check-credential.ts';
import type { Credential, Expectation, Names, Unusable } from '../files/check-credential.ts';
import { readOwnFile, UnsafeFileError } from '../files/own-files.ts';
import type { Settings } from '../settings/settings.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';
import { failure } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';

/** The clock and the log. Files are accessed directly. */
export interface Dependencies {
  readonly now: () => number;
  /** A line for the kubelet's log. Never a key, a token or evidence. */
  readonly log: (line: string) => void;
}

/** How an attempt to obtain the next certificate ended. */
export type Progress = { readonly kind: 'issued'; readonly credential: Credential } | NotIssued;

export interface NotIssued {
  readonly kind:
    | 'waiting' // another process holds the lock, or the request is not decided yet
    | 'refused' // by the API server, an approver or the signer
    | 'failed' // a temporary fault: no answer, or a disk error
    | 'misconfigured'; // the operator must correct the configuration first
  readonly message: string;
  readonly askAgainAt: number;
}

/** NotIssued: the node has no certificate to log in with. */
type Answer = { readonly kind: 'credential'; readonly credential: Credential; readonly askAgainAt: number } | NotIssued;

export type Work = (current: Credential | undefined, until: number) => Promise<Progress>;

/** A renewal blocks client-go, and with it the kubelet, for at most this long. The whole call stays below five seconds. */
const briefMilliseconds = 3_500;

export async function presentCredential(
  settings: Settings,
  /** Loads the modules that it needs only when it is called. */
  obtainNext: Work,
  dependencies: Dependencies,
  patienceMilliseconds: number,
  /** When the caller began to wait, which includes the start of this program. */
  started = dependencies.now(),
): Promise<Answer> {
  const { credential } = loadCredential(settings, clientSlot(settings), dependencies);
  if (credential !== undefined && dependencies.now() < credential.renewAt)
    return { kind: 'credential', credential, askAgainAt: credential.renewAt };

  const until = started + (credential === undefined ? patienceMilliseconds : briefMilliseconds);
  const progress = await tryToObtain(obtainNext, credential, until, dependencies);
  if (progress.kind === 'issued') {
    const { renewAt } = progress.credential;
    return { kind: 'credential', credential: progress.credential, askAgainAt: notInPast(renewAt, dependencies.now()) };
  }
  dependencies.log(progress.message);
  if (credential === undefined || dependencies.now() >= credential.notAfter) return progress;
  dependencies.log(
    `the certificate in use is valid until ${credential.leaf.validToDate.toISOString()} and is used meanwhile`,
  );
  // Try at least every quarter of the remaining lifetime, even if the backoff after a refusal is longer.
  const left = credential.notAfter - dependencies.now();
  const askAgainAt = Math.min(progress.askAgainAt, dependencies.now() + left / 4);
  return { kind: 'credential', credential, askAgainAt: notInPast(askAgainAt, dependencies.now()) };
}

/** An error while the next certificate is obtained must not prevent the use of the present one. */
async function tryToObtain(
  obtainNext: Work,
  current: Credential | undefined,
  until: number,
  { now }: Dependencies,
): Promise<Progress> {
  try {
    const obtaining = obtainNext(current, until);
    return await (current === undefined ? obtaining : Promise.race([obtaining, timeout(until - now() + 500, now)]));
  } catch (error) {
    const message = errorMessage(error);
    const configured = error instanceof UnsafeFileError || (error instanceof Error && error.name === 'LoginError');
    const kind = configured ? 'misconfigured' : 'failed';
    return { kind, message, askAgainAt: now() + 60_000 };
  }
}

/** obtain() keeps its own deadline. This one covers calls without a timeout: a disk or a resolver that hangs. */
function timeout(milliseconds: number, now: () => number): Promise<Progress> {
  return new Promise((resolve) => {
    setTimeout(
      () =>
        resolve({
          kind: 'waiting',
          message: 'the request for the next certificate is still in progress',
          askAgainAt: now() + 30_000,
        }),
      milliseconds,
    ).unref();
  });
}

/** Returns a moment at least five seconds ahead: with a moment in the past client-go would call the plugin for every request. */
function notInPast(moment: number, now: number): number {
  return Math.max(moment, now + 5_000);
}

export function clientSlot({ cacheDirectory }: Settings): Slot {
  return { directory: cacheDirectory, name: 'client' };
}

export interface LoadedCredential {
  readonly credential?: Credential;
  /** The key of a certificate that is not valid any more. The machine is registered with it. */
  readonly oldKeyPem?: string | undefined;
}

/** The first usable certificate of the cache. Problems with the others are logged. */
export function loadCredential(
  settings: Settings,
  slot: Slot,
  dependencies: Dependencies,
  names = noNames,
): LoadedCredential {
  const expected = expectationOf(settings, slot, dependencies, names);
  let oldKeyPem: string | undefined;
  for (const { file, ...read } of readCredentials(slot)) {
    const checked: Result<Credential, Unusable> = read.ok
      ? checkCredential(read.value, expected)
      : failure({ why: read.problem });
    if (checked.ok) return { credential: checked.value };
    dependencies.log(`${file} ${checked.problem.why}`);
    oldKeyPem ??= checked.problem.keyPem;
  }
  return { oldKeyPem };
}

/** What a usable certificate of this slot must have now. */
export function expectationOf(settings: Settings, slot: Slot, dependencies: Dependencies, names: Names): Expectation {
  const issuers = slot.name === 'client' ? readIssuers(settings, dependencies) : undefined;
  return { subject: nodeSubject(settings.nodeName), now: dependencies.now(), issuers, names };
}

/** If the bundle cannot be read, certificates are not checked against it: the API server rejects a wrong one anyway. */
function readIssuers({ clientCaBundleFile }: Settings, { log }: Dependencies) {
  if (clientCaBundleFile === undefined) return undefined;
  try {
    const issuers = readBundle(readOwnFile(clientCaBundleFile));
    if (issuers.length > 0) return issuers;
    log(`${clientCaBundleFile} holds no certificate; issuers are not checked`);
  } catch (error) {
    log(`${whyUnread(clientCaBundleFile, error)}; issuers are not checked`);
  }
  return undefined;
}
