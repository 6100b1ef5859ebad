/**
 * The attempt at one certificate: its state as it is on disk, the login it uses, and the connection to the API server.
 * An existing work file is resumed. Without one, the attempt begins with a key.
 */
import { replaceFile, workFile } from '../files/cache.ts';
import type { Credential } from '../files/check-credential.ts';
import { connectCluster } from '../request/cluster.ts';
import type { ClusterApi } from '../request/cluster.ts';
import { bootstrapLogin, nodeLogin } from '../request/login.ts';
import type { Login } from '../request/login.ts';
import { newKey } from '../request/request.ts';
import type { CertificateSpec } from './certificate-spec.ts';
import type { LoadedCredential } from './credential.ts';
import { loadWork, newWork, purposeOf } from './work.ts';
import type { WorkState } from './work.ts';

/** Only the process that holds the lock has an attempt. */
export interface Attempt {
  readonly spec: CertificateSpec;
  readonly cached: LoadedCredential;
  /** What the work file holds after the next `update`. */
  state: WorkState;
  login: Login;
  cluster: ClusterApi;
  triedOldKey: boolean;
  lastFault: string | undefined;
}

/** `renewing`: the certificate to log in with. Without one the node logs in with its bootstrap credentials. */
export async function startAttempt(
  spec: CertificateSpec,
  cached: LoadedCredential,
  renewing: Credential | undefined,
): Promise<Attempt> {
  const { settings } = spec;
  const login =
    renewing === undefined
      ? await bootstrapLogin(settings.bootstrapCredentialsFile)
      : nodeLogin(settings.nodeName, renewing);
  const state = resumeOrBegin(spec, cached);
  return { spec, cached, state, login, cluster: connect(spec, login), triedOldKey: false, lastFault: undefined };
}

/** Writes the change to disk. If the process dies after this, the next run resumes with the change. */
export function update(attempt: Attempt, change: Partial<WorkState>): void {
  attempt.state = { ...attempt.state, ...change };
  replaceFile(workFile(attempt.spec.slot), `${JSON.stringify(attempt.state, null, 2)}\n`);
}

/**
 * Starts again as a node without a certificate: bootstrap credentials, and the key that the machine is registered with.
 * Needed when the API server does not accept the certificate in use, for example after its client CA was replaced.
 */
export async function fallBackToBootstrap(attempt: Attempt): Promise<void> {
  const { spec, cached, state } = attempt;
  attempt.login = await bootstrapLogin(spec.settings.bootstrapCredentialsFile);
  attempt.cluster.close();
  attempt.cluster = connect(spec, attempt.login);
  const registeredKey = cached.credential?.keyPem ?? state.keyPem;
  if (registeredKey !== state.keyPem) update(attempt, { request: undefined, keyPem: registeredKey });
}

function connect({ settings, dependencies, connect: open = connectCluster }: CertificateSpec, login: Login) {
  return open(settings, login, dependencies.now);
}

function resumeOrBegin({ settings, slot, wanted, provider, dependencies }: CertificateSpec, cached: LoadedCredential) {
  const purpose = purposeOf(settings, wanted);
  const saved = loadWork(slot, purpose);
  const { credential, oldKeyPem } = cached;
  if (!saved.ok)
    dependencies.log(`the work file of the ${slot.name} certificate ${saved.problem}; starting over with a new one`);
  else if (saved.value !== undefined && !isFinished(saved.value, credential)) return saved.value;
  // The machine is registered with the old key, and a bootstrap token cannot change that. Only a node that can still log in
  // with its certificate may use a new key.
  const registeredKey = credential === undefined ? oldKeyPem : provider.renews ? undefined : credential.keyPem;
  return newWork(purpose, registeredKey ?? newKey(settings.keyKind));
}

/** Whether the certificate is in the cache already: the process died before it removed the work file. */
function isFinished({ request, keyPem }: WorkState, credential: Credential | undefined): boolean {
  if (credential === undefined || request === undefined || credential.keyPem !== keyPem) return false;
  return (credential.issuedAt ?? credential.notBefore) >= request.createdAt;
}
