/** Commands over what other systems recorded: the boot log of a TPM, instances of EC2, CloudTrail. */
import { X509Certificate } from 'node:crypto';
import { EC2Client } from '@aws-sdk/client-ec2';
import { onTestFinished } from 'vitest';
import { ec2Endpoint, ec2Fleet } from '../../../../../adapters/aws/ec2.ts';
import { startFakeEc2 } from '../../../../harness/fake-aws/ec2.ts';
import { createFakeAws } from '../../../../harness/fake-aws/world.ts';
import { bootEvents, eventLog } from '../../../../harness/tpm/event-log.ts';
import { eventOf, key, now, seconds, signedAt, twoCertificates } from '../../inventory/trail.ts';
import { hour, newFolder, recordOf, used } from '../../register.ts';
import { now as prunedAt } from '../../run.ts';
import { created, issuedWorld } from '../../trace/issued-world.ts';
import type { Goldens } from '../session.ts';

const [account, region] = ['111122223333', 'eu-central-1'];
const tags = { 'kubernetes.io/cluster/prod': 'owned' };
const configuration = JSON.stringify({
  version: 1,
  clusters: {
    prod: {
      cas: { ca: { subject: { commonName: 'prod' } } },
      profiles: { 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws': { ca: 'ca' } },
      attestation: {
        audience: 'prod',
        aws: { accounts: { [account]: {} }, regions: [region], tags, nodeName: ['privateDnsName'] },
      },
    },
  },
});

export const goldens: Goldens = {
  async 'machines pcrs'({ run }) {
    const files = { binary_bios_measurements: eventLog(bootEvents()) };
    await run('machines pcrs binary_bios_measurements', { files });
    await run('machines pcrs binary_bios_measurements --pcrs 7 -o json', { files });
    await run('machines pcrs notes.txt', { files: { 'notes.txt': 'no event log' } });
  },

  async 'tofu adopt'({ run, call }) {
    const aws = createFakeAws();
    const ec2 = await startFakeEc2({ aws });
    onTestFinished(() => ec2.close());
    const folder = await newFolder();
    call('DATA', folder.path);
    const { instanceId } = aws.launch({ account, region, tags, privateIp: '10.0.0.1' });
    call('i-0123456789abcdef0', instanceId);
    const credentials = aws.createUser(account, 'ada', ['ec2:DescribeInstances']);
    const connect = (where: { region: string }) =>
      new EC2Client({ region: where.region, endpoint: ec2.url, credentials, maxAttempts: 1 });
    const options = {
      files: { 'countersign.yaml': configuration },
      world: { userName: () => 'ada', connectEc2: async () => ({ ...ec2Endpoint(connect), ...ec2Fleet(connect, 5) }) },
    };
    await run('tofu adopt --data DATA --config countersign.yaml', options);
    await run("tofu adopt --data DATA --config countersign.yaml --yes --reason 'attestation begins'", options);
    await run('tofu adopt --data DATA --config countersign.yaml --yes', options);
  },

  async 'machines prune'({ run, call }) {
    const aws = createFakeAws();
    const ec2 = await startFakeEc2({ aws });
    onTestFinished(() => ec2.close());
    const folder = await newFolder();
    call('DATA', folder.path);
    for (const [index, node] of ['worker-1', 'worker-2', 'worker-3'].entries()) {
      const { instanceId, availabilityZone } = aws.launch({ account, region, tags });
      call(`i-0123456789abcdef${index}`, instanceId);
      const identity = `aws#aws/${account}/${region}/${instanceId}`;
      const providerId = `aws:///${availabilityZone}/${instanceId}`;
      await used(folder, recordOf(node, 'a', { identity, providerId, lastSeen: prunedAt - 2 * hour }));
      if (index === 0) aws.terminate(instanceId);
      if (index === 1) aws.forget(instanceId);
    }
    const credentials = aws.createUser(account, 'ada', ['ec2:DescribeInstances']);
    const connect = (where: { region: string }) =>
      new EC2Client({ region: where.region, endpoint: ec2.url, credentials, maxAttempts: 1 });
    const options = {
      files: { 'countersign.yaml': configuration },
      world: {
        userName: () => 'ada',
        now: () => prunedAt,
        pause: async () => undefined,
        connectEc2: async () => ({ ...ec2Endpoint(connect), ...ec2Fleet(connect, 5) }),
      },
    };
    const words = 'machines prune --data DATA --config countersign.yaml';
    await run(words, options);
    await run(`${words} -o yaml`, options);
    await run(`${words} --yes`, options);
    await run(`${words} --yes --reason 'scaled in'`, options);
    await run(words, options);
  },

  async 'audit reconcile'({ run, call }) {
    const { logs, log, records } = await twoCertificates();
    const [from, to] = [signedAt - hour, signedAt + hour];
    const names = { LOGS: logs, KEY: key, FROM: seconds(from), TO: seconds(to), SIGNED: seconds(signedAt) };
    for (const [name, value] of Object.entries(names)) call(name, value);
    call('SERIAL', records[1].serial);
    const roles = ['sign', 'ca'].map((role) => `--${role}-role arn:aws:iam::111122223333:role/${role}`).join(' ');
    const words = `audit reconcile --logs LOGS --ledger LOGS/export.jsonl --key KEY ${roles} --from FROM --to TO`;
    const world = { now: () => now };
    log(eventOf('kms-1'), eventOf('kms-2'), eventOf('crl-1', 'ca'));
    await run(words, { world });
    log(eventOf('kms-1'), eventOf('crl-1', 'ca'), eventOf('unknown-1', 'thief'));
    await run(words, { world });
    await run('audit reconcile --logs LOGS/missing --from FROM --to FROM', { world });
  },

  async trace({ run, unrecorded, call }) {
    const { uid, world, cluster, stack, certificate } = await issuedWorld();
    const record = await stack.ledger.find(uid);
    const { fingerprint256 } = new X509Certificate(Buffer.from(certificate, 'base64'));
    call('KUBECONFIG', cluster.kubeconfig);
    call('UID', uid);
    call('SERIAL', record?.serial ?? '');
    call('CA-KEY', record?.caKeyId ?? '');
    call('SHA256', fingerprint256.replaceAll(':', '').toLowerCase());
    const options = { world: world() };
    const words = 'trace node-csr-1 --cluster demo --kubeconfig KUBECONFIG';
    // Times from the creation of the request on.
    const { out } = await unrecorded(words, options);
    for (const [time] of out.matchAll(/20\d\d-[-\dT:.]+Z/g)) {
      const after = (Date.parse(time) - created) / 1_000;
      call(`T${after < 0 ? '' : '+'}${after}s`, time);
    }
    await run(words, options);
    await run('trace node-csr-9 --cluster demo --kubeconfig KUBECONFIG', options);
  },
};
