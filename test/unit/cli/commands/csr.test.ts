import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { CsrApi } from '../../../../dev/csr-api/csr-api.ts';
import { startCsrApi } from '../../../../dev/csr-api/csr-api.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import type { RequestSpec } from '../../../harness/x509/requests.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';
import { wantsColours } from '../../../../cli/output/colours.ts';
import { run } from '../run.ts';

const serving: RequestSpec = {
  subject: { O: 'system:nodes', CN: 'system:node:n1' },
  sans: { dns: ['n1'], ip: ['10.0.0.1'] },
};

function csr(spec: RequestSpec, more: { spec?: object; status?: object; metadata?: object } = {}): object {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'csr-1', uid: 'uid-1', ...more.metadata },
    spec: {
      request: makeRequest(spec).bytes.toString('base64'),
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
      username: 'system:node:n1',
      groups: ['system:nodes'],
      ...more.spec,
    },
    status: { conditions: [{ type: 'Approved', status: 'True', reason: 'ByHand' }], ...more.status },
  };
}

interface Shown {
  readonly outcome: string;
  readonly reason?: string;
  readonly message: string;
  readonly checks: readonly { check: string; result: string; seen: string; violations: { code: string }[] }[];
  readonly validity?: { notBefore: string; notAfter: string };
  readonly droppedExtensions: readonly string[];
  readonly extensions: readonly object[];
  readonly rules: string;
}

async function explain(object: object, ...flags: string[]): Promise<Shown & { code: number; codes: string[] }> {
  const { code, out, err } = await run(['csr', 'explain', '-', '-o', 'json', ...flags], {
    files: { '-': JSON.stringify(object) },
  });
  if (out === '') throw new Error(err);
  const shown = JSON.parse(out) as Shown;
  return {
    ...shown,
    code,
    codes: shown.checks.flatMap(({ violations }) => violations.map((violation) => violation.code)),
  };
}

describe('the outcome of a request', () => {
  test.each<readonly [string, object, string, number, readonly string[]]>([
    ['approved', csr(serving), 'issue', 0, []],
    ['pending', csr(serving, { status: { conditions: [] } }), 'wait', 0, []],
    ['denied', csr(serving, { status: { conditions: [{ type: 'Denied' }] } }), 'denied', 1, []],
    ['failed', csr(serving, { status: { conditions: [{ type: 'Approved' }, { type: 'Failed' }] } }), 'failed', 1, []],
    ['issued', csr(serving, { status: { conditions: [{ type: 'Approved' }], certificate: 'eA==' } }), 'foreign', 1, []],
    ['foreign', csr(serving, { spec: { signerName: 'k8s.example.com/other' } }), 'ignore', 1, []],
    [
      'undecodable',
      csr(serving, { spec: { request: Buffer.from('x').toString('base64') } }),
      'refuse',
      1,
      ['RequestMalformed'],
    ],
    [
      'wrong in many ways, and pending',
      csr(
        { subject: { O: 'dev', CN: 'system:masters' }, key: 'RSA-1024', hash: 'sha1' },
        { status: { conditions: [] } },
      ),
      'refuse',
      1,
      [
        'SignerValidationFailure',
        'SignerValidationFailure',
        'SignerValidationFailure',
        'KeyNotPermitted',
        'KeyNotPermitted',
        'NameReserved',
      ],
    ],
  ])('%s', async (_, object, outcome, code, codes) => {
    expect(await explain(object)).toMatchObject({ outcome, code, codes });
  });

  test('a refusal has the text of the Failed condition', async () => {
    const shown = await explain(csr({ ...serving, subject: { O: 'dev', CN: 'x' } }));
    expect(shown.reason).toBe('SignerValidationFailure');
    expect(shown.message).toBe(
      'subject organization is not system:nodes; subject common name does not begin with system:node:',
    );
  });

  test('validity follows the request and the profile', async () => {
    const asked = await explain(csr(serving, { spec: { expirationSeconds: 7200 } }));
    expect(asked.validity).toEqual({ notBefore: '2026-06-01T11:55:00.000Z', notAfter: '2026-06-01T14:00:00.000Z' });
    const unasked = await explain(csr(serving));
    expect(unasked.validity?.notAfter).toBe('2026-07-01T11:55:00.000Z');
  });

  test('requested extensions that no certificate carries are listed', async () => {
    const extensions = [
      { oid: '2.5.29.19', critical: true, value: Buffer.from('30030101ff', 'hex') },
      { oid: '1.2.3.4', value: Buffer.from('0500', 'hex') },
    ];
    const shown = await explain(csr({ ...serving, extensions }));
    expect(shown.droppedExtensions).toEqual(['2.5.29.19', '1.2.3.4']);
    expect(shown.extensions).toEqual([
      { oid: '2.5.29.19', critical: true, name: 'Basic Constraints' },
      { oid: '1.2.3.4', critical: false },
    ]);
    expect((await explain(csr(serving))).extensions).toEqual([]);
  });
});

