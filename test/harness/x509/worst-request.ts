/**
 * The most expensive request that passes every cap, for the test that counts its steps and for the benchmark: as many
 * subjectAltNames, organizations and groups as a request may have, each of which only the last of as many patterns as a
 * profile may have permits. Beside it an ordinary request of the same signer.
 */
import { randomUUID } from 'node:crypto';
import { parseConfiguration } from '../../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../../core/configuration/model/cluster.ts';
import { makeRequest } from './requests.ts';
import type { RequestSpec } from './requests.ts';

export const worstSigner = 'k8s.example.com/worst';

const patterns = 256;
const names = 256;
const attributes = 256;
const groups = 1_024;

function times<T>(count: number, of: (index: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, index) => of(index));
}

/** The last of them permits what the request asks for; the others come close. */
function patternsOf(close: (index: number) => string, last: string): readonly string[] {
  return [...times(patterns - 1, close), last];
}

export function worstCluster(): ClusterConfiguration {
  const file = {
    version: 1,
    clusters: {
      demo: {
        cas: { ca: { subject: { commonName: 'demo CA' } } },
        reservedNames: times(patterns, (index) => `reserved-*-${index}`),
        profiles: {
          [worstSigner]: {
            requester: { groups: patternsOf((index) => `*team-*-${index}-*`, 'team-*-member') },
            subject: {
              commonNames: ['worst'],
              organizations: patternsOf((index) => `*unit-*-${index}-*`, 'unit-*-worst'),
            },
            usages: { allowed: ['server auth'] },
            sans: {
              uri: patternsOf((index) => `spiffe://example.com/*/*/${index}-*`, 'spiffe://example.com/*/*/web'),
            },
          },
        },
      },
    },
  };
  const parsed = parseConfiguration(JSON.stringify(file), 'worst.json');
  if (!parsed.ok) throw new Error(parsed.problem.map(({ path, message }) => `${path} ${message}`).join('\n'));
  const cluster = parsed.value.configuration.clusters.get('demo');
  if (cluster === undefined) throw new Error('no such cluster');
  return cluster;
}

/** As the API server stores it, approved; with a UID of its own each time. */
export type ApprovedObject = Readonly<Record<string, unknown>>;

export interface WorstOptions {
  readonly names?: number;
  readonly attributes?: number;
  readonly groups?: number;
  /** Instead of names: addresses, of which more fit into a request. */
  readonly addresses?: number;
  /** Of no group that the profile names. */
  readonly stranger?: true;
}

export function worstRequest(options: WorstOptions = {}): ApprovedObject {
  const { names: sans = names, attributes: parts = attributes, groups: count = groups } = options;
  const path = 'segment-'.repeat(12);
  const spec: RequestSpec = {
    subject: { O: times(parts - 1, (index) => `unit-${index}-worst`), CN: 'worst' },
    sans:
      options.addresses === undefined
        ? { uri: times(sans, (index) => `spiffe://example.com/${path}${index}/${path}/web`) }
        : { ip: times(options.addresses, (index) => `10.0.${index >> 8}.${index & 255}`) },
  };
  const member = options.stranger === true ? 'nobody' : 'team-a-member';
  return approvedObject(spec, [...times(count - 1, (index) => `team-${index}-x-group`), member]);
}

export function ordinaryRequest(): ApprovedObject {
  return approvedObject(
    { subject: { O: 'unit-1-worst', CN: 'worst' }, sans: { uri: ['spiffe://example.com/a/b/web'] } },
    ['team-a-member'],
  );
}

function approvedObject(spec: RequestSpec, groupsOfRequester: readonly string[]): ApprovedObject {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'worst', uid: randomUUID() },
    spec: {
      signerName: worstSigner,
      request: makeRequest(spec).bytes.toString('base64'),
      usages: ['server auth'],
      username: 'worst',
      groups: groupsOfRequester,
    },
    status: { conditions: [{ type: 'Approved', status: 'True', reason: 'Worst', message: 'approved' }] },
  };
}
