/** The script of docs/attestation/aws.md, as it stands there: what it prints is what the product takes for that instance. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { EC2Client } from '@aws-sdk/client-ec2';
import { expect, onTestFinished, test } from 'vitest';
import { ec2Endpoint } from '../../../../adapters/aws/ec2.ts';
import { stsEndpoint } from '../../../../adapters/aws/sts.ts';
import { awsProvider } from '../../../../core/attestation/aws/provider.ts';
import { bindingDigest } from '../../../../core/attestation/evidence/binding-digest.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import { decodeEvidence } from '../../../../core/attestation/evidence/evidence.ts';
import { startFakeEc2 } from '../../../harness/fake-aws/ec2.ts';
import { startFakeImds } from '../../../harness/fake-aws/machine/imds.ts';
import { startFakeSts } from '../../../harness/fake-aws/sts.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';
import { requireTools, toolPath } from '../../../tools/tools.ts';

const { skip } = await requireTools('aws-cli');
const page = readFileSync(join(import.meta.dirname, '../../../../docs/attestation/aws.md'), 'utf8');
const [whole = '', lastLines = ''] = [...page.matchAll(/```bash\n([^]*?)```/g)].map(([, text = '']) => text);
const scripts = {
  'aws/v2': whole,
  'aws/v1': `${whole.slice(0, whole.indexOf('printf aws/v2'))}${lastLines}`,
} as const;
const [, written = ''] = /```yaml\n([^]*?)```/.exec(page) ?? [];

const [account, region] = ['444455556666', 'eu-central-1'];
const audience = '999900001111/eu-central-1/prod';

/** The page's own rules, in a file that is whole. */
function rules() {
  const cluster = written
    .replaceAll(/^/gm, '    ')
    .replace(/^ {4}attestation:$/m, `    attestation:\n      audience: ${audience}`);
  const text = `version: 1\nclusters:\n  prod:\n    cas: { ca: { subject: { commonName: prod } } }\n${cluster}`;
  const parsed = parseConfiguration(text, 'aws.md');
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
  return parsed.value.configuration.clusters.get('prod')!.attestation!;
}

test.skipIf(skip).each(Object.entries(scripts))(
  'finding 7: what the documented script prints as %s is taken, and for no other signer',
  async (version, script) => {
    const aws = createFakeAws();
    const machine = aws.launch({ account, region, tags: { 'kubernetes.io/cluster/prod': 'owned' } });
    const { instanceId, privateDnsName, availabilityZone } = machine;
    const services = [
      await startFakeImds({ aws, instanceId }),
      await startFakeSts({ aws }),
      await startFakeEc2({ aws }),
    ] as const;
    const [imds, sts, ec2] = services;
    const folder = mkdtempSync(join(tmpdir(), 'countersign-node-'));
    onTestFinished(async () => {
      rmSync(folder, { recursive: true });
      await Promise.all(services.map((service) => service.close()));
    });
    writeFileSync(join(folder, 'aws'), `#!/bin/sh\nexec ${await toolPath('aws-cli')} -m awscli "$@"\n`, {
      mode: 0o755,
    });
    const key = join(folder, 'node.key');
    const moved = script.replace('http://169.254.169.254', imds.url).replace('/var/lib/kubelet/pki/node.key', key);
    const file = join(folder, 'node-request');
    writeFileSync(file, moved);
    expect(moved).toContain(`AUDIENCE=${audience} `);
    const { stdout, stderr } = await promisify(execFile)('bash', [file], {
      env: {
        PATH: `${folder}:/usr/bin:/bin`,
        AWS_CONFIG_FILE: '/dev/null',
        AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
        AWS_EC2_METADATA_DISABLED: 'true',
      },
      timeout: 60_000,
    });
    expect(stderr).toBe('');

    const decoded = decodeRequest(Buffer.from(stdout));
    if (!decoded.ok) throw new Error(decoded.problem[0].message);
    const request = decoded.value;
    const providerId = `aws:///${availabilityZone}/${instanceId}`;
    // With aws/v2 the script does not even read the document.
    expect(imds.told.some((path) => path.includes('instance-identity'))).toBe(version === 'aws/v1');
    expect([request.subject.commonName, request.providerId]).toEqual([`system:node:${privateDnsName}`, providerId]);
    const sent = decodeEvidence(request.evidence);
    const evidence = sent.ok ? sent.value : undefined;
    if (evidence === undefined) throw new Error('no evidence');
    expect(evidence.version).toBe(version);
    const { aws: policy } = rules();
    if (policy === undefined) throw new Error('the page has no rules');
    const reader = aws.createUser(account, 'attest', ['ec2:DescribeInstances']);
    const provider = awsProvider(policy, {
      sts: stsEndpoint({ endpoint: sts.url }),
      ec2: ec2Endpoint(
        (where) => new EC2Client({ region: where.region, endpoint: ec2.url, credentials: reader, maxAttempts: 1 }),
      ),
      regionCertificates: aws.regionCertificates(region),
    });
    const attest = async (signerName: string) => {
      const bound = { audience, signerName, nodeName: privateDnsName, spki: request.publicKey.spki };
      const examined = await provider.examine({
        ...evidence,
        request,
        nodeName: privateDnsName,
        clusterName: 'prod',
        binding: (nonce) => bindingDigest({ ...bound, nonce }),
        now: aws.now(),
      });
      return examined.ok ? examined.value.verify() : examined;
    };
    expect(await attest('cluster.x-k8s.io/kube-apiserver-client-kubelet-aws')).toMatchObject({
      ok: true,
      value: {
        identity: `aws#aws/${account}/${region}/${instanceId}`,
        providerId,
        nodeNames: [privateDnsName],
      },
    });
    expect(await attest('kubernetes.io/kube-apiserver-client-kubelet')).toMatchObject({
      ok: false,
      problem: [
        { code: 'AttestationInvalid', message: expect.stringContaining('not a signature over this') as unknown },
      ],
    });
  },
);