const heading =
  'csr-1 for kubernetes.io/kubelet-serving, cluster default (the default rules; --config names a countersign.yaml)';
const last = 'No: SignerValidationFailure: subject common name does not begin with system:node:';

const refusedForPeople = `${heading}

✗  common name begins with system:node:        "n1"
   → subject common name does not begin with system:node: [SignerValidationFailure]
…  approved, and not denied, failed or issued  pending
✓  13 checks hold, 3 do not apply (-v shows all)

${last}
`;

const allForPeople = `${heading}

✗  common name begins with system:node:                                    "n1"
   → subject common name does not begin with system:node: [SignerValidationFailure]
…  approved, and not denied, failed or issued                              pending
✓  the signer is one of this cluster’s                                     kubernetes.io/kubelet-serving
✓  readable, and signed with its own key                                   ECDSA P-256
✓  organization is exactly system:nodes                                    "system:nodes"
✓  a DNS or IP subjectAltName is present                                   "n1", "10.0.0.1"
✓  no Email subjectAltNames                                                none
✓  no URI subjectAltNames                                                  none
✓  usages are digital signature, server auth and at will key encipherment  "digital signature", "server auth"
✓  the profile permits this kind of key                                    ECDSA P-256
✓  the self-signature uses SHA-256, SHA-384, SHA-512 or Ed25519            SHA-256
✓  no reserved name beyond those this signer may give                      CN "n1", O "system:nodes"
✓  subjectAltNames are DNS, email, IP or URI                               no others
✓  DNS subjectAltNames are names of single hosts                           "n1"
✓  no subjectAltName is reserved (control plane, services, loopback …)     "n1", "10.0.0.1"
–  the requester is one the profile names, if it names any                 "system:node:n1", groups "system:nodes"
–  an RSA key has 2048 to 8192 bits                                        ECDSA P-256
–  the node name is one a Node can have                                    "n1"

${last}
`;

