/**
 * One piece of work on the next certificate, as long as it is given time: a key, evidence, a request, its answer. It can
 * die at any point, and whoever comes next goes on: the key is written down before it is asked for, the request before it
 * is sent, the certificate before the request is forgotten.
 */
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { CacheWriteError, codeOf, makeDirectory, removeWork, tidy, writeCredential } from '../files/cache.ts';
import type { Slot } from '../files/cache.ts';
import { checkCredential, nodeSubject, splitPem } from '../files/check-credential.ts';
import type { Credential } from '../files/check-credential.ts';
import { connectCluster } from '../request/cluster.ts';
import type { ClusterApi, ClusterPlace } from '../request/cluster.ts';
import { loadCredential, readIssuers } from './credential.ts';
import type { LoadedCredential, Progress, World } from './credential.ts';
import { decisionOn, isOurs, resourceVersionIn, usernameIn } from './decision.ts';
import { takeLock } from '../files/lock.ts';
import { bootstrapLogin, LoginError, nodeLogin, removeBootstrapToken } from '../request/login.ts';
import type { Login } from '../request/login.ts';
import { nextTry } from './next-try.ts';
import type { NodeProviderPort } from '../providers/provider.ts';
import { makeRequest, newKey, requestObject } from '../request/request.ts';
import type { Wanted } from '../request/request.ts';
import type { Settings } from '../settings/settings.ts';
import { loadWork, newWork, purposeOf, saveWork } from './work.ts';
import type { PendingRequest, WorkState } from './work.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

export interface Order {
  readonly settings: Settings;
  readonly slot: Slot;
  readonly wanted: Wanted;
  readonly provider: NodeProviderPort;
  /** Of the client certificate that is in use; of a client certificate's own renewal the one that is renewed. */
  readonly login: Credential | undefined;
  readonly world: World;
  readonly connect?: (place: ClusterPlace, login: Login, now: () => number) => ClusterApi;
}

const minute = 60_000;
const hour = 60 * minute;
/** Refusals answered at once with other evidence or another key, before it is left to rest. */
const maxRetries = 3;

export async function obtain(order: Order, current: Credential | undefined, until: number): Promise<Progress> {
  const { settings, slot, wanted, world } = order;
  makeDirectory(slot);
  // With a certificate that is good nobody has to wait for whoever is at it already.
  const lock = await takeLock(slot, { now: world.now, until: current === undefined ? until : 0 });
  if (lock === undefined) {
    const message = `another process is asking for the ${slot.name} certificate`;
    return { kind: 'waiting', message, askAgainAt: world.now() + 5_000 };
  }
  try {
    tidy(slot);
    // It may have come while we waited for the lock; what there was before is told already.
    const silent = { ...world, say: () => {} };
    const loaded = loadCredential(settings, slot, silent, [...wanted.names.ip, ...wanted.names.dns]);
    if (loaded.credential !== undefined && world.now() < loaded.credential.renewAt)
      return { kind: 'issued', credential: loaded.credential };
    const login = slot.name === 'client' ? loaded.credential : order.login;
    const attempt = await startAttempt(order, loaded, order.provider.renews ? login : undefined);
    return await attempt.run(until);
  } finally {
    lock.release();
  }
}

