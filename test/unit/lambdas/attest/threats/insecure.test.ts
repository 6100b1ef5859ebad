/**
 * Cluster API's kubelet authentication proposal, Insecure providers: such a provider has no rotation and no serving certificates, and only
 * its own signer. Real handlers and embedded stores.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parseConfiguration } from '../../../../../core/configuration/parse.ts';
import { signerOf } from '../../../../../core/policy/signer-names.ts';
import {
  awsSettings,
  audience,
  openSite,
  requestFor,
  signers,
  startAwsPlatform,
} from '../../../../harness/attestation/attested-site.ts';
import type { AttestedSite, AwsPlatform } from '../../../../harness/attestation/attested-site.ts';
import { newKey } from '../../../../harness/x509/requests.ts';

const profile = { ca: 'ca', maxTtl: '1d' };
const ofProviders = (...providers: readonly string[]) => ({ ...profile, attestation: { providers } });
const attestation = { audience: audience('prod'), aws: awsSettings };

let platform: AwsPlatform;
const open: AttestedSite[] = [];
beforeAll(async () => {
  platform = await startAwsPlatform();
});
afterEach(() => {
  for (const site of open.splice(0)) site.close();
});
afterAll(() => platform.close());

const key = newKey('P-256');
const joining = () => requestFor({ signerName: signers.insecureClient, key });

async function joined(): Promise<AttestedSite> {
  const profiles = { [signers.insecureClient]: profile, [signers.serving]: ofProviders('aws') };
  const site = await openSite({
    clusters: { prod: { profiles, attestation } },
    aws: platform.ports,
    now: platform.now,
  });
  open.push(site);
  expect((await site.sign(joining())).said).toBe('issued');
  return site;
}

describe('a registered node of the insecure provider', () => {
  test('gets its first certificate again with the same key, and cannot rotate it', async () => {
    const site = await joined();
    expect((await site.sign(joining())).said).toBe('issued');
    const rotations = { 'as the node': 'node', 'with the bootstrap token': 'bootstrap' } as const;
    const said = await Promise.all(
      Object.values(rotations).map(
        async (by) => (await site.sign(requestFor({ signerName: signers.insecureClient, by }))).said,
      ),
    );
    expect(said).toEqual(['RequesterNotAllowed', 'TofuReuse']);
    // The same key does not make the node a permitted requester either.
    expect((await site.sign(requestFor({ signerName: signers.insecureClient, by: 'node', key }))).said).toBe(
      'RequesterNotAllowed',
    );
  });

  test.each(['node', 'bootstrap'] as const)('gets no serving certificate: as %s', async (by) => {
    const site = await joined();
    const sans = { dns: ['worker-1'] };
    const said = (await site.sign(requestFor({ signerName: signers.serving, by, csr: { sans } }))).said;
    expect(said).toBe(by === 'node' ? 'IdentityNotAllowed' : 'RequesterNotAllowed');
  });
});

describe('the insecure provider has one signer', () => {
  const problems = (profiles: object): string => {
    const cluster = { cas: { ca: { subject: { commonName: 'x' } } }, profiles, attestation };
    const parsed = parseConfiguration(JSON.stringify({ version: 1, clusters: { prod: cluster } }), 'countersign.yaml');
    return parsed.ok ? '' : parsed.problem.map(({ path, message }) => `${path}: ${message}`).join('\n');
  };

  test('no serving signer', () => {
    expect(signerOf('cluster.x-k8s.io/kubelet-serving-insecure')).toBeUndefined();
    expect(problems({ 'cluster.x-k8s.io/kubelet-serving-insecure': profile })).toMatch(
      /names under cluster\.x-k8s\.io/,
    );
  });

  test.each([signers.client, signers.serving])('%s cannot take it', (signer) => {
    expect(problems({ [signer]: ofProviders('aws', 'insecure') })).toMatch(
      /providers\[1\]: has a signer of its own: cluster\.x-k8s\.io\/kube-apiserver-client-kubelet-insecure/,
    );
  });

  test('its signer takes no other provider, and does not renew', () => {
    expect(problems({ [signers.insecureClient]: ofProviders('aws') })).toMatch(
      /the name of this signer says it: insecure/,
    );
    expect(problems({ [signers.insecureClient]: { ...profile, requester: { nodeItself: true } } })).toMatch(
      /an insecure signer does not renew/,
    );
  });

  test('nothing secure stands beside it', () => {
    expect(problems({ [signers.insecureClient]: profile, [signers.client]: ofProviders('aws') })).toMatch(
      /gives without proof of the machine the node names/,
    );
  });
});
