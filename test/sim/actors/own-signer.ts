/**
 * A corpus of requests for a signer of the operator's own: for each limit of its profile one that meets it and one that
 * misses it. All are approved, so that the profile alone stands between a request and a certificate.
 */
import { makeRequest } from '../../harness/x509/requests.ts';
import type { RequestSpec } from '../../harness/x509/requests.ts';
import { ownSigner } from '../own-profile.ts';
import { keyOf } from './requests.ts';
import { person } from './simulated-cluster.ts';
import type { Asker, Life } from './simulated-cluster.ts';

interface Sent {
  readonly request?: Omit<RequestSpec, 'key'>;
  readonly usages?: readonly string[];
  readonly by?: Asker;
}

const shop = { dns: ['a.shop.example.com'] };
const web = person('web-1');

/** Limit → what meets it, what misses it. */
const corpus: Readonly<Record<string, { readonly met: Sent; readonly missed: Sent }>> = {
  'common name': {
    met: { request: { subject: { CN: 'web-1' }, sans: shop } },
    missed: { request: { subject: { CN: 'api' }, sans: shop } },
  },
  organization: {
    met: { request: { subject: { O: 'shop' }, sans: shop } },
    missed: { request: { subject: { O: ['shop', 'bank'] }, sans: shop } },
  },
  'reserved name': { met: {}, missed: { request: { subject: { O: 'system:masters' }, sans: shop } } },
  'another attribute': { met: {}, missed: { request: { subject: { CN: 'web', OU: 'x' }, sans: shop } } },
  'a required name': { met: {}, missed: { request: { subject: { CN: 'web' } } } },
  'DNS name': {
    met: { request: { sans: { dns: ['a.shop.example.com', 'b.shop.example.com'] } } },
    missed: { request: { sans: { dns: ['a.shop.example.com', 'a.bank.example.com'] } } },
  },
  address: {
    met: { request: { sans: { ip: ['10.96.0.1'] } } },
    missed: { request: { sans: { ip: ['10.95.0.1'] } } },
  },
  URI: {
    met: { request: { sans: { uri: ['spiffe://example.com/ns/shop/sa/web'] } } },
    missed: { request: { sans: { uri: ['spiffe://example.com/ns/bank/sa/web'] } } },
  },
  'a type without a list': { met: {}, missed: { request: { sans: { ...shop, email: ['a@example.com'] } } } },
  'usages allowed': {
    met: { usages: ['server auth'] },
    missed: { usages: ['digital signature', 'server auth', 'client auth'] },
  },
  'usages required': { met: {}, missed: { usages: ['digital signature'] } },
  requester: { met: { by: person('web-2') }, missed: { by: person('eve') } },
};

export function settleOwnSigner(life: Life): void {
  const { random, at, soon, sometime, requests } = life;

  function askOnce(): void {
    const [limit, { met, missed }] = random.pick(entries);
    const sound = random.chance(0.5);
    const key = 40 + random.below(2);
    const { request = { sans: shop }, usages = ['digital signature', 'server auth'], by = web } = sound ? met : missed;
    const { bytes } = makeRequest({ subject: { CN: 'web' }, ...request, key: keyOf(key) });
    const uid = life.ask({
      what: `${by.username} asks for a certificate that ${sound ? 'meets' : 'misses'} the limit on: ${limit}`,
      signerName: ownSigner,
      request: bytes.toString('base64'),
      spki: keyOf(key).spki,
      by,
      usages,
      sound,
      plain: sound,
    });
    const name = requests.objects().find(({ metadata }) => metadata.uid === uid)?.metadata.name ?? '';
    soon(15_000, () => life.decide(name, uid, 'Approved'));
  }
  for (let number = 0; number < 1 + random.below(3); number += 1) at(sometime(), askOnce);
}

const entries = Object.entries(corpus) as unknown as [
  readonly [string, (typeof corpus)[string]],
  ...(readonly [string, (typeof corpus)[string]])[],
];
