/**
 * Keeps the kubelet's serving certificate: asked for with evidence, so that every name in it was held against the machine,
 * and written to one file that holds certificate and key. The kubelet takes that file for both `tlsCertFile` and
 * `tlsPrivateKeyFile`, looks at it again when it is replaced, and can never see the one without the other.
 *
 * The stock way (`serverTLSBootstrap`) needs none of this; there the word of the API server that the node itself asked is
 * all that stands behind a request.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { loadCredential, presentCredential } from './credential.ts';
import type { Progress, Work, World } from './credential.ts';
import { obtain } from './obtain.ts';
import { servingOrder } from './certificate-spec.ts';
import { servingFile } from '../settings/settings.ts';
import type { Settings } from '../settings/settings.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

/** One try at everything: how long `--once` waits, and `--watch` before it says so and goes on. */
const patienceMilliseconds = 120_000;

/** The client certificate first: only the node itself may ask for its serving certificate. */
export async function keepServing(
  settings: Settings & { readonly servingSignerName: string },
  startClientWork: () => Promise<Work>,
  world: World,
): Promise<Progress> {
  const client = await presentCredential(settings, startClientWork, world, patienceMilliseconds);
  if (client.kind === 'none') return { kind: client.why, message: client.message, askAgainAt: world.now() + 30_000 };
  const order = await servingOrder(settings, client.credential, world);
  const { ip, dns } = order.wanted.names;
  const { credential } = loadCredential(settings, order.slot, world, [...ip, ...dns]);
  if (credential !== undefined && world.now() < credential.renewAt) return { kind: 'issued', credential };
  return obtain(order, credential, world.now() + patienceMilliseconds);
}

/** Until `signal`. Nothing that goes wrong ends it: the kubelet serves with what it has meanwhile. */
export async function watchServing(
  settings: Settings & { readonly servingSignerName: string },
  startClientWork: () => Promise<Work>,
  world: World,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    let next: number;
    try {
      const progress = await keepServing(settings, startClientWork, world);
      next = progress.kind === 'issued' ? progress.credential.renewAt : progress.askAgainAt;
      if (progress.kind !== 'issued') world.say(progress.message);
    } catch (error) {
      world.say(errorMessage(error));
      next = world.now() + 30_000;
    }
    // In steps: a machine that slept through the moment must not wait for as long again.
    while (!signal.aborted && world.now() < next)
      await sleep(Math.max(1, Math.min(60_000, next - world.now())), undefined, { signal }).catch(() => {});
  }
}

export function servingHint(settings: Settings): string {
  const file = servingFile(settings);
  return `tlsCertFile and tlsPrivateKeyFile of the kubelet: ${file}`;
}
