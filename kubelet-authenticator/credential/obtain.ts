/**
 * Obtains one certificate: key → request with evidence → decision → certificate in the cache.
 *
 * Each step is on disk before the next one has an effect, so a process that dies at any point is resumed by the next run:
 * the key before it is sent, the request before it is created in the cluster, the certificate before the request is forgotten.
 * When the time is over, the request stays in the cluster and a later run collects its certificate.
 */
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';
import { CacheWriteError, makeDirectory, tidy } from '../files/cache.ts';
import type { Credential } from '../files/check-credential.ts';
import { takeLock } from '../files/lock.ts';
import { ChallengeRefusedError } from '../providers/provider.ts';
import { LoginError } from '../request/login.ts';
import { makeRequest } from '../request/request.ts';
import { fallBackToBootstrap, startAttempt, update } from './attempt.ts';
import type { Attempt } from './attempt.ts';
import type { CertificateSpec } from './certificate-spec.ts';
import { loadCredential } from './credential.ts';
import type { Progress } from './credential.ts';
import { decisionOn, resourceVersionIn } from './decision.ts';
import type { Decision } from './decision.ts';
import { installCertificate } from './install-certificate.ts';
import { maxRetries, nextTry, versionOf, waitAfter } from './next-try.ts';
import { submitRequest } from './submit-request.ts';
import type { PendingRequest } from './work.ts';

const minute = 60_000;
const hour = 60 * minute;

export async function obtain(spec: CertificateSpec, current: Credential | undefined, until: number): Promise<Progress> {
  const { settings, slot, wanted, provider, dependencies } = spec;
  const { now } = dependencies;
  makeDirectory(slot);
  // If the current certificate is still valid, do not wait for the lock.
  const lock = await takeLock(slot, now, current === undefined ? until : 0);
  if (lock === undefined) {
    const message = `another process is requesting the ${slot.name} certificate`;
    return { kind: 'waiting', message, askAgainAt: now() + 5_000 };
  }
  try {
    tidy(slot);
    // The process that held the lock may have finished. Problems in the cache were logged before the wait.
    const silent = { ...dependencies, log: () => {} };
    const cached = loadCredential(settings, slot, silent, wanted.names);
    if (cached.credential !== undefined && now() < cached.credential.renewAt)
      return { kind: 'issued', credential: cached.credential };
    const login = slot.name === 'client' ? cached.credential : spec.login;
    const attempt = await startAttempt(spec, cached, provider.renews ? login : undefined);
    try {
      return await runAttempt(attempt, until);
    } finally {
      attempt.cluster.close();
    }
  } finally {
    lock.release();
  }
}

async function runAttempt(attempt: Attempt, until: number): Promise<Progress> {
  const { backoff } = attempt.state;
  if (backoff !== undefined && attempt.spec.dependencies.now() < backoff.until) {
    const message = `${backoff.message}; next request at ${new Date(backoff.until).toISOString()}`;
    return { kind: 'refused', message, askAgainAt: backoff.until };
  }
  attempt.state = { ...attempt.state, backoff: undefined };
  for (;;) {
    const progress = await retryFaults(attempt, until, () => tryOnce(attempt, until));
    if (progress !== 'again') return progress;
  }
}

/** One request from its creation to its decision. `again`: the state is prepared for another one. */
async function tryOnce(attempt: Attempt, until: number): Promise<Progress | 'again'> {
  const resumed = attempt.state.request !== undefined;
  const prepared = attempt.state.request ?? (await prepareRequest(attempt));
  // Crash here: the next run finds the request in the work file and creates the same object, under the same name.
  const submitted = await submitRequest(attempt, prepared, resumed, until);
  switch (submitted.kind) {
    case 'lost':
      return replaceLostRequest(attempt, prepared);
    case 'loginRefused':
      return loginRefused(attempt, submitted.message);
    case 'invalid':
      return backOff(attempt, submitted.message);
    case 'created':
  }
  // Crash from here on: the request stays in the cluster, and the next run reads its decision.
  const { request } = submitted;
  const answer = await awaitDecision(attempt, request, submitted.object, until);
  if (answer === 'stale') return replaceStaleRequest(attempt, request);
  const { object, decision } = answer;
  switch (decision.kind) {
    case 'certificate': {
      const installed = installCertificate(attempt, decision.pem);
      return installed.ok ? { kind: 'issued', credential: installed.value } : backOff(attempt, installed.problem);
    }
    case 'undecided':
      return stillUndecided(attempt, request, decision.approved);
    case 'no':
      return afterRefusal(attempt, request, object, decision);
  }
}

/** Makes a request with fresh evidence, and writes it to disk. */
async function prepareRequest(attempt: Attempt): Promise<PendingRequest> {
  const { spec, state } = attempt;
  const now = spec.dependencies.now();
  const challenge = state.challenge !== undefined && now < state.challenge.until ? state.challenge : undefined;
  const how = { version: versionOf(attempt), challenge, refused: state.refusals > 0, now };
  const made = await makeRequest(spec.settings, spec.wanted, state.keyPem, spec.provider, how).catch(
    (error: unknown) => {
      // Without an answer the next request gets another challenge.
      if (error instanceof ChallengeRefusedError) update(attempt, { challenge: undefined });
      throw error;
    },
  );
  const request = { ...made, createdAt: spec.dependencies.now() };
  update(attempt, { request });
  return request;
}

