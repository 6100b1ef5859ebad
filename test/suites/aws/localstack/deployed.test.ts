import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checks } from '../../../conformance/checks.ts';
import { runConformance } from '../../../conformance/conformance.ts';
import { signOperation } from '../../../harness/aws/kms-counter.ts';
import { requireLocalStack } from '../../../harness/aws/localstack.ts';
import { clusterPath } from '../../../harness/stack/stack.ts';
import {
  approve,
  certificatePemOf,
  createClientRequests,
  readRequest,
  settled,
  type CsrObject,
} from '../../../harness/stack/requests.ts';
import { onlyDeep } from '../../../harness/determinism/tier.ts';
import { requireTools } from '../../../tools/tools.ts';
import { defineCounting, jsonOf, postAgain } from '../../control-plane/end-to-end/kms-counting.ts';
import { describeSigning, type SigningWorld } from '../../control-plane/end-to-end/signing-suite.ts';
import { startAttestedSigner, type AttestedSigner } from './attested-signer.ts';
import { countersign as runCommand } from './command-line.ts';
import { defineMachines, installApprover } from './machines.ts';

const missing = [await requireTools('etcd', 'kube-apiserver', 'kubectl'), await requireLocalStack()];
/** A LocalStack that this suite did not start runs functions where they do not meet our proxy. */
const notOurs = Boolean(process.env['AWS_ENDPOINT_URL']);

/** One deployment for all of it, with attestation; a deployment without it is in aws/ministack. */
describeSigning({
  by: 'what cdk deploy made in LocalStack',
  skip: notOurs || missing.some(({ skip }) => skip),
  start: startAttestedSigner,
  // Each call at once is a process of its own here.
  relayArgs: ['--concurrency', '4'],
  judgedOnArrival: ['kube-apiserver-client-kubelet'],
  install: installApprover,
  more(world) {
    describe('the deployment', () => {
      defineDeployment(world);
    });
    describe('KMS', () => {
      defineCounting(world);
    });
    describe('machines', () => {
      defineMachines(world);
    });
    // The default tier asks the stacks in MiniStack, which check permissions (aws/ministack/front-door).
    test.each(onlyDeep)('passes the conformance checks, each of them', async () => {
      const { signer } = world();
      const base = `${signer.url}${clusterPath}`;
      const results = await runConformance({ base, fetch: signer.fetch, concurrent: 4 });
      const others = results.filter(({ outcome }) => outcome !== 'passed');
      expect(others.map(({ id, outcome, detail }) => `${id} ${outcome}: ${detail}`)).toEqual([]);
      expect(results.map(({ id }) => id)).toEqual(checks.map(({ id }) => id));
    });
    describe('deployed again with other rules', () => {
      defineNextDeployment(world);
    });
  },
});

type World = () => SigningWorld & { readonly signer: AttestedSigner };

