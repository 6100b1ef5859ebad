/* Machines without a cloud join by their TPM: kubelet-authenticator, tpm2-tools and swtpm on a real API server. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { printed } from '../../../harness/node/authenticator-output.ts';
import type { Program } from '../../../harness/node/authenticator-site.ts';
import { conditionOf, type CsrObject } from '../../../harness/stack/requests.ts';
import type { SoftwareTpm } from '../../../harness/tpm/software-tpm.ts';
import { requireTools } from '../../../tools/tools.ts';
import {
  clientSigner,
  identityOf,
  servingSigner,
  startTpmCluster,
  type TpmCluster,
  type TpmNode,
} from './tpm-cluster.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'swtpm');

const challengeAnnotation = 'countersign.dev/attestation-challenge';
const keyAnnotation = 'cluster-x-k8s-io/tpm-endorsement-key';

function annotationsOf({ metadata }: CsrObject): Readonly<Record<string, string>> {
  return (metadata as { readonly annotations?: Readonly<Record<string, string>> }).annotations ?? {};
}

describe.skipIf(skip)('a machine with a TPM and a real API server', () => {
  let cluster: TpmCluster;
  let tpm: SoftwareTpm;
  let node: TpmNode;
  beforeAll(async () => {
    cluster = await startTpmCluster({ maxTtl: '70s' });
    tpm = await cluster.tpm('edge-1');
    node = cluster.node('edge-1', tpm);
  }, 180_000);
  afterAll(() => cluster?.stop());

  const record = () => cluster.service.attestations('demo')!.store.findIdentity(identityOf(tpm));
  const seen = new Set<string>();
  /** What became of each request since the last call. */
  async function fresh(signerName: string): Promise<readonly (readonly [string, CsrObject])[]> {
    const requests = (await cluster.requests(signerName)).filter(({ metadata }) => !seen.has(metadata.name));
    for (const { metadata } of requests) seen.add(metadata.name);
    return requests.map((request) => {
      const [denied, approved] = [conditionOf(request, 'Denied'), conditionOf(request, 'Approved')];
      return [denied?.reason ?? approved?.type ?? 'pending', request] as const;
    });
  }
  const decisions = async (signerName: string) => (await fresh(signerName)).map(([decision]) => decision).toSorted();
  /** Of its 370 seconds 300 lie before it was issued: counted from there, it is due at once. */
  function makeDue(): void {
    for (const file of ['client.pem', 'client-copy.pem']) {
      const path = join(node.cache, file);
      writeFileSync(path, readFileSync(path, 'utf8').replace(/^issued-at: .*\n/, ''));
    }
  }
  const reasonOf = ({ stderr }: Program): string | undefined =>
    [...stderr.matchAll(/was (?:denied|refused) \((\w+)\)/g)].at(-1)?.[1];

  test('is refused until the operator lists it', async () => {
    const program = await node.run();
    expect(program.code).not.toBe(0);
    expect(program.stderr).toContain('IdentityNotAllowed');
    expect(await record()).toBeUndefined();
    expect(await decisions(clientSigner)).toEqual(['IdentityNotAllowed']);
    // The kubelet asks again after the pause that the program keeps.
    await cluster.allow(tpm, { nodeName: 'edge-1', addresses: ['10.9.8.7'] });
    node = cluster.node('edge-1', tpm);
  });

  test('joins in two requests: the first is denied with a challenge, the second answers it', async () => {
    const { certificate } = printed(await node.run());
    expect(certificate.subject).toContain('CN=system:node:edge-1');
    const asked = new Map(await fresh(clientSigner));
    expect([...asked.keys()].toSorted()).toEqual(['Approved', 'AttestationChallenge']);
    const [first, second] = [asked.get('AttestationChallenge')!, asked.get('Approved')!];
    expect(conditionOf(first, 'Denied')).toBeDefined();
    expect(Object.keys(JSON.parse(annotationsOf(first)[challengeAnnotation]!) as object)).toEqual([
      'v',
      'challenge',
      'credential',
    ]);
    expect(conditionOf(second, 'Approved')?.message).toContain(identityOf(tpm));
    for (const request of [first, second]) expect(annotationsOf(request)).toHaveProperty([keyAnnotation]);
    expect((await record())?.device?.akName).toMatch(/^000b[0-9a-f]{64}$/);
    expect(await tpm.handles('persistent')).toHaveLength(2);
    expect(await tpm.handles('transient')).toEqual([]);
    expect(await tpm.handles('loaded-session')).toEqual([]);
  });

  test('renews with a quote alone, also after the TPM lost its power', async () => {
    makeDue();
    const first = printed(await node.run());
    makeDue();
    await tpm.restart({ orderly: false });
    node = { ...node, env: { ...node.env, ...tpm.environment } };
    const second = printed(await node.run({ env: tpm.environment }));
    expect(second.keyPem).not.toBe(first.keyPem);
    expect(await decisions(clientSigner)).toEqual(['Approved', 'Approved']);
    expect((await record())?.renewals).toBe(2);
  });

  test('serves under its name and the addresses on the list, and under no other', async () => {
    const serve = (names: readonly string[]) =>
      cluster.node('edge-1', tpm, { cacheDirectory: node.cache, servingNames: names }).run({
        args: ['serving', '--once'],
      });
    const foreign = await serve(['10.9.8.8']);
    expect(reasonOf(foreign)).toBe('NameNotOwned');
    expect((await serve(['10.9.8.7'])).code).toBe(0);
    expect(await decisions(servingSigner)).toEqual(['Approved', 'NameNotOwned']);
  });

  test('installed anew it joins again with its token: the proof is the hardware', async () => {
    await decisions(clientSigner);
    printed(await cluster.node('edge-1', tpm).run());
    expect(await decisions(clientSigner)).toEqual(['Approved']);
  });

  test('no other TPM gets its name, and its evidence is of no use to another node', async () => {
    const thief = await cluster.tpm('thief');
    await cluster.allow(thief, {});
    expect(reasonOf(await cluster.node('edge-1', thief).run())).toBe('TofuNodeTaken');
    // Listed for another name, it gets no name of its choice.
    await cluster.allow(thief, { nodeName: 'edge-2' });
    expect(reasonOf(await cluster.node('edge-3', thief).run())).toBe('IdentityNotAllowed');
  });
});
