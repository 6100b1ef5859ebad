import 'reflect-metadata';
import { X509Crl } from '@peculiar/x509';
import { beforeAll, expect, test } from 'vitest';
import { revocationFixture } from '../../../contract/revocation/revocations.ts';
import { createSite, siteNow } from './site.ts';
import type { CaSite } from './site.ts';

const selfSigned = (name: string) => `${name}: {subject: {commonName: ${name}}}`;
let site: CaSite;
beforeAll(async () => {
  site = await createSite(`{${selfSigned('nodes')}, ${selfSigned('web')}}`, 'nodes');
});
const ask = (event: object) => site.handler({ action: 'crl', ...event });

test('a CA that does not exist yet has no CRL', async () => {
  expect(await ask({})).toMatchObject({
    crls: [
      { name: 'nodes', ok: false, why: 'Missing' },
      { name: 'web', ok: false },
    ],
  });
});

test('each CA gets a CRL, and one for each revocation', async () => {
  await site.handler({ action: 'init' });
  const first = { ok: true, issued: true, number: 1, entries: 0, serials: [] };
  expect(await ask({})).toMatchObject({
    cluster: 'prod',
    crls: [
      { name: 'nodes', ...first },
      { name: 'web', ...first },
    ],
  });
  const { keyId: caKeyId } = site.ports.key('nodes');
  const revocation = revocationFixture({ caKeyId, notAfter: siteNow + 3_600_000, at: siteNow });
  const { serial } = revocation;
  await site.ports.revocations.add(revocation);
  expect(await ask({ serials: [serial] })).toMatchObject({
    crls: [
      { name: 'nodes', issued: true, number: 2, entries: 1, serials: [serial] },
      { name: 'web', issued: false, number: 1, entries: 0, serials: [] },
    ],
  });
  expect(await ask({ ca: 'nodes', serials: [serial] })).toMatchObject({
    crls: [{ name: 'nodes', issued: false, number: 2, serials: [serial] }],
  });
  const stored = await site.ports.crls.findCrl(caKeyId);
  const [entry] = new X509Crl(new Uint8Array(stored!.der!)).entries;
  expect(entry?.serialNumber.replace(/^00/, '')).toBe(serial);
  expect(await ask({ ca: 'other' })).toMatchObject({ crls: [{ ok: false, why: 'UnknownCa' }] });
});

test.each([
  [{ serials: ['XY'] }],
  [{ serials: 'ab' }],
  [{ ca: 1 }],
  [{ other: true }],
  [{ serials: Array(1_001).fill('ab') }],
])('%j is no request', async (event) => {
  await expect(ask(event)).rejects.toThrow('the event is neither');
});

test('a CRL that ends soon is a trouble of the next look, and a fresh one is none', async () => {
  const day = 86_400_000;
  const own = await createSite(`{${selfSigned('nodes')}}`, 'nodes');
  await own.handler({ action: 'init' });
  const look = async () => {
    await own.handler({ action: 'show' });
    const { level, trouble, crlDaysLeft } = own.log.at(-1)!;
    return { level, trouble, crlDaysLeft };
  };
  // No CRL was issued yet: the schedule issues the first one at the same time.
  expect(await look()).toEqual({ level: 'info', trouble: undefined, crlDaysLeft: {} });
  await own.handler({ action: 'crl' });
  expect(await look()).toEqual({ level: 'info', trouble: undefined, crlDaysLeft: { nodes: 7 } });
  const { keyId: caKeyId } = own.ports.key('nodes');
  const end = async (number: number, left: number) =>
    own.ports.crls.putCrl({ caKeyId, number, thisUpdate: siteNow, nextUpdate: siteNow + left, revoked: [] });
  await end(2, 4 * day);
  expect(await look()).toEqual({ level: 'info', trouble: undefined, crlDaysLeft: { nodes: 4 } });
  await end(3, 4 * day - 1);
  expect(await look()).toEqual({ level: 'error', trouble: 'ca-faults', crlDaysLeft: { nodes: 3 } });
});
