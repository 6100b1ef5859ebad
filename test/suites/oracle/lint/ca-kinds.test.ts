/**
 * Every kind of CA (docs/ca/sources.md): the linters on its certificate, on leaves under it and on its CRL; OpenSSL with -crl_check, Node and
 * a real kube-apiserver, whose --client-ca-file is the issuing CA alone, on the chain.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createEmbeddedCa, findEmbeddedCa } from '../../../../adapters/embedded/authority.ts';
import { importEmbeddedCa, requestForEmbedded } from '../../../../adapters/embedded/imported-authority.ts';
import { readImport } from '../../../../core/ca/import/files.ts';
import type { CaConfiguration, ImportedCa } from '../../../../core/configuration/model/cluster.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import { issueCrl, maySignCrls } from '../../../../core/revocation/issue-crl.ts';
import type { Authority } from '../../../../core/x509/leaf-certificate.ts';
import { ourSigner } from '../../../corpus/ask.ts';
import { objectOf } from '../../../corpus/replay.ts';
import { createApiClient } from '../../../harness/kubernetes/api-client.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { lintCertificates, lintCrls } from '../../../harness/x509/lint-tools.ts';
import type { Finding, LintReport } from '../../../harness/x509/lint-tools.ts';
import { makeRequest, newKey } from '../../../harness/x509/requests.ts';
import type { TestKey } from '../../../harness/x509/requests.ts';
import { kubernetesVersion } from '../../../tools/pins.ts';
import { requireTools, toolPath } from '../../../tools/tools.ts';

const { skip } = await requireTools('zlint', 'pkilint', 'etcd', 'kube-apiserver', 'kubeadm');

const configuration = `{version: 1, clusters: {demo: {
  cas: {
    own: {subject: {commonName: own CA, organization: Example}, keySpec: P-384},
    root: {subject: {commonName: own root}, keySpec: RSA-3072, pathLen: 1},
    issued: {kind: issued, issuedBy: root, subject: {commonName: issued CA}},
    below: {kind: imported, keySpec: RSA-2048, subject: {commonName: below a corporate root}},
    deep: {kind: imported, subject: {commonName: below an intermediate}},
    kubeadm-rsa: {kind: imported, keyMaterial: imported, keySpec: RSA-2048, subject: {commonName: kubernetes}},
    kubeadm-ec: {kind: imported, keyMaterial: imported, subject: {commonName: kubernetes}},
    openssl: {kind: imported, keyMaterial: imported, keySpec: RSA-4096, subject: {commonName: made by openssl}}},
  profiles: {kubernetes.io/kube-apiserver-client: {ca: own}}}}}`;
const kinds = ['own', 'issued', 'below', 'deep', 'kubeadm-rsa', 'kubeadm-ec', 'openssl'] as const;
type Kind = (typeof kinds)[number];

/** What the linters say about certificates that other programs made, before Countersign. They cannot be changed. Each entry was looked at. */
const existing: Readonly<Partial<Record<Kind, readonly string[]>>> = {
  // Its subjectAltName is DNS:kubernetes, and its keyUsage has keyEncipherment.
  'kubeadm-rsa': ['pkilint pkix.invalid_domain_name_syntax', 'zlint e_rsa_allowed_ku_no_encipherment_ca'],
  'kubeadm-ec': [
    'pkilint pkix.invalid_domain_name_syntax',
    'pkilint pkix.key_usage_value_prohibited_for_ec',
    'zlint e_ecdsa_allowed_ku',
  ],
  // openssl req -x509 writes no keyUsage.
  openssl: ['pkilint pkix.ca_certificate_no_ku_extension'],
};

interface Site {
  readonly authority: Authority;
  readonly certificatePem: string;
  /** The CAs above it, nearest first, the root last. */
  readonly above: readonly string[];
  readonly leaves: readonly { readonly pem: string; readonly key: TestKey }[];
  readonly crlPem: string | undefined;
}