/** Reads the object until it is decided, its evidence is too old (`stale`), or `until`. */
async function awaitDecision(
  { spec, state, cluster }: Attempt,
  request: PendingRequest,
  first: JsonObject,
  until: number,
): Promise<{ readonly object: JsonObject; readonly decision: Decision } | 'stale'> {
  const { now } = spec.dependencies;
  let object = first;
  for (;;) {
    const decision = decisionOn(object);
    if (decision.kind !== 'undecided') return { object, decision };
    const replaceAt = decision.approved ? Infinity : replacementTime(request, state.unanswered);
    if (now() >= replaceAt) return 'stale';
    if (now() >= until) return { object, decision };
    await cluster.change(request.name, resourceVersionIn(object), Math.min(until, replaceAt));
    const answer = await cluster.get(request.name, until + 1_000);
    if (answer.ok) object = answer.value;
    else if (answer.problem.why === 'NotFound') return 'stale';
    else throw new Error(answer.problem.message);
  }
}

/**
 * An approver refuses evidence that is too old, so an undecided request is replaced when its evidence expires. A requester
 * cannot withdraw a request: if no approver answers at all, each request stays twice as long as the one before it.
 */
function replacementTime({ createdAt, staleAt }: PendingRequest, unanswered: number): number {
  return createdAt + Math.max(staleAt - createdAt, Math.min(hour, (staleAt - createdAt) * 2 ** unanswered));
}

function replaceLostRequest(attempt: Attempt, { name }: PendingRequest): Progress | 'again' {
  const retries = attempt.state.retries + 1;
  update(attempt, { request: undefined, retries });
  return retries > maxRetries ? backOff(attempt, `request ${name} does not stay in the cluster`) : 'again';
}

function replaceStaleRequest(attempt: Attempt, { name }: PendingRequest): 'again' {
  update(attempt, { request: undefined, unanswered: attempt.state.unanswered + 1 });
  attempt.spec.dependencies.log(`request ${name} was not decided in time; sending another with fresh evidence`);
  return 'again';
}

/** If the API server does not accept the client certificate, the node tries once more with its bootstrap credentials. */
async function loginRefused(attempt: Attempt, message: string): Promise<Progress | 'again'> {
  const { slot, dependencies } = attempt.spec;
  if (attempt.login.as !== 'node' || slot.name !== 'client')
    return { kind: 'refused', message, askAgainAt: dependencies.now() + minute };
  dependencies.log(message);
  await fallBackToBootstrap(attempt);
  return 'again';
}

function stillUndecided({ spec }: Attempt, { name, createdAt }: PendingRequest, approved: boolean): Progress {
  const now = spec.dependencies.now();
  return {
    kind: 'waiting',
    message: `request ${name} ${approved ? 'is approved and waits for its certificate' : 'waits for its approval'}`,
    askAgainAt: now + Math.min(10 * minute, Math.max(minute / 2, (now - createdAt) / 4)),
  };
}

function afterRefusal(
  attempt: Attempt,
  { name }: PendingRequest,
  object: JsonObject,
  { type, reason, message: why }: Decision & { readonly kind: 'no' },
): Progress | 'again' {
  const message = `request ${name} was ${type === 'Denied' ? 'denied' : 'refused'} (${reason}): ${why}`;
  const change = nextTry(attempt, reason, object);
  if (change === undefined) return backOff(attempt, message, reason);
  // Each challenge is answered once.
  const { retries } = attempt.state;
  update(attempt, { request: undefined, challenge: undefined, retries: retries + 1, ...change });
  attempt.spec.dependencies.log(`${message}; sending another request`);
  return 'again';
}

/** The time of the next request is on disk, since the kubelet calls the plugin again at once. */
function backOff(attempt: Attempt, message: string, reason?: string): Progress {
  const refusals = attempt.state.refusals + 1;
  const until = attempt.spec.dependencies.now() + waitAfter(reason, refusals);
  const fresh = { request: undefined, challenge: undefined, retries: 0, challenges: 0 };
  update(attempt, { ...fresh, refusals, backoff: { until, message } });
  return { kind: 'refused', message, askAgainAt: until };
}

/** `work` throws temporary faults. It is retried every second; a fault is logged if it differs from the last one. */
async function retryFaults<T>(attempt: Attempt, until: number, work: () => Promise<T>): Promise<T> {
  const { now, log } = attempt.spec.dependencies;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const isPermanent = error instanceof CacheWriteError || error instanceof LoginError;
      if (isPermanent || now() + 2_000 >= until) throw error;
      const why = errorMessage(error);
      if (why !== attempt.lastFault) log(`trying again: ${why}`);
      attempt.lastFault = why;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }
}
