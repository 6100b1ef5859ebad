import { expect } from 'vitest';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import {
  installRelay,
  ledgerOf,
  startDevServer,
  startRelay,
  type DevServer,
  type Relay,
  type RelayIdentity,
} from '../../../harness/stack/stack.ts';
import { tbsOf } from '../../../harness/stack/key.ts';
import { startProxy, type Proxy } from '../../../harness/stack/proxy.ts';
import { certificateDerOf, conditionOf, type CsrObject } from '../../../harness/stack/requests.ts';

const signerName = 'kubernetes.io/kube-apiserver-client';
export const signerArgs = ['--signer-name', signerName] as const;

/** The real dev server, API server and relay, with a proxy before each server: what the relay asks goes through both. */
export interface ProxiedStack {
  readonly signer: DevServer;
  readonly plane: ControlPlane;
  readonly identity: RelayIdentity;
  readonly relay: Relay;
  readonly toSigner: Proxy;
  readonly toApi: Proxy;
  /** No more interventions. */
  pass(): void;
  stop(): Promise<void>;
}

/** What was started before a later part failed is stopped. */
export async function startProxiedStack(options: {
  readonly concurrency: number;
  /** Where the key writes each TBS it signs. */
  readonly countFile?: string;
  readonly watchCache?: false;
}): Promise<ProxiedStack> {
  const { concurrency, countFile, watchCache } = options;
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (const each of stops.splice(0).toReversed()) await each();
  };
  async function started<T>(starting: Promise<T>, end: (part: T) => Promise<unknown>): Promise<T> {
    const part = await starting;
    stops.push(() => end(part));
    return part;
  }
  try {
    const signer = await started(startDevServer(countFile === undefined ? {} : { countFile }), (part) => part.stop());
    const clientCaPem = await signer.caPem();
    const plane = await started(
      startControlPlane({ clientCaPem, ...(watchCache === undefined ? {} : { watchCache }) }),
      (part) => part.stop(),
    );
    const identity = await installRelay(plane);
    const toSigner = await started(startProxy({ url: signer.url }), (part) => part.close());
    const toApi = await started(startProxy({ url: plane.url, caPem: plane.servingCaPem }), (part) => part.close());
    const relay = await started(
      startRelay({
        kubeconfig: identity.kubeconfig(toApi),
        endpoint: toSigner.url,
        args: [...signerArgs, '--concurrency', String(concurrency)],
      }),
      (part) => part.stop(),
    );
    const pass = (): void => {
      for (const proxy of [toSigner, toApi]) proxy.intervene = () => 'pass';
    };
    return { signer, plane, identity, relay, toSigner, toApi, pass, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Issued or Failed, as each should, and one content for each UID: on record, and in the cluster. */
export async function expectEnds(
  signer: DevServer,
  objects: { readonly issued: readonly CsrObject[]; readonly refused: readonly CsrObject[] },
): Promise<void> {
  const { ledger, close } = ledgerOf(signer);
  try {
    for (const object of objects.issued) {
      const { name, uid } = object.metadata;
      expect(conditionOf(object, 'Failed'), name).toBeUndefined();
      const record = await ledger.find(uid);
      expect(record?.state, name).toBe('issued');
      const certificate = certificateDerOf(object);
      expect(certificate.equals(record!.certificate!), name).toBe(true);
      expect(tbsOf(certificate), name).toBe(Buffer.from(record!.tbs).toString('hex'));
    }
    for (const object of objects.refused) {
      const { name, uid } = object.metadata;
      expect(conditionOf(object, 'Failed')?.reason, name).toBe('SignerValidationFailure');
      expect(object.status.certificate, name).toBeUndefined();
      expect(await ledger.find(uid), name).toBeUndefined();
    }
  } finally {
    close();
  }
}