function defineDeployment(world: World): void {
  const countersign = (...args: readonly string[]) => runCommand(world().signer, ...args);

  test('is whole, but for what LocalStack does not know', () => {
    expect(world().signer.passedOver).toEqual(['AWS::Logs::MetricFilter']);
  });

  test('has made its CA, which countersign ca show shows', async () => {
    const { signer } = world();
    expect(await countersign('ca', 'show', '--cluster', 'demo', '-o', 'pem')).toMatchObject({
      status: 0,
      out: await signer.caPem(),
    });
    const { status, out } = await countersign('ca', 'show', '--cluster', 'demo', '-o', 'json');
    expect(status).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ name: 'ca', keyId: expect.stringMatching(/^arn:aws:kms:/) as unknown });
  });

  test('shows that no CA replaces it, and who trusts it', async () => {
    const { plane } = world();
    // Two days, because each of the default 366 costs sixteen queries.
    const place = ['--cluster', 'demo', '--name', 'ca', '--kubeconfig', plane.adminKubeconfig, '--days', '2'];
    const { status, out } = await countersign('ca', 'rotate', ...place, '-o', 'json');
    expect(status, out).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      phase: 'noSuccessor',
      old: { configured: true, inForce: true, keyId: expect.stringMatching(/^arn:aws:kms:/) as unknown },
      certificates: { count: expect.any(Number) as unknown },
      findings: [],
    });
    const { consumers } = JSON.parse(out) as { consumers: readonly { place: string; state: string }[] };
    expect(consumers.find(({ place: where }) => where.includes('client-ca-file'))).toMatchObject({ state: 'oldOnly' });
  });

  test('has a status: the rules of its file, its CA with its key, what its tables lack, no fault', async () => {
    const { signer } = world();
    const argv = ['--config', signer.configurationFile, '--cluster', 'demo', '--url', signer.url, '--skip-kubernetes'];
    // As the relay's user, who may assume the caller role; LocalStack itself asks for no login.
    const login = signer.relayEnvironment;
    const { status, out, report } = await runCommand({ ...signer, login }, 'status', ...argv, '-o', 'json');
    const { checks } = JSON.parse(report) as { checks: readonly { id: string; result: string; seen: string }[] };
    const of = (id: string) => checks.filter((row) => row.id === id);
    expect(of('endpoint')).toMatchObject([{ result: 'pass' }]);
    expect(of('rules')).toMatchObject([{ result: 'pass' }]);
    expect(of('ca')).toMatchObject([{ result: 'pass', seen: expect.stringMatching(/^CN=.*days left/) as unknown }]);
    // LocalStack's CloudFormation sets neither, so this is what an operator sees of tables without them.
    const lacks = expect.stringMatching(
      /^countersign-demo-state-\S+: point-in-time recovery is off, deletion protection is off$/,
    ) as unknown;
    expect(of('table')).toMatchObject([
      { result: 'fail', seen: lacks },
      { result: 'fail', seen: lacks },
    ]);
    expect([status, out], report).toEqual([1, expect.not.stringContaining('countersign:')]);
    expect(
      of('errors').map(({ result }) => result),
      report,
    ).toEqual(['pass', 'pass']);
  });

  test('keeps that CA when an operator runs ca init again', async () => {
    const { signer } = world();
    const [before, calls] = [await signer.caPem(), signer.kms.count(signOperation)];
    const { status, out } = await countersign('ca', 'init', '--cluster', 'demo');
    expect(out).toContain('already has a CA ca');
    expect(status).toBe(6);
    expect(await signer.caPem()).toBe(before);
    expect(signer.kms.count(signOperation)).toBe(calls);
  });
}

function defineNextDeployment(world: World): void {
  test('obeys those, and has the same CA and the same answers for what was asked before', async () => {
    const { plane, signer } = world();
    const [ca, calls, alice] = [
      await signer.caPem(),
      signer.kms.count(signOperation),
      await readRequest(plane, 'alice'),
    ];
    const before = readFileSync(signer.configurationFile, 'utf8');
    await signer.deployAgain((configuration) => configuration.replaceAll('maxTtl: 1d', 'maxTtl: 2h'));
    const stale = join(dirname(signer.configurationFile), 'stale.yaml');
    writeFileSync(stale, before);
    const place = ['--config', stale, '--cluster', 'demo', '--url', signer.url, '--skip-kubernetes'];
    const { status, report } = await runCommand({ ...signer, login: signer.relayEnvironment }, 'status', ...place);
    expect([status, report]).toEqual([1, expect.stringMatching(/✗ {2}the endpoint applies the rules of the file/)]);
    expect(await signer.caPem()).toBe(ca);

    const answer = await postAgain(signer, alice);
    expect(answer.status).toBe(200);
    expect(certificatePemOf(await jsonOf(answer))).toBe(certificatePemOf(alice));
    expect(signer.kms.count(signOperation)).toBe(calls);

    const [later] = await createClientRequests(plane, 'later', 1);
    await approve(plane, later!.name);
    const object = (await settled(plane, [later!.name])).get(later!.name)!;
    expect([alice, object].map(lifetimeHours)).toEqual([24, 2]);
    expect(signer.kms.count(signOperation)).toBe(calls + 1);
  });
}

/** To the nearest hour: a certificate begins a little before it is asked for. */
function lifetimeHours(object: CsrObject): number {
  const { validFromDate, validToDate } = new X509Certificate(certificatePemOf(object));
  return Math.round((validToDate.getTime() - validFromDate.getTime()) / 3_600_000);
}
