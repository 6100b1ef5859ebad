/** Where a CA comes from besides itself: another CA of the cluster, or an import (docs/ca/sources.md). */
import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { loadAuthority } from '../../../../core/ca/authority.ts';
import { certificateFacts } from '../../../../core/x509/read-certificate.ts';
import type { CaKey } from '../../../../core/ca/authority.ts';
import { createSite, deployEvent, siteNow } from './site.ts';
import type { CaSite } from './site.ts';

const root = 'root: {subject: {commonName: prod root}, keySpec: P-384, pathLen: 2, validity: 400d}';

async function authority(site: CaSite, name: string) {
  const loaded = await loadAuthority(site.cluster.cas.get(name)!, site.ports.key(name), site.ports.store);
  if (!loaded.ok) throw new Error(loaded.problem.message);
  return loaded.value;
}

describe('a CA that another CA of the cluster issues', () => {
  const cas = `{nodes: {kind: issued, issuedBy: middle, subject: {commonName: prod nodes}},
    middle: {kind: issued, issuedBy: root, subject: {commonName: prod middle}, pathLen: 1, validity: 30d}, ${root}}`;

  test('is made after its issuers, whatever their order, and ends no later than they', async () => {
    const site = await createSite(cas, 'nodes');
    await site.handler(deployEvent);
    expect(site.responses).toMatchObject([{ Status: 'SUCCESS' }]);
    expect([...site.records.keys()]).toEqual(['root', 'middle', 'nodes']);
    const [rootCa, middle, nodes] = ['root', 'middle', 'nodes'].map(
      (name) => new X509Certificate(site.records.get(name)!.certificate),
    ) as [X509Certificate, X509Certificate, X509Certificate];
    expect([rootCa, middle, nodes].map(({ issuer }) => issuer)).toEqual([
      'CN=prod root',
      'CN=prod root',
      'CN=prod middle',
    ]);
    expect(middle.checkIssued(rootCa) && middle.verify(rootCa.publicKey)).toBe(true);
    expect(nodes.checkIssued(middle) && nodes.verify(middle.publicKey)).toBe(true);
    expect([middle.ca, nodes.ca]).toEqual([true, true]);
    expect(nodes.validTo).toBe(middle.validTo);
    expect(certificateFacts(nodes.raw).notAfter).toBe(siteNow + 30 * 86_400_000);
  });

  test('keeps the chain above it, and hands out what is below the root', async () => {
    const site = await createSite(cas, 'nodes');
    await site.handler({ action: 'init', ca: 'nodes' });
    const { root: rootRecord, middle, nodes } = Object.fromEntries(site.records);
    expect([rootRecord!.chain, middle!.chain, nodes!.chain]).toEqual([
      [],
      [rootRecord!.certificate],
      [middle!.certificate, rootRecord!.certificate],
    ]);
    expect((await authority(site, 'root')).intermediates).toEqual([]);
    expect((await authority(site, 'nodes')).intermediates).toEqual([nodes!.certificate, middle!.certificate]);
  });

  test('awaits an issuer that is not in force', async () => {
    const site = await createSite(
      `{nodes: {kind: issued, issuedBy: corp, subject: {commonName: prod nodes}},
        corp: {kind: imported, pathLen: 1, subject: {commonName: Corp CA}}}`,
      'nodes',
    );
    await site.handler(deployEvent);
    expect(site.responses).toMatchObject([{ Status: 'SUCCESS' }]);
    expect(site.records.size).toBe(0);
    expect(site.log.at(-1)).toMatchObject({ level: 'info', cas: { nodes: 'AwaitsIssuer', corp: 'AwaitsImport' } });
  });
});

describe('a CA that awaits its import', () => {
  test.each([
    ['kms', /countersign ca csr/],
    ['imported', /countersign ca import-key/],
  ])('does not keep the stack from being deployed, and says what is next: keyMaterial %s', async (material, next) => {
    const site = await createSite(
      `{nodes: {kind: imported, keyMaterial: ${material}, subject: {commonName: kubernetes}}}`,
      'nodes',
    );
    // As KMS answers for a key that awaits its material.
    const key = site.keys.get('nodes')!;
    const pending: CaKey = { ...key, publicKey: () => Promise.reject(new Error('KMSInvalidStateException')) };
    site.keys.set('nodes', pending);
    await site.handler(deployEvent);
    expect(site.responses).toMatchObject([{ Status: 'SUCCESS' }]);
    for (const action of ['init', 'show'])
      expect(await site.handler({ action })).toMatchObject({
        cas: [{ ok: false, why: 'AwaitsImport', message: expect.stringMatching(next) as string }],
      });
    expect(site.log.map(({ level }) => level)).toEqual(['info', 'info', 'info']);
    expect(site.records.size).toBe(0);
    await expect(authority(site, 'nodes')).rejects.toThrow(next);
  });
});

test('the days that are left: of CAs of every kind that are in force, and of the certificates above them', async () => {
  const site = await createSite(
    `{${root}, nodes: {kind: issued, issuedBy: root, subject: {commonName: prod nodes}, validity: 900d},
      nodes-2: {replaces: nodes, subject: {commonName: prod nodes 2}, validity: 700d},
      corp: {kind: imported, subject: {commonName: Corp CA}}, awaited: {kind: imported, subject: {commonName: Later}}}`,
    'nodes',
  );
  await site.handler({ action: 'init' });
  // An imported certificate may outlive the root above it.
  const nodes = site.records.get('nodes-2')!;
  site.records.set('corp', { ...nodes, name: 'corp', chain: [site.records.get('root')!.certificate] });
  site.keys.set('corp', site.keys.get('nodes-2')!);
  await site.handler({ action: 'show' });
  expect(site.log.at(-1)).toMatchObject({
    action: 'show',
    daysLeft: { root: 400, nodes: 400, 'nodes-2': 700, corp: 400 },
    cas: { awaited: 'AwaitsImport' },
  });
});
