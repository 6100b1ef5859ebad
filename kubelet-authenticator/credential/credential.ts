/**
 * The story: what does this node present now?
 *
 *   a certificate that is good and not yet due     → that one, until it is due
 *   a certificate that is good, and due            → work on the next one for a moment; whatever comes of it, this call
 *                                                    answers in time with the best there is, and says when to ask again
 *   none                                           → work on one for as long as the caller is willing to wait
 *
 * client-go asks again only when told to, or after a 401, and lets every call of the kubelet wait meanwhile. So the first
 * case loads nothing that it does not need, and the second never waits for the third's patience.
 */
import { readCredentials, whyUnread } from '../files/cache.ts';
import type { Slot } from '../files/cache.ts';
import { checkCredential, nodeSubject, readBundle } from '../files/check-credential.ts';
import type { Credential } from '../files/check-credential.ts';
import { readOwnFile, UnsafeFileError } from '../files/own-files.ts';
import type { Settings } from '../settings/settings.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

/** What the story touches of the world besides files. */
export interface World {
  readonly now: () => number;
  /** A line for whoever reads the kubelet's log. Never a key, a token or evidence. */
  readonly say: (line: string) => void;
}

export type Answer =
  | { readonly kind: 'credential'; readonly credential: Credential; readonly askAgainAt: number }
  /** There is nothing to log in with. */
  | { readonly kind: 'none'; readonly message: string; readonly why: Exclude<Progress['kind'], 'issued'> };

/** What became of working on the next certificate. */
export type Progress =
  | { readonly kind: 'issued'; readonly credential: Credential }
  /** Another process is at it, or the cluster is: nothing is wrong. */
  | { readonly kind: 'waiting'; readonly message: string; readonly askAgainAt: number }
  /** Somebody said no. */
  | { readonly kind: 'refused'; readonly message: string; readonly askAgainAt: number }
  /** Nobody answered, or the disk does not do its part. */
  | { readonly kind: 'failed'; readonly message: string; readonly askAgainAt: number }
  /** Nothing will come of it until somebody mends what was configured. */
  | { readonly kind: 'misconfigured'; readonly message: string; readonly askAgainAt: number };

export type Work = (current: Credential | undefined, until: number) => Promise<Progress>;

/** client-go and with it the kubelet wait that long, five seconds at most, for what could as well be had later. */
export const briefMilliseconds = 3_500;

export async function presentCredential(
  settings: Settings,
  /** Loads all that is needed to ask for a certificate. */
  startWork: () => Promise<Work>,
  world: World,
  patienceMilliseconds: number,
  /** When whoever waits began to; loading a program takes its time as well. */
  started = world.now(),
): Promise<Answer> {
  const { credential } = loadCredential(settings, clientSlot(settings), world);
  if (credential !== undefined && world.now() < credential.renewAt)
    return { kind: 'credential', credential, askAgainAt: credential.renewAt };

  const until = started + (credential === undefined ? patienceMilliseconds : briefMilliseconds);
  const progress = await work(startWork, credential, until, world);
  if (progress.kind === 'issued') {
    const { renewAt } = progress.credential;
    return { kind: 'credential', credential: progress.credential, askAgainAt: notBefore(renewAt, world.now()) };
  }
  world.say(progress.message);
  if (credential === undefined || world.now() >= credential.notAfter)
    return { kind: 'none', message: progress.message, why: progress.kind };
  world.say(`the certificate in use is good until ${credential.leaf.validToDate.toISOString()} and is used meanwhile`);
  // Near its end the certificate is asked about more often, however slowly those who sign it are to be asked.
  const left = credential.notAfter - world.now();
  const askAgainAt = Math.min(progress.askAgainAt, world.now() + left / 4);
  return { kind: 'credential', credential, askAgainAt: notBefore(askAgainAt, world.now()) };
}

/** Whatever goes wrong on the way to the next certificate must not take the present one away. */
async function work(
  startWork: () => Promise<Work>,
  current: Credential | undefined,
  until: number,
  { now }: World,
): Promise<Progress> {
  try {
    const working = startWork().then((go) => go(current, until));
    return await (current === undefined ? working : Promise.race([working, timeout(until - now() + 500, now)]));
  } catch (error) {
    const message = errorMessage(error);
    const configured = error instanceof UnsafeFileError || (error instanceof Error && error.name === 'LoginError');
    const kind = configured ? 'misconfigured' : 'failed';
    return { kind, message, askAgainAt: now() + 60_000 };
  }
}

/** The work watches its own deadline; this is for a disk or a resolver that does not come back. */
function timeout(milliseconds: number, now: () => number): Promise<Progress> {
  return new Promise((resolve) => {
    setTimeout(
      () => resolve({ kind: 'waiting', message: 'still at work on the next certificate', askAgainAt: now() + 30_000 }),
      milliseconds,
    ).unref();
  });
}

/** A moment that is over would have client-go ask on every single call. */
function notBefore(moment: number, now: number): number {
  return Math.max(moment, now + 5_000);
}

export function clientSlot({ cacheDirectory }: Settings): Slot {
  return { directory: cacheDirectory, name: 'client' };
}

export interface LoadedCredential {
  readonly credential?: Credential;
  /** Of one that is not good any more: the machine is registered with it. */
  readonly oldKeyPem?: string;
}

/** The best of what the cache holds; what it cannot use it says. */
export function loadCredential(
  settings: Settings,
  slot: Slot,
  world: World,
  names: readonly string[] = [],
): LoadedCredential {
  const issuers = slot.name === 'client' ? readIssuers(settings, world) : undefined;
  const expected = {
    subject: nodeSubject(settings.nodeName),
    now: world.now(),
    ...(issuers === undefined ? {} : { issuers }),
    names,
  };
  let oldKeyPem: string | undefined;
  for (const candidate of readCredentials(slot)) {
    if ('problem' in candidate) {
      world.say(`${candidate.file} ${candidate.problem}`);
      continue;
    }
    const checked = checkCredential(candidate.stored, expected);
    if (checked.ok) return { credential: checked.credential };
    world.say(`${candidate.file} ${checked.problem}`);
    oldKeyPem ??= checked.keyPem;
  }
  return oldKeyPem === undefined ? {} : { oldKeyPem };
}

/** A bundle that cannot be read condemns no certificate: the API server will say what it thinks of it. */
export function readIssuers({ clientCaBundleFile }: Settings, { say }: Pick<World, 'say'>) {
  if (clientCaBundleFile === undefined) return undefined;
  try {
    const issuers = readBundle(readOwnFile(clientCaBundleFile));
    if (issuers.length > 0) return issuers;
    say(`${clientCaBundleFile} holds no certificate; issuers are not checked`);
  } catch (error) {
    say(`${whyUnread(clientCaBundleFile, error)}; issuers are not checked`);
  }
  return undefined;
}