describe.skipIf(skip)('each kind of CA', () => {
  const folder = temporaryFolder('ca-kinds');
  const data = join(folder.path, 'data');
  const now = Date.now();
  const sites = new Map<Kind, Site>();
  const certificateReports = new Map<Kind, LintReport>();
  const leafReports = new Map<Kind, readonly LintReport[]>();
  let plane: ControlPlane;

  const write = (name: string, text: string): string => {
    writeFileSync(join(folder.path, name), text);
    return join(folder.path, name);
  };
  const openssl = (...args: readonly string[]): string =>
    execFileSync('openssl', args, { cwd: folder.path, encoding: 'utf8', stdio: 'pipe' });

  const parsed = parseConfiguration(configuration, 'countersign.yaml');
  if (!parsed.ok) throw new Error(parsed.problem.map(({ message }) => message).join('; '));
  const { cas } = parsed.value.configuration.clusters.get('demo')!;
  const imported = (name: Kind): ImportedCa => cas.get(name) as ImportedCa;

  async function put(kind: Kind, files: Parameters<typeof readImport>[0], keyPem?: string): Promise<void> {
    const read = readImport(files);
    if (!read.ok) throw new Error(read.problem.message);
    const key = keyPem === undefined ? {} : { privateKey: createPrivateKey(keyPem) };
    const result = await importEmbeddedCa(data, imported(kind), read.value, Date.now(), key);
    if (!result.ok) throw new Error(`${kind}: ${result.problem.message}`);
  }

  /** `countersign ca csr`, signed by an offline CA with openssl. */
  async function signed(kind: Kind, by: string): Promise<string> {
    const request = await requestForEmbedded(data, imported(kind));
    if (!request.ok) throw new Error(request.problem.message);
    write(`${kind}.csr`, toPem('CERTIFICATE REQUEST', request.value));
    const sign = ['x509', '-req', '-in', `${kind}.csr`, '-CA', `${by}.crt`, '-CAkey', `${by}.key`, '-days', '20'];
    return openssl(...sign, '-copy_extensions', 'copyall');
  }

  async function makeCas(): Promise<void> {
    for (const name of ['own', 'root', 'issued'])
      await createEmbeddedCa(data, cas.get(name) as CaConfiguration, { now, randomBytes });
    const usage = ['-addext', 'keyUsage=critical,keyCertSign,cRLSign'];
    const p384 = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384', '-nodes', '-days', '30'];
    openssl(
      'req',
      '-x509',
      ...p384,
      '-subj',
      '/O=Corp/CN=Corp Root',
      ...usage,
      '-keyout',
      'corp.key',
      '-out',
      'corp.crt',
    );
    openssl('req', ...p384, '-subj', '/O=Corp/CN=Corp Middle', '-keyout', 'middle.key', '-out', 'middle.csr');
    write('middle.cnf', 'basicConstraints=critical,CA:TRUE,pathlen:1\nkeyUsage=critical,keyCertSign,cRLSign\n');
    const toMiddle = ['x509', '-req', '-in', 'middle.csr', '-CA', 'corp.crt', '-CAkey', 'corp.key', '-days', '25'];
    const middle = openssl(...toMiddle, '-extfile', 'middle.cnf');
    write('middle.crt', middle);
    const corp = readFileSync(join(folder.path, 'corp.crt'), 'utf8');
    await put('below', { certificate: await signed('below', 'corp'), root: corp });
    await put('deep', { certificate: await signed('deep', 'middle'), chain: middle, root: corp });
    for (const [kind, algorithm] of [
      ['kubeadm-rsa', 'RSA-2048'],
      ['kubeadm-ec', 'ECDSA-P256'],
    ] as const) {
      const pki = join(folder.path, kind);
      mkdirSync(pki);
      const file = write(
        `${kind}.yaml`,
        `apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nlocalAPIEndpoint: {advertiseAddress: 192.0.2.1}\n---
apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v${kubernetesVersion}
encryptionAlgorithm: ${algorithm}\ncertificatesDir: ${pki}\n`,
      );
      execFileSync(await toolPath('kubeadm'), ['init', 'phase', 'certs', 'ca', '--config', file], { stdio: 'pipe' });
      const [certificate, key] = ['ca.crt', 'ca.key'].map((name) => readFileSync(join(pki, name), 'utf8'));
      await put(kind, { certificate: certificate! }, key);
    }
    const self = ['req', '-x509', '-newkey', 'rsa:4096', '-nodes', '-days', '30', '-subj', '/CN=made by openssl'];
    openssl(...self, '-keyout', 'self.key', '-out', 'self.crt');
    const [certificate, key] = ['self.crt', 'self.key'].map((name) => readFileSync(join(folder.path, name), 'utf8'));
    await put('openssl', { certificate: certificate! }, key);
  }

  /** What a cluster asks for, by the names of its signers. */
  const asked = [
    ['kube-apiserver-client', { subject: { O: 'developers', CN: 'alice' } }, ['digital signature', 'client auth']],
    [
      'kube-apiserver-client-kubelet',
      { subject: { O: 'system:nodes', CN: 'system:node:n1' } },
      ['digital signature', 'client auth'],
    ],
    [
      'kubelet-serving',
      {
        subject: { O: 'system:nodes', CN: 'system:node:n1' },
        sans: { dns: ['n1.example.com'], ip: ['10.0.0.1'] },
      },
      ['digital signature', 'server auth'],
    ],
  ] as const;

  async function siteOf(kind: Kind): Promise<Site> {
    const found = (await findEmbeddedCa(data, kind))!;
    const { authority } = found;
    const certificatePem = toPem('CERTIFICATE', authority.certificate);
    const keyPem = readFileSync(join(data, kind, 'key.pem'), 'utf8');
    const certificate = Buffer.from(authority.certificate);
    const signer = ourSigner(
      { key: createPrivateKey(keyPem), keyPem, certificate, certificatePem },
      { maxTtlSeconds: 86_400 },
    );
    const leaves: { pem: string; key: TestKey }[] = [];
    for (const [name, request, usages] of asked) {
      const key = newKey('P-256');
      const object = objectOf(
        {
          signerName: `kubernetes.io/${name}`,
          request: makeRequest({ ...request, key }).bytes.toString('base64'),
          usages,
          conditions: ['Approved'],
        },
        `${kind}-${name}`,
      );
      const said = await signer.ask(object, Math.floor(Date.now() / 1000));
      if (said.kind !== 'issued') throw new Error(`${kind}: ${JSON.stringify(said)}`);
      leaves.push({ pem: said.certificatePem, key });
    }
    signer.close();
    let crlPem: string | undefined;
    if (maySignCrls(authority)) {
      const serial = new X509Certificate(leaves[0]!.pem).serialNumber.toLowerCase();
      const entries = [{ serial, at: now - 1_000, reason: 'keyCompromise' as const }];
      const template = { number: 1, thisUpdate: now - 60_000, nextUpdate: now + 86_400_000, entries };
      crlPem = toPem('X509 CRL', (await issueCrl(template, authority)).der);
    }
    return { authority, certificatePem, above: found.chain.map((der) => toPem('CERTIFICATE', der)), leaves, crlPem };
  }

  beforeAll(async () => {
    [plane] = await Promise.all([startControlPlane(), makeCas()]);
    for (const kind of kinds) sites.set(kind, await siteOf(kind));
    const subjects = kinds.flatMap((kind) => {
      const { certificatePem, above, leaves } = sites.get(kind)!;
      return [
        { certificatePem, ...(above[0] === undefined ? {} : { issuerPem: above[0] }) },
        ...leaves.map(({ pem }) => ({ certificatePem: pem, issuerPem: certificatePem })),
      ];
    });
    const reports = await lintCertificates(subjects);
    for (const [index, kind] of kinds.entries()) {
      const [own, ...more] = reports.slice(index * (1 + asked.length), (index + 1) * (1 + asked.length));
      certificateReports.set(kind, own!);
      leafReports.set(kind, more);
    }
  }, 120_000);
  afterAll(async () => {
    await plane?.stop();
    folder.remove();
  });

  const names = (findings: readonly Finding[]): string[] =>
    findings.map(({ tool, lint }) => `${tool} ${lint}`).toSorted();

  test.each(kinds)('%s: the linters on its certificate', (kind) => {
    expect(names(certificateReports.get(kind)!.findings)).toEqual(existing[kind] ?? []);
  });

  test.each(kinds)('%s: the linters on leaves under it', (kind) => {
    expect(leafReports.get(kind)!.flatMap(({ findings }) => names(findings))).toEqual([]);
  });

  test('the linters on its CRL; a CA of kubeadm signs none', async () => {
    const crls = kinds.flatMap((kind) => sites.get(kind)!.crlPem ?? []);
    expect(kinds.filter((kind) => sites.get(kind)!.crlPem === undefined)).toEqual(['kubeadm-rsa', 'kubeadm-ec']);
    expect((await lintCrls(crls)).flatMap(({ findings }) => names(findings))).toEqual([]);
    // A linter that finds nothing proves nothing: the reason 7 is not in RFC 5280, and 2.5.29.126 is not cRLNumber.
    const der = Buffer.from(crls[0]!.replaceAll(/-----[A-Z0-9 ]+-----|\s/g, ''), 'base64').toString('hex');
    const planted = der.replace('0603551d1504030a0101', '0603551d1504030a0107').replace('0603551d14', '0603551d7e');
    const [report] = await lintCrls([toPem('X509 CRL', Buffer.from(planted, 'hex'))]);
    expect(names(report!.findings)).toEqual(
      expect.arrayContaining(['pkilint pkix.crl_number_missing', 'zlint e_crl_has_valid_reason_code']),
    );
  });

  const verify = (kind: Kind, leaf: string, ...flags: readonly string[]): string => {
    const { certificatePem, above } = sites.get(kind)!;
    const root = above.at(-1) ?? certificatePem;
    const between = [certificatePem, ...above].slice(0, above.length).join('');
    const untrusted = between === '' ? [] : ['-untrusted', write('between.pem', between)];
    const args = ['verify', '-no-CApath', '-no-CAstore', ...flags, '-CAfile', write('root.pem', root), ...untrusted];
    const { status, stdout, stderr } = spawnSync('openssl', [...args, write('leaf.pem', leaf)], { encoding: 'utf8' });
    return status === 0 ? 'OK' : stdout + stderr;
  };

  test.each(kinds)('%s: openssl verifies its leaves to the root, Node each link of the chain', (kind) => {
    const { certificatePem, above, leaves } = sites.get(kind)!;
    for (const { pem } of leaves) {
      // -x509_strict asks for the keyUsage that openssl’s own CA does not have.
      expect(verify(kind, pem, ...(kind === 'openssl' ? [] : ['-x509_strict']))).toBe('OK');
      const chain = [pem, certificatePem, ...above].map((text) => new X509Certificate(text));
      for (const [index, certificate] of chain.entries()) {
        const issuer = chain[index + 1] ?? certificate;
        expect(certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)).toBe(true);
      }
    }
  });

  test.each(kinds.filter((kind) => !kind.startsWith('kubeadm')))('%s: openssl verify -crl_check', (kind) => {
    const { leaves, crlPem } = sites.get(kind)!;
    const [revoked, ...others] = leaves;
    const check = ['-crl_check', '-CRLfile', write('crl.pem', crlPem!)];
    for (const { pem } of others) expect(verify(kind, pem, ...check)).toBe('OK');
    expect(verify(kind, revoked!.pem, ...check)).toContain('certificate revoked');
  });

  test('kube-apiserver accepts the logins if its file of CAs has the issuing CAs alone, and refuses them before', async () => {
    const login = async ({ pem, key }: Site['leaves'][number]): Promise<string> => {
      const keyPem = key.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
      const client = createApiClient({
        url: plane.url,
        caPem: plane.servingCaPem,
        login: { certificatePem: pem, keyPem },
      });
      try {
        const answer = await client.request('/apis/authentication.k8s.io/v1/selfsubjectreviews', {
          method: 'POST',
          body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
        });
        const { status } = answer.json() as { status: { userInfo?: { username: string } } | string };
        return typeof status === 'string' ? String(answer.status) : (status.userInfo?.username ?? '');
      } finally {
        client.close();
      }
    };
    const logins = async (): Promise<readonly (readonly string[])[]> =>
      Promise.all(kinds.map((kind) => Promise.all(sites.get(kind)!.leaves.map(login))));
    expect(await logins()).toEqual(kinds.map(() => ['401', '401', '401']));
    await plane.restartApiServer({ clientCaPem: kinds.map((kind) => sites.get(kind)!.certificatePem).join('') });
    // A serving certificate is no login.
    expect(await logins()).toEqual(kinds.map(() => ['alice', 'system:node:n1', '401']));
  });
});
