/** A cluster whose nodes prove themselves with TPMs: real API server and relay, and no cloud, real or fake. */
import { createHash, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSignService, type SignService } from '../../../../dev/serve/sign-service.ts';
import { installNode, type Node } from '../../../harness/node/authenticator-site.ts';
import { startApprovalStack, type ApprovalStack } from '../../../harness/stack/approval.ts';
import { readRequests, type CsrObject } from '../../../harness/stack/requests.ts';
import { startSoftwareTpm, type SoftwareTpm } from '../../../harness/tpm/software-tpm.ts';
import { createTpmAuthority } from '../../../harness/tpm/tpm-authority.ts';

export const clientSigner = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm';
export const servingSigner = 'cluster.x-k8s.io/kubelet-serving-tpm';
export const stockServing = 'kubernetes.io/kubelet-serving';
export const audience = 'edge/site-1/demo';

export type TpmNode = Omit<Node, 'instanceId' | 'close'>;

export interface TpmCluster {
  readonly stack: ApprovalStack;
  /** As its manufacturer made it. */
  tpm(name: string): Promise<SoftwareTpm>;
  /** `countersign machines allow`. */
  allow(tpm: SoftwareTpm, names: { readonly nodeName?: string; readonly addresses?: readonly string[] }): Promise<void>;
  /** kubelet-authenticator on a machine with that TPM. */
  node(name: string, tpm: SoftwareTpm, settings?: Readonly<Record<string, unknown>>): TpmNode;
  requests(signerName: string): Promise<readonly CsrObject[]>;
  readonly service: SignService;
  stop(): Promise<void>;
}

export interface TpmClusterOptions {
  readonly maxTtl?: string;
  /** Of the client signer's profile. */
  readonly attestation?: Readonly<Record<string, unknown>>;
}

export async function startTpmCluster({
  maxTtl = '1h',
  attestation = {},
}: TpmClusterOptions = {}): Promise<TpmCluster> {
  const cleanups: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  };
  const authority = createTpmAuthority();
  cleanups.push(() => authority.remove());
  async function tpm(name: string): Promise<SoftwareTpm> {
    const started = await startSoftwareTpm({ name, authority });
    cleanups.push(() => started.stop());
    return started;
  }
  try {
    // The manufacturer's certificates exist as soon as its first TPM does.
    await tpm('the first');
    const configuration = JSON.stringify({
      version: 1,
      clusters: {
        demo: {
          cas: { ca: { subject: { commonName: 'edge demo CA' } } },
          profiles: {
            [clientSigner]: { maxTtl, attestation },
            [servingSigner]: { maxTtl: '1h' },
            [stockServing]: { maxTtl: '1h', attestation: { providers: ['tpm'] } },
          },
          approval: { [clientSigner]: 'approve', [servingSigner]: 'approve', [stockServing]: 'approve' },
          attestation: {
            audience,
            tpm: { roots: [authority.rootPem()], intermediates: [authority.issuerPem()], nodeName: ['pattern:edge-*'] },
          },
        },
      },
    });
    let service: SignService | undefined;
    const stack = await startApprovalStack(
      configuration,
      undefined,
      { apiServerArgs: ['--enable-admission-plugins=NodeRestriction'] },
      async (cluster) => (service = await openSignService({ clusters: [cluster], log: () => {} })),
    );
    cleanups.push(() => stack.stop());
    const opened = service!;
    await stack.relay();
    (await stack.bootstrap('abcdef')).close();
    const caFile = join(stack.plane.dir, 'serving-ca.pem');
    writeFileSync(caFile, stack.plane.servingCaPem);
    const place = {
      folder: stack.plane.dir,
      front: { url: stack.plane.url, caFile },
      clientCaFile: join(stack.plane.dir, 'client-ca-bundle.pem'),
    };
    let homes = 0;
    return {
      stack,
      service: opened,
      tpm,
      async allow(machine, { nodeName, addresses = [] }) {
        const name = identityOf(machine);
        const about = { by: 'operator', reason: 'installed it' };
        const entry = { name, ...(nodeName === undefined ? {} : { nodeName }), addresses, dnsNames: [] };
        await opened
          .attestations('demo')!
          .register.allowMachine(
            { ...entry, ...about, addedAt: Date.now() },
            { id: `${Date.now()}-${name}-${++homes}`, at: Date.now(), action: 'allow', subject: name, ...about },
          );
      },
      node: (name, machine, settings = {}) =>
        installNode(name, `machine-${++homes}`, place, {
          settings: {
            provider: 'tpm',
            signerName: clientSigner,
            servingSignerName: servingSigner,
            audience,
            clientCaBundleFile: undefined,
            ...settings,
          },
          env: machine.environment,
        }),
      requests: async (signerName) =>
        (await readRequests(stack.plane)).filter(({ spec }) => spec.signerName === signerName),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** By the RSA key, which is the first of which the TPM has a certificate. */
export function identityOf(tpm: SoftwareTpm): string {
  const { publicKey } = new X509Certificate(tpm.ekCertificate('rsa-2048'));
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  return `tpm#${createHash('sha256').update(spki).digest('hex')}`;
}
