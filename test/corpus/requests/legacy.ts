/**
 * kubernetes.io/legacy-unknown: no served version of the API can create such a request, but clusters that were
 * upgraded from v1beta1 may hold some, and the webhook protocol can bring one. Also what v1beta1 made of a request that
 * names no signer.
 */
import { makeRequest } from '../../harness/x509/requests.ts';
import { knownUsages } from '../../../core/x509/key-usages.ts';
import { freeSanTypes } from './cases.ts';
import type { CorpusCase } from './cases.ts';
import { corpusKeyKinds } from './keys.ts';
import type { KeyPool } from './keys.ts';
import { extensions, lifetimes, sans } from './names.ts';
import type { Random } from './random.ts';
import { freeSubject } from './subjects.ts';

export const legacyUnknown = 'kubernetes.io/legacy-unknown';

/** It signs whatever it is asked, so every usage appears, alone and together with any others. */
export function generateLegacyCorpus(random: Random, keys: KeyPool, perKeyKind: number): CorpusCase[] {
  const usagesLeft = new Set<string>(knownUsages);
  const count = corpusKeyKinds.length * perKeyKind;
  return Array.from({ length: count }, (_, index): CorpusCase => {
    const keyKind = corpusKeyKinds[index % corpusKeyKinds.length]!;
    // Each once with a key on a curve: those are recorded, being short.
    const [next] = keyKind.startsWith('RSA') ? [] : usagesLeft;
    const usage = next ?? random.pick(knownUsages);
    usagesLeft.delete(usage);
    const others = random.some(knownUsages, 0, random.chance(0.2) ? knownUsages.length : 4);
    const expirationSeconds = random.pick(lifetimes);
    const subject = freeSubject(random);
    const sanTypes = freeSanTypes(subject, random);
    const { bytes } = makeRequest({
      key: keys.take(keyKind, random),
      subject,
      ...(sanTypes.length === 0 ? {} : { sans: sans(sanTypes, random) }),
      extensions: extensions(random),
    });
    return {
      name: `legacy-${String(index).padStart(3, '0')}`,
      signerName: legacyUnknown,
      keyKind,
      decision: 'issued',
      fate: 'approved',
      request: bytes,
      // Objects of v1beta1 may name a usage twice; `signing` and `s/mime` are second names of others.
      usages: random.shuffled([usage, ...others, ...(random.chance(0.2) ? [usage] : [])]),
      ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
    };
  });
}

/** A v1beta1 object as a client of those days wrote it: no signerName, perhaps no usages. */
export interface NamelessRequest {
  readonly name: string;
  readonly keyKind: string;
  readonly request: Buffer;
  readonly usages?: readonly string[];
}

/** Around the two recognised forms: each of their conditions broken alone, at least once for some kind of key. */
export function generateNamelessRequests(random: Random, keys: KeyPool): NamelessRequest[] {
  const node = { O: 'system:nodes', CN: 'system:node:n1' };
  const client = ['digital signature', 'client auth'];
  const serving = ['digital signature', 'server auth'];
  const forms: readonly (Pick<NamelessRequest, 'usages'> & { spec: Parameters<typeof makeRequest>[0] })[] = [
    { spec: { subject: node }, usages: client },
    { spec: { subject: node }, usages: ['client auth', 'key encipherment', 'digital signature'] },
    { spec: { subject: node, sans: { dns: ['n1'] } }, usages: serving },
    { spec: { subject: node, sans: { ip: ['10.0.0.1'] } }, usages: [...serving, 'key encipherment'] },
    { spec: { subject: node, sans: { dns: ['n1'] } }, usages: client },
    { spec: { subject: node, sans: { ip: ['10.0.0.1'] } }, usages: client },
    { spec: { subject: node, sans: { email: ['a@example.com'] } }, usages: client },
    { spec: { subject: node, sans: { uri: ['urn:a:b'] } }, usages: client },
    { spec: { subject: node }, usages: serving },
    { spec: { subject: node, sans: { dns: ['n1'], email: ['a@example.com'] } }, usages: serving },
    { spec: { subject: node, sans: { ip: ['::1'], uri: ['urn:a:b'] } }, usages: serving },
    { spec: { subject: { CN: 'system:node:n1' } }, usages: client },
    { spec: { subject: { O: ['system:nodes', 'others'], CN: 'system:node:n1' } }, usages: client },
    { spec: { subject: { O: 'system:nodes', CN: 'n1' } }, usages: client },
    { spec: { subject: { O: 'system:nodes', CN: 'n1' }, sans: { dns: ['n1'] } }, usages: serving },
    { spec: { subject: node }, usages: ['client auth'] },
    { spec: { subject: node }, usages: ['signing', 'client auth'] },
    { spec: { subject: node, sans: { dns: ['n1'] } }, usages: [...serving, 'client auth'] },
    { spec: { subject: { CN: 'anybody' } }, usages: client },
    { spec: { subject: { CN: 'anybody' } } },
    { spec: { subject: node } },
  ];
  return forms.map(({ spec, usages }, index) => {
    const keyKind = random.pick(corpusKeyKinds);
    const { bytes } = makeRequest({ ...spec, key: keys.take(keyKind, random) });
    return {
      name: `nameless-${String(index).padStart(2, '0')}`,
      keyKind,
      request: bytes,
      ...(usages === undefined ? {} : { usages }),
    };
  });
}