describe('as a table', () => {
  const object = csr({ ...serving, subject: { O: 'system:nodes', CN: 'n1' } }, { status: { conditions: [] } });
  const files = { 'csr.json': JSON.stringify(object) };

  test('what fails first, the checks that hold in one line, and the outcome last', async () => {
    const ran = await run(['csr', 'explain', 'csr.json'], { files });
    expect(ran).toEqual({ code: 1, err: '', out: refusedForPeople });
  });

  test.each(['-v', '--all'])('%s: every check with its sign and the value seen', async (flag) => {
    const ran = await run(['csr', 'explain', 'csr.json', flag], { files });
    expect(ran).toEqual({ code: 1, err: '', out: allForPeople });
  });

  test('colours on a terminal only, never from the request, and never in JSON', async () => {
    const hostile = csr({ subject: { O: 'a\u001b[31m', CN: '✗  b' } }, { status: { conditions: [] } });
    const world = { colours: true };
    const painted = await run(['csr', 'explain', 'csr.json', '-v'], { files, world });
    // oxlint-disable-next-line no-control-regex
    expect(painted.out.replaceAll(/\u001b\[\d+m/g, '')).toBe(allForPeople);
    expect(painted.out).toContain('\u001b[31m✗  common name');
    const other = await run(['csr', 'explain', '-'], { files: { '-': JSON.stringify(hostile) }, world });
    expect(other.out).not.toContain('a\u001b');
    const inJson = await run(['csr', 'explain', 'csr.json', '-o', 'json'], { files, world });
    expect(inJson.out).not.toContain('\u001b');
  });

  test.each([
    [true, {}, true],
    [true, { NO_COLOR: '' }, true],
    [true, { NO_COLOR: '1' }, false],
    [true, { TERM: 'dumb' }, false],
    [false, {}, false],
  ])('a terminal: %s, with %o: colours: %s', (isTerminal, environment, colours) => {
    expect(wantsColours(isTerminal, environment)).toBe(colours);
  });

  test('an attribute of the subject has its name', async () => {
    const web = csr({ subject: { O: 'web', OU: 'shop', CN: 'a' } }, { spec: { signerName: 'example.com/web' } });
    const profile = {
      usages: { allowed: ['server auth', 'digital signature'] },
      subject: { commonNames: ['a'] },
      maxTtl: '1d',
    };
    const cluster = { cas: { ca: { subject: { commonName: 'ca' } } }, profiles: { 'example.com/web': profile } };
    const config = JSON.stringify({ version: 1, clusters: { c: cluster } });
    const given = { '-': JSON.stringify(web), 'c.yaml': config };
    const { out } = await run(['csr', 'explain', '-', '--config', 'c.yaml'], { files: given });
    expect(out).toMatch(/^✗ {2}the subject is at most one common name and organizations +"O", "OU", "CN"$/m);
    expect(out).toContain('→ subject attribute OU is not permitted [SubjectNotPermitted]');
  });

  test('nothing in a request reaches the terminal as it is', async () => {
    const object = csr(
      { subject: { O: 'a\u001b[31m', CN: 'b\n\u202e' } },
      { status: { conditions: [{ type: 'x\u001b' }] } },
    );
    const { out } = await run(['csr', 'explain', '-'], { files: { '-': JSON.stringify(object) } });
    // oxlint-disable-next-line no-control-regex
    expect(out).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f\u202e]/);
  });

  test('YAML is the same as JSON', async () => {
    const files = { '-': JSON.stringify(csr(serving)) };
    const [asJson, asYaml] = [
      await run(['csr', 'explain', '-', '-o', 'json'], { files }),
      await run(['csr', 'explain', '-', '-o', 'yaml'], { files }),
    ];
    expect(parse(asYaml.out)).toEqual(JSON.parse(asJson.out));
  });
});

