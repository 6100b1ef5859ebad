/**
 * Obtains and renews the kubelet's serving certificate. The request carries evidence, so the approver checks every name in
 * it against the machine. Certificate and key are in one file, which is both `tlsCertFile` and `tlsPrivateKeyFile`: the
 * kubelet reloads it when it is replaced and never sees one without the other.
 *
 * With `serverTLSBootstrap` the kubelet requests the certificate itself and does not need this program. Its request carries no
 * evidence: it proves only that its sender has the node's client certificate.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { loadCredential, presentCredential } from './credential.ts';
import type { Progress, Work, Dependencies } from './credential.ts';
import { obtain } from './obtain.ts';
import { servingSpec } from './certificate-spec.ts';
import type { ServingSettings } from './certificate-spec.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

/** The longest time for one attempt. Then `--once` ends; `--watch` logs the result and waits for the next attempt. */
const attemptMilliseconds = 120_000;

/** Obtains the client certificate first: the signer issues a serving certificate only to the node itself. */
export async function keepServing(
  settings: ServingSettings,
  clientWork: Work,
  dependencies: Dependencies,
): Promise<Progress> {
  const client = await presentCredential(settings, clientWork, dependencies, attemptMilliseconds);
  if (client.kind !== 'credential') return { ...client, askAgainAt: dependencies.now() + 30_000 };
  const spec = await servingSpec(settings, client.credential, dependencies);
  const { credential } = loadCredential(settings, spec.slot, dependencies, spec.wanted.names);
  if (credential !== undefined && dependencies.now() < credential.renewAt) return { kind: 'issued', credential };
  return obtain(spec, credential, dependencies.now() + attemptMilliseconds);
}

/** Runs until `signal`. An error is logged and does not end it: the kubelet keeps serving with the certificate it has. */
export async function watchServing(
  settings: ServingSettings,
  clientWork: Work,
  dependencies: Dependencies,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    let next: number;
    try {
      const progress = await keepServing(settings, clientWork, dependencies);
      next = progress.kind === 'issued' ? progress.credential.renewAt : progress.askAgainAt;
      if (progress.kind !== 'issued') dependencies.log(progress.message);
    } catch (error) {
      dependencies.log(errorMessage(error));
      next = dependencies.now() + 30_000;
    }
    // Sleeps at most a minute at a time, since a timer does not advance while the machine is suspended.
    while (!signal.aborted && dependencies.now() < next)
      await sleep(Math.max(1, Math.min(60_000, next - dependencies.now())), undefined, { signal }).catch(() => {});
  }
}