/** The state, the login and what they lead to; one caller has it at a time. */
async function startAttempt(order: Order, loaded: LoadedCredential, node: Credential | undefined) {
  const { settings, slot, wanted, provider, world, connect = connectCluster } = order;
  const { now, say } = world;
  const purpose = purposeOf(settings, wanted);
  let login =
    node === undefined ? await bootstrapLogin(settings.bootstrapCredentialsFile) : nodeLogin(settings.nodeName, node);
  let cluster = connect(settings, login, now);
  let triedOldKey = false;
  let state = firstState();

  function firstState(): WorkState {
    const kept = loadWork(slot, purpose);
    const { credential, oldKeyPem } = loaded;
    if (kept !== undefined && 'problem' in kept)
      say(`the work file of the ${slot.name} certificate ${kept.problem}; begun anew`);
    else if (kept !== undefined && !isFinished(kept, credential)) return kept;
    // The machine is registered with the old key, and a bootstrap token cannot change that: only a node that still can log
    // in as itself gets another one.
    const sound = credential === undefined ? oldKeyPem : provider.renews ? undefined : credential.keyPem;
    return newWork(purpose, sound ?? newKey(settings.keyKind));
  }

  function save(change: Partial<WorkState>): void {
    state = { ...state, ...change };
    saveWork(slot, state);
  }
  /** exactOptionalPropertyTypes: what is to go is left out. */
  function drop(...keys: readonly ('request' | 'rest')[]): void {
    const { request, rest, ...others } = state;
    state = {
      ...others,
      ...(request === undefined || keys.includes('request') ? {} : { request }),
      ...(rest === undefined || keys.includes('rest') ? {} : { rest }),
    };
  }

  function refused(message: string): Progress {
    const refusals = state.refusals + 1;
    const until = now() + Math.min(hour, minute * 2 ** (refusals - 1));
    drop('request');
    save({ refusals, retries: 0, rest: { until, message } });
    return { kind: 'refused', message, askAgainAt: until };
  }

  /** Whether there is another try at once; it is prepared then. How many there are is bounded. */
  function prepareNextTry(reason: string, object: JsonObject): boolean {
    if (state.retries >= maxRetries) return false;
    const next = nextTry({
      reason,
      object,
      versions: provider.versions,
      version: versionOf(state),
      keyPem: state.keyPem,
      oldKeyPem: triedOldKey ? undefined : loaded.oldKeyPem,
      mayChangeKey: login.as === 'node' && provider.renews && state.keysGivenUp < maxRetries,
    });
    if (next === undefined) return false;
    drop('request');
    const retries = state.retries + 1;
    switch (next.kind) {
      case 'freshEvidence':
        save({ retries });
        return true;
      case 'otherVersion':
        save({ retries, evidenceVersion: next.version });
        return true;
      case 'newKey':
        save({ retries, keyPem: newKey(settings.keyKind), keysGivenUp: state.keysGivenUp + 1 });
        return true;
      case 'oldKey':
        triedOldKey = true;
        save({ retries, keyPem: next.keyPem });
        return true;
    }
  }

  function versionOf({ evidenceVersion }: WorkState): string {
    return provider.versions.find((known) => known === evidenceVersion) ?? provider.versions[0];
  }

  async function prepare(): Promise<PendingRequest> {
    if (state.request !== undefined) return state.request;
    const made = await makeRequest(settings, wanted, state.keyPem, provider, versionOf(state), now());
    const request = { ...made, createdAt: now() };
    save({ request });
    return request;
  }

  /** The object, or why there is none. `lost`: another one is to be made. */
  async function post(
    request: PendingRequest,
    resumed: boolean,
    until: number,
  ): Promise<JsonObject | Progress | 'lost'> {
    let answer = resumed
      ? await cluster.get(request.name, until)
      : await cluster.create(requestObject(request, wanted), until);
    // Written down, and not sent before we died; or sent, and deleted since: both are mended by sending it (again).
    if (resumed && !answer.ok && answer.why === 'NotFound') {
      if (now() >= request.staleAt) return 'lost';
      answer = await cluster.create(requestObject(request, wanted), until);
    }
    if (!answer.ok && answer.why === 'Conflict') answer = await cluster.get(request.name, until);
    if (answer.ok) {
      if (!isOurs(answer.value, request, wanted.signerName, login)) {
        say(`request ${request.name} exists and is not ours`);
        return 'lost';
      }
      const username = usernameIn(answer.value);
      if (request.username === undefined && username !== undefined) save({ request: { ...request, username } });
      if (!resumed) say(`asked for the ${slot.name} certificate of ${settings.nodeName}: request ${request.name}`);
      return answer.value;
    }
    if (answer.why === 'NotFound') return 'lost';
    const askAgainAt = now() + minute;
    const { why, message } = answer;
    if (why === 'Unauthorized')
      return { kind: 'refused', message: `${whoIs(login)} is not accepted (${message})`, askAgainAt };
    if (why === 'Forbidden')
      return { kind: 'refused', message: `${whoIs(login)} may not ask for certificates (${message})`, askAgainAt };
    return refused(`the request is not accepted: ${message}`);
  }

  /** The object from where it was seen on, until somebody decides, it grows old, or the time is over. */
  async function follow(request: PendingRequest, first: JsonObject, until: number) {
    let object = first;
    for (;;) {
      const decision = decisionOn(object);
      if (decision.kind !== 'undecided') return { object, decision };
      const replaceAt = decision.approved ? Infinity : replacementTime(request, state.unanswered);
      if (now() >= replaceAt) return 'stale';
      if (now() >= until) return { object, decision };
      await cluster.change(request.name, resourceVersionIn(object), Math.min(until, replaceAt));
      const answer = await patiently(() => cluster.get(request.name, until + 1_000), until);
      if (!answer.ok) return answer.why === 'NotFound' ? 'stale' : Promise.reject(new Error(answer.message));
      object = answer.value;
    }
  }

  let lastSaid: string | undefined;
  async function patiently<T>(call: () => Promise<T>, until: number): Promise<T> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (now() + 2_000 >= until || isLasting(error)) throw error;
        // A fault that is silently tried again until the deadline is one that nobody finds. Said once, not every second.
        const why = errorMessage(error);
        if (why !== lastSaid) say(`trying again: ${why}`);
        lastSaid = why;
        await new Promise((resolve) => setTimeout(resolve, 1_000));
      }
    }
  }

  function accept(pem: string): Progress {
    const stored = { certificatePem: splitPem(pem).join(''), keyPem: state.keyPem, issuedAt: now() };
    const issuers = slot.name === 'client' ? readIssuers(settings, world) : undefined;
    const checked = checkCredential(stored, {
      subject: nodeSubject(settings.nodeName),
      now: now(),
      ...(issuers === undefined ? {} : { issuers }),
      names: [...wanted.names.ip, ...wanted.names.dns],
    });
    if (!checked.ok) return refused(`the certificate that was issued cannot be used: it ${checked.problem}`);
    const { credential } = checked;
    try {
      writeCredential(slot, stored);
    } catch (error) {
      // The key is written down, and the cluster keeps the certificate for an hour: used now, and kept when it can be.
      const why = error instanceof Error ? error.message : codeOf(error);
      say(`the new ${slot.name} certificate is used, and could not be kept: ${why}`);
      return { kind: 'issued', credential: { ...credential, renewAt: Math.min(credential.renewAt, now() + minute) } };
    }
    // Dying here leaves a request that is finished: `isFinished` sees it.
    removeWork(slot);
    if (slot.name === 'client' && provider.renews && settings.keepBootstrapToken !== true) forgetBootstrapToken();
    say(
      `got the ${slot.name} certificate of ${settings.nodeName}, good until ${credential.leaf.validToDate.toISOString()}`,
    );
    return { kind: 'issued', credential };
  }

  /** Only where the node renews as itself: otherwise the next certificate is asked for with the same token. */
  function forgetBootstrapToken(): void {
    const file = settings.bootstrapCredentialsFile;
    try {
      if (removeBootstrapToken(file)) say(`removed the bootstrap token, which is not needed any more: ${file}`);
    } catch (error) {
      say(`the bootstrap token is not needed any more, and could not be removed: ${file} (${codeOf(error)})`);
    }
  }

  async function turn(until: number): Promise<Progress | 'again'> {
    const resumed = state.request !== undefined;
    const request = await prepare();
    const posted = await post(request, resumed, until);
    if (posted === 'lost') {
      drop('request');
      save({ retries: state.retries + 1 });
      return state.retries > maxRetries ? refused(`request ${request.name} does not stay in the cluster`) : 'again';
    }
    if (isProgress(posted)) {
      if (posted.kind !== 'refused' || login.as !== 'node' || slot.name !== 'client' || state.rest !== undefined)
        return posted;
      // The CA that the API server trusts was replaced, perhaps: as if the node came back, then, with the key it is known by.
      say(posted.message);
      login = await bootstrapLogin(settings.bootstrapCredentialsFile);
      cluster.close();
      cluster = connect(settings, login, now);
      const known = loaded.credential?.keyPem ?? state.keyPem;
      if (known !== state.keyPem) {
        drop('request');
        save({ keyPem: known });
      }
      return 'again';
    }
    const followed = await follow(state.request ?? request, posted, until);
    if (followed === 'stale') {
      drop('request');
      save({ unanswered: state.unanswered + 1 });
      say(`request ${request.name} was not decided on in time; asking with fresh evidence`);
      return 'again';
    }
    const { object, decision } = followed;
    switch (decision.kind) {
      case 'certificate':
        return accept(decision.pem);
      case 'undecided': {
        const what = decision.approved ? 'is approved and waits for its certificate' : 'waits for its approval';
        const age = now() - request.createdAt;
        return {
          kind: 'waiting',
          message: `request ${request.name} ${what}`,
          askAgainAt: now() + Math.min(10 * minute, Math.max(minute / 2, age / 4)),
        };
      }
      case 'no': {
        const message = `request ${request.name} was ${decision.type === 'Denied' ? 'denied' : 'refused'} (${decision.reason}): ${decision.message}`;
        if (!prepareNextTry(decision.reason, object)) return refused(message);
        say(`${message}; asking again`);
        return 'again';
      }
    }
  }

  return {
    async run(until: number): Promise<Progress> {
      const { rest } = state;
      if (rest !== undefined && now() < rest.until) {
        cluster.close();
        const message = `${rest.message}; asked again at ${new Date(rest.until).toISOString()}`;
        return { kind: 'refused', message, askAgainAt: rest.until };
      }
      drop('rest');
      try {
        for (;;) {
          const progress = await patiently(() => turn(until), until);
          if (progress !== 'again') return progress;
        }
      } finally {
        cluster.close();
      }
    },
  };
}

/** The certificate is in the cache already: whoever fetched it died before the request was forgotten. */
function isFinished({ request, keyPem }: WorkState, credential: Credential | undefined): boolean {
  if (credential === undefined || request === undefined || credential.keyPem !== keyPem) return false;
  return (credential.issuedAt ?? credential.notBefore) >= request.createdAt;
}

/**
 * Evidence that is too old for whoever decides is replaced; nobody can withdraw a request, so where nobody decides at all
 * each one is left twice as long as the one before.
 */
function replacementTime({ createdAt, staleAt }: PendingRequest, unanswered: number): number {
  return createdAt + Math.max(staleAt - createdAt, Math.min(hour, (staleAt - createdAt) * 2 ** unanswered));
}

/** Trying again in a second would change nothing. */
function isLasting(error: unknown): boolean {
  return error instanceof CacheWriteError || error instanceof LoginError;
}

function isProgress(value: JsonObject | Progress): value is Progress {
  return 'askAgainAt' in value;
}

function whoIs({ as, username }: Login): string {
  return `${as === 'node' ? 'the certificate in use' : 'the bootstrap credential'}${username === undefined ? '' : ` (${username})`}`;
}