describe('where the request comes from', () => {
  const pem = makeRequest(serving).pem;
  const flags = ['--signer-name', 'kubernetes.io/kubelet-serving', '--usages', 'digital signature, server auth'];

  test('a bare PEM with what it would ask for', async () => {
    const ran = await run(['csr', 'explain', 'n1.csr', ...flags, '--expiration-seconds', '600', '-o', 'json'], {
      files: { 'n1.csr': pem },
    });
    expect(JSON.parse(ran.out)).toMatchObject({ outcome: 'wait', validity: { notAfter: '2026-06-01T12:10:00.000Z' } });
    expect(ran.code).toBe(0);
  });

  test('a manifest in YAML that was never created', async () => {
    const request = Buffer.from(pem).toString('base64');
    const manifest = `apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {generateName: n1-}
spec: {signerName: kubernetes.io/kubelet-serving, usages: [digital signature, server auth], request: ${request}}
`;
    const ran = await run(['csr', 'explain', 'manifest.yaml', '-o', 'json'], { files: { 'manifest.yaml': manifest } });
    expect(JSON.parse(ran.out)).toMatchObject({ outcome: 'wait', name: 'not-created-yet' });
  });

  test.each<readonly [string, string, readonly string[], number, RegExp]>([
    ['a bare PEM without flags', pem, [], 2, /--signer-name and --usages/],
    ['an object with flags', JSON.stringify(csr(serving)), flags, 2, /are for a bare PEM/],
    ['a list', JSON.stringify({ kind: 'List', items: [] }), [], 2, /kubectl get csr NAME/],
    ['another kind', JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: {} }), [], 1, /apiVersion is not/],
    ['neither', '{[', [], 1, /is no PEM, and it is neither JSON nor YAML/],
    ['an alias bomb', 'a: &a [x]\nb: [*a, *a]', [], 1, /is no PEM, and it is neither JSON nor YAML/],
    ['nothing', '', [], 1, /body is not a JSON object/],
  ])('%s', async (_, text, more, code, message) => {
    const ran = await run(['csr', 'explain', '-', ...more], { files: { '-': text } });
    expect(ran.err).toMatch(message);
    expect([ran.code, ran.out]).toEqual([code, '']);
  });

  test.each([
    ['no file of that name', ['csr', 'explain', 'missing.json'], 4, /there is no file missing\.json/],
    ['no kubeconfig', ['csr', 'explain', 'csr-1', '--kubeconfig', '/nonexistent'], 4, /no kubeconfig \/nonexistent/],
    ['no argument', ['csr', 'explain'], 2, /missing required argument 'request'/],
    ['an unknown output format', ['csr', 'explain', '-', '-o', 'xml'], 2, /Allowed choices are table, json, yaml/],
    ['an empty usage', ['csr', 'explain', '-', '--usages', 'a,,b'], 2, /first,second/],
    ['no number', ['csr', 'explain', '-', '--expiration-seconds', '1h'], 2, /Not a whole number/],
    ['a mistyped command', ['csr', 'explian'], 2, /did you mean explain/],
  ])('%s', async (_, argv, code, message) => {
    const ran = await run(argv, { files: { '-': '' } });
    expect(ran.err).toMatch(message);
    expect([ran.code, ran.out]).toEqual([code, '']);
  });
});

describe('the rules', () => {
  const configuration = `version: 1
clusters:
  a: {cas: {ca: {subject: {commonName: A}}}, profiles: {kubernetes.io/kubelet-serving: {maxTtl: 10m}}}
  b: {cas: {ca: {subject: {commonName: B}}}, profiles: {kubernetes.io/kubelet-serving: {keys: [RSA]}}}
`;
  const files = {
    '-': JSON.stringify(csr(serving)),
    'c.yaml': configuration,
    'one.yaml': configuration.replace(/^  b.*\n/m, ''),
  };
  const withFlags = (...flags: string[]) => run(['csr', 'explain', '-', '-o', 'json', ...flags], { files });

  test('of the named cluster', async () => {
    const a = await withFlags('--config', 'c.yaml', '--cluster', 'a');
    expect(JSON.parse(a.out)).toMatchObject({
      outcome: 'issue',
      cluster: 'a',
      rules: 'c.yaml',
      validity: { notAfter: '2026-06-01T12:10:00.000Z' },
    });
    const b = await withFlags('--config', 'c.yaml', '--cluster', 'b');
    expect(JSON.parse(b.out)).toMatchObject({ outcome: 'refuse', reason: 'KeyNotPermitted' });
  });

  test('with their fingerprint, for people shortened', async () => {
    const named = ['--config', 'c.yaml', '--cluster', 'a'] as const;
    const { rulesSha256 } = JSON.parse((await withFlags(...named)).out) as { rulesSha256: string };
    const validated = await run(['config', 'validate', 'c.yaml', '-o', 'json'], { files });
    expect(JSON.parse(validated.out)).toMatchObject({ clusters: [{ cluster: 'a', rulesSha256 }, { cluster: 'b' }] });
    const { out } = await run(['csr', 'explain', '-', ...named], { files });
    expect(out).toContain(`cluster a (c.yaml, rules ${rulesSha256.slice(0, 16)})\n`);
  });

  test('of the only cluster', async () => {
    expect(JSON.parse((await withFlags('--config', 'one.yaml')).out)).toMatchObject({ cluster: 'a' });
  });

  test('of the cluster in the environment', async () => {
    const environment = { COUNTERSIGN_CONFIG: 'c.yaml', COUNTERSIGN_CLUSTER: 'b' };
    const ran = await run(['csr', 'explain', '-', '-o', 'json'], { files, environment });
    expect(JSON.parse(ran.out)).toMatchObject({ cluster: 'b' });
  });

  test.each([
    ['several clusters', ['--config', 'c.yaml'], 2, /--cluster names one of a, b/],
    ['an unknown cluster', ['--config', 'c.yaml', '--cluster', 'c'], 4, /no cluster c/],
    ['no such file', ['--config', 'd.yaml'], 4, /there is no file d\.yaml/],
    ['a file with mistakes', ['--config', '-'], 3, /^countersign: -:1:1: /],
  ])('%s', async (_, flags, code, message) => {
    const ran = await withFlags(...flags);
    expect(ran.err).toMatch(message);
    expect(ran.code).toBe(code);
  });
});

