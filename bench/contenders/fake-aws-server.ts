/**
 * The machines that join, and an STS and EC2 that know them, in a process of their own, because AWS is not part of what
 * is measured: `node bench/contenders/fake-aws-server.ts FILE` writes `FakeAwsFacts` to FILE, as JSON.
 *
 * These are the strict fakes of the test suites, which verify every signature.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { startLoopbackServer, readAll } from '../../test/harness/processes/forwarding.ts';
import { emulatedRegion } from '../../test/harness/aws/emulator.ts';
import { startFakeEc2 } from '../../test/harness/fake-aws/ec2.ts';
import type { FakeInstance } from '../../test/harness/fake-aws/machine/instance.ts';
import { makeNodeEvidence } from '../../test/harness/fake-aws/machine/node-evidence.ts';
import { startFakeSts } from '../../test/harness/fake-aws/sts.ts';
import { createFakeAws } from '../../test/harness/fake-aws/world.ts';
import type { EvidenceSpec, FakeAwsFacts } from './fake-aws.ts';
import type { NodeRequest } from '../requests/requests.ts';

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('usage: fake-aws-server.ts FILE');

/** LocalStack's account. */
const account = '000000000000';
const aws = createFakeAws();
const [sts, ec2] = [await startFakeSts({ aws }), await startFakeEc2({ aws })];
const { accessKeyId, secretAccessKey } = aws.createUser(account, 'attest', ['ec2:DescribeInstances']);
const instances = new Map<string, FakeInstance>();

/** The instance of that name, launched on first use. */
function instanceOf(name: string, cluster: string): FakeInstance {
  const known = instances.get(name);
  if (known !== undefined) return known;
  const tags = { [`kubernetes.io/cluster/${cluster}`]: 'owned', Name: name };
  const instance = aws.launch({ account, region: emulatedRegion, tags });
  instances.set(name, instance);
  return instance;
}

/** A new key and new evidence each time. */
function evidenceOf(nodeName: string, { cluster, signerName }: EvidenceSpec): NodeRequest {
  const { instanceId, availabilityZone } = instanceOf(nodeName, cluster);
  const { request, key } = makeNodeEvidence(aws, instanceId, {
    clusterName: cluster,
    audience: `${account}/${emulatedRegion}/${cluster}`,
    signerName,
    nodeName,
    providerId: `aws:///${availabilityZone}/${instanceId}`,
  });
  return { name: nodeName, request, key: Buffer.from(key.spki).toString('base64') };
}

const evidenceServer = await startLoopbackServer(async (incoming, outgoing) => {
  const spec = JSON.parse((await readAll(incoming)).toString('utf8')) as EvidenceSpec;
  outgoing.writeHead(200, { 'content-type': 'application/json' });
  outgoing.end(JSON.stringify(spec.names.map((name) => evidenceOf(name, spec))));
});

const facts: FakeAwsFacts = {
  evidenceUrl: evidenceServer.url,
  account,
  region: emulatedRegion,
  environment: {
    AWS_ENDPOINT_URL_STS: sts.url,
    AWS_ENDPOINT_URL_EC2: ec2.url,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SESSION_TOKEN: '',
  },
};
writeFileSync(`${file}.new`, JSON.stringify(facts), { mode: 0o600 });
renameSync(`${file}.new`, file); // the reader never sees half of it
process.on('SIGTERM', () => process.exit(0));
