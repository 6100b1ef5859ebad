/** The two clusters of a run, which together have every authentication method, and a service account of ours. */
import { randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { parseConfiguration } from '../../core/configuration/parse.ts';
import type { Configuration } from '../../core/configuration/model/cluster.ts';
import type { Place } from './names.ts';
import type { Machines } from './emulator.ts';

export interface ClusterPlan {
  readonly configuration: Configuration;
  /** The same with another CA in `api`, `next`, which signs for one signer. */
  readonly withNextCa: Configuration;
  /** With an HTTP API for roles and one for tokens, and machines that prove themselves. */
  readonly api: string;
  /** With a Function URL. */
  readonly url: string;
  /** Names of the roles that the caller roles trust, as the role of a relay. */
  readonly relay: string;
  /** The same, without the right to pass session tags. */
  readonly untagged: string;
  /** A token of the service account; `audience`: the one that is let in, unless another is named. */
  token(audience?: string): Promise<string>;
}

/** The signer whose requests need a proof of their machine. */
export const nodeSigner = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws';
/** With the name of the run, on everything in EC2. */
export const runTag = 'countersign:acceptance';

export async function planClusters(
  name: string,
  place: Place,
  principal: string,
  machines: Machines | undefined,
): Promise<ClusterPlan> {
  const { partition, account, region } = place;
  const keys = await generateKeyPair('ES256');
  const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(keys.publicKey)), kid: name, alg: 'ES256' }] });
  const issuer = `https://${name}.example.com`;
  const subject = 'system:serviceaccount:countersign-system:countersign-watch-relay';
  const [api, url, relay, untagged] = [name, `${name}-url`, `${name}-relay`, `${name}-untagged`];
  const profile = { ca: 'ca', maxTtl: '1h' };
  const profiles = {
    'kubernetes.io/kube-apiserver-client': profile,
    'kubernetes.io/kube-apiserver-client-kubelet': profile,
    'kubernetes.io/kubelet-serving': profile,
  };
  const fresh = {
    ...profile,
    freshKeys: true,
    usages: { allowed: ['digital signature', 'server auth'], required: ['server auth'] },
    sans: { dns: ['*.accept.example.com'], required: true },
  };
  const common = (commonName: string) => ({
    cas: { ca: { subject: { commonName } } },
    profiles,
    keys: { deleters: [principal] },
    // A new account may have a quota of 10: then preflight says so before anything is made.
    limits: { reservedConcurrency: 5 },
    logs: { retentionDays: 1 },
    aws: { account, region },
  });
  const principals = [relay, untagged].map((role) => `arn:${partition}:iam::${account}:role/${role}`);
  // Without aws/v1, so that no certificate of the region is needed.
  const attestation = {
    aws: {
      accounts: { [account]: {} },
      regions: [region],
      tags: { [runTag]: name },
      nodeName: ['tag:Name'],
      acceptV1: false,
      ...machines?.attestation,
    },
  };
  const ofApi = {
    ...profiles,
    'kubernetes.io/kube-apiserver-client-kubelet': { ...profile, attestation: { providers: ['aws'], mode: 'audit' } },
    [nodeSigner]: profile,
  };
  const configured = (next: boolean): Configuration => {
    const cluster = common(api);
    const cas = next ? { ...cluster.cas, next: { subject: { commonName: `${api} next` } } } : cluster.cas;
    const text = JSON.stringify({
      version: 1,
      clusters: {
        [api]: {
          ...cluster,
          cas,
          profiles: next ? { ...ofApi, 'kubernetes.io/kube-apiserver-client': { ...profile, ca: 'next' } } : ofApi,
          attestation,
          access: { iam: { principals }, jwt: { issuer, audience: api, subjects: [subject], jwks } },
        },
        [url]: {
          ...common(url),
          // By its transactions the run sees how DynamoDB judges them (steps/rights.ts).
          profiles: { ...profiles, 'accept.example.com/fresh': fresh },
          frontDoor: 'functionUrl',
          access: { iam: { principals } },
        },
      },
    });
    const parsed = parseConfiguration(text, 'acceptance', { toDeploy: true });
    if (!parsed.ok) throw new Error(parsed.problem.map(({ path, message }) => `${path}: ${message}`).join('; '));
    return parsed.value.configuration;
  };
  return {
    configuration: configured(false),
    withNextCa: configured(true),
    api,
    url,
    relay,
    untagged,
    token(audience = api) {
      const now = Math.floor(Date.now() / 1_000);
      return new SignJWT({ sub: subject, jti: randomUUID() })
        .setProtectedHeader({ alg: 'ES256', kid: name })
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt(now)
        .setNotBefore(now)
        .setExpirationTime(now + 600)
        .sign(keys.privateKey);
    },
  };
}