describe('a request by its name', () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-csr-'));
  const kubeconfig = join(folder, 'kubeconfig');
  let api: CsrApi;

  beforeAll(async () => {
    api = await startCsrApi();
    writeFileSync(kubeconfig, api.kubeconfig());
    const path = `${api.url}/apis/certificates.k8s.io/v1/certificatesigningrequests`;
    const { metadata: _, status: __, ...body } = csr(serving) as Record<string, unknown>;
    const answer = await fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'impersonate-user': 'system:node:n1' },
      body: JSON.stringify({ ...body, metadata: { name: 'n1' } }),
    });
    if (answer.status !== 201) throw new Error(await answer.text());
  });
  afterAll(async () => {
    await api.close();
    rmSync(folder, { recursive: true });
  });

  test('is read from the cluster', async () => {
    const ran = await run(['csr', 'explain', 'n1', '--kubeconfig', kubeconfig, '-o', 'json']);
    expect(JSON.parse(ran.out)).toMatchObject({ name: 'n1', outcome: 'wait' });
    expect(ran.code).toBe(0);
  });

  test('KUBECONFIG is read as kubectl reads it', async () => {
    const ran = await run(['csr', 'explain', 'n1'], { environment: { KUBECONFIG: `:${kubeconfig}:/other` } });
    expect(ran.out).toContain('Not yet: it would be signed once it is approved');
  });

  test.each([
    ['not there', 'n2', [], 4, /countersign csr list shows what is there/],
    ['in no such context', 'n1', ['--context', 'other'], 3, /no current context/],
  ])('%s', async (_, name, flags, code, message) => {
    const ran = await run(['csr', 'explain', name, '--kubeconfig', kubeconfig, ...flags]);
    expect(ran.err).toMatch(message);
    expect(ran.code).toBe(code);
  });

  test('a cluster that does not answer is temporary', async () => {
    const gone = await startCsrApi();
    await gone.close();
    const dead = join(folder, 'dead');
    writeFileSync(dead, gone.kubeconfig());
    const ran = await run(['csr', 'explain', 'n1', '--kubeconfig', dead]);
    expect(ran.err).toMatch(/did not answer: .*ECONNREFUSED/);
    expect(ran.code).toBe(5);
  });
});

describe('finding 17: a requester’s object of any size', () => {
  const labels = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`l${index}`, 'x']));
  const many = csr(serving, { metadata: { labels } });

  test('with 100 000 labels is explained, since it is JSON', async () => {
    const ran = await run(['csr', 'explain', 'big.json'], { files: { 'big.json': JSON.stringify(many) } });
    expect(ran).toMatchObject({ code: 0, err: '' });
    expect(ran.out).toContain('Yes: it would be signed');
  });

  test('in YAML is refused by its length, with the way to read it', async () => {
    const text = `metadata:\n  labels:\n${Array.from({ length: 100_000 }, (_, index) => `    l${index}: x\n`).join('')}`;
    const ran = await run(['csr', 'explain', 'big.yaml'], { files: { 'big.yaml': text } });
    expect(ran).toMatchObject({ code: 1, out: '' });
    expect(ran.err).toMatch(/too long to be read as YAML \(64 KiB at most\)[^]*kubectl get csr NAME -o json/);
  });

  test('without an end is not read to its end', async () => {
    const ran = await run(['csr', 'explain', '/dev/zero']);
    expect(ran).toMatchObject({ code: 1, out: '', err: expect.stringContaining('larger than 8 MiB') as unknown });
  });
});

describe('a request that was answered before', () => {
  const file = `version: 1
clusters:
  a: {cas: {ca: {subject: {commonName: A}}}, profiles: {kubernetes.io/kubelet-serving: {maxTtl: 10m}}}
`;
  const issuedBy = async (commonName: string) => {
    const ca = await createTestAuthority(commonName);
    const certificate = Buffer.from(ca.certificatePem).toString('base64');
    const object = csr(serving, { status: { conditions: [{ type: 'Approved' }], certificate } });
    const files = { '-': JSON.stringify(object), 'c.yaml': file };
    const asTable = await run(['csr', 'explain', '-', '--config', 'c.yaml'], { files });
    const unnamed = await run(['csr', 'explain', '-', '-o', 'json'], { files });
    return { ...asTable, last: asTable.out.trim().split('\n').at(-1), unnamed: JSON.parse(unnamed.out) as Shown };
  };

  test('issued by this CA: prints the validity, exit code 0', async () => {
    const { code, last, unnamed } = await issuedBy('A');
    expect(code).toBe(0);
    expect(last).toMatch(/^Already issued: valid until \S+Z \(from \S+Z\), issued by CN=A, serial [0-9a-f]+$/);
    // Without a configuration the CA's name is not known.
    expect(unnamed).toMatchObject({
      outcome: 'issued',
      certificate: { issuedBy: 'unknown', facts: { issuer: 'CN=A' } },
    });
  });

  test('issued by another CA: prints that, exit code 1', async () => {
    const { code, last } = await issuedBy('B');
    expect(code).toBe(1);
    expect(last).toMatch(
      /^Issued by another CA: it has a certificate that this cluster’s CA did not issue: issued by CN=B,/,
    );
  });

  test.each([
    [
      'Failed before: it failed before: KeyNotPermitted: RSA. It stays failed; its requester must make a new request',
      'Failed',
    ],
    ['Denied: it was denied: KeyNotPermitted: RSA', 'Denied'],
  ])('%s', async (line, type) => {
    const conditions = [{ type: 'Approved' }, { type, status: 'True', reason: 'KeyNotPermitted', message: 'RSA' }];
    const files = { '-': JSON.stringify(csr(serving, { status: { conditions } })) };
    const { code, out } = await run(['csr', 'explain', '-'], { files });
    expect([code, out.trim().split('\n').at(-1)]).toEqual([1, line]);
  });

  test('of another signer, in any state', async () => {
    const status = { conditions: [{ type: 'Failed' }] };
    const files = { '-': JSON.stringify(csr(serving, { spec: { signerName: 'k8s.example.com/other' }, status })) };
    const { code, out } = await run(['csr', 'explain', '-'], { files });
    expect([code, out.trim().split('\n').at(-1)]).toEqual([
      1,
      'Not ours: no profile of this cluster has that signer name; another signer may answer it',
    ]);
  });
});
