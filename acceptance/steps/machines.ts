import { callerOf, certificateIn, endpointOf, post, withDoor } from '../world/call.ts';
import type { Answer } from '../world/call.ts';
import {
  describeMachines,
  imageParameter,
  requestFrom,
  startMachines,
  terminateMachines,
  userData,
} from '../resources/machines.ts';
import { nodeSigner, runTag } from '../world/clusters.ts';
import type { Site, Step } from '../world/step.ts';
import { eventually } from '../world/wait.ts';
import { randomUUID } from 'node:crypto';

/** In the order of their use. */
const [first, second] = [0, 1] as const;

export const machines: Step = {
  id: 'machines',
  title: 'Two instances, and one node name',
  minute: 10,
  shows:
    'kubelet-authenticator’s code on an instance with IMDSv2 and hop limit 1, the identity role, STS and EC2; the first machine has the name until it is terminated; attest’s transaction',
  needs: ['deploy'],
  statements: ({ partition, account, region }) => {
    const own = (kind: string) => `arn:${partition}:ec2:${region}:${account}:${kind}/*`;
    return [
      {
        sid: 'FindImage',
        actions: ['ssm:GetParameter'],
        // A public parameter has no account in its ARN.
        resources: [`arn:${partition}:ssm:${region}:*:parameter${imageParameter}`],
      },
      {
        sid: 'StartInstancesOfTheRun',
        actions: ['ec2:RunInstances'],
        resources: [own('instance')],
        conditions: {
          StringEquals: { 'ec2:InstanceType': 't4g.nano', 'ec2:MetadataHttpTokens': 'required' },
          StringLike: { [`aws:RequestTag/${runTag}`]: 'accept-*' },
        },
      },
      {
        sid: 'StartInstancesIn',
        actions: ['ec2:RunInstances'],
        resources: [
          `arn:${partition}:ec2:${region}::image/*`,
          ...['network-interface', 'security-group', 'subnet', 'volume'].map(own),
        ],
      },
      {
        sid: 'TagInstancesAtTheirStart',
        actions: ['ec2:CreateTags'],
        resources: [own('instance')],
        conditions: { StringEquals: { 'ec2:CreateAction': 'RunInstances' } },
      },
      { sid: 'LookAtInstances', actions: ['ec2:DescribeInstances'], resources: ['*'] },
      {
        sid: 'ReadAndEndInstancesOfTheRun',
        actions: ['ec2:GetConsoleOutput', 'ec2:TerminateInstances'],
        resources: [own('instance')],
        conditions: { StringLike: { [`aws:ResourceTag/${runTag}`]: 'accept-*' } },
      },
    ];
  },
  async run(site) {
    const { name, place, plan } = site;
    const nodeName = `${name}-node`;
    const data = userData({
      run: name,
      nodeName,
      clusterName: plan.api,
      audience: `${place.account}/${place.region}/${plan.api}`,
      signerName: nodeSigner,
      rounds: 60,
      pauseSeconds: site.emulator === undefined ? 30 : 1,
    });
    await site.check('two instances of type t4g.nano start, in user data the program', async () => {
      const made = await startMachines(site, { nodeName, data });
      return `${made.map(({ InstanceId: id }) => id).join(', ')}; ${data.length} bytes of user data`;
    });
    await site.check('EC2 describes them', async () => {
      const all = await eventually(site, 3, async () => {
        const found = await describeMachines(site);
        return found.length === 2 && found.every(({ State }) => State?.Name === 'running') ? found : undefined;
      });
      if (all === undefined) throw new Error('they are not running after three minutes');
      return 'both run';
    });
    const started = (await describeMachines(site)).toSorted((a, b) =>
      (a.InstanceId ?? '') < (b.InstanceId ?? '') ? -1 : 1,
    );
    await site.check(
      'EC2 says IMDSv2 and hop limit 1',
      async () => {
        for (const { MetadataOptions: options } of started)
          if (options?.HttpTokens !== 'required' || options.HttpPutResponseHopLimit !== 1)
            throw new Error(JSON.stringify(options ?? 'nothing is said'));
        return 'of both';
      },
      'instances',
    );

    let after = 0;
    /** From the newest evidence of one of them. */
    const request = async (which: typeof first | typeof second): Promise<object> => {
      const instance = started[which];
      if (instance === undefined) throw new Error('there is no such instance');
      const found = await requestFrom(site, instance, { data, after });
      if (which === second) after = found.round;
      return requestObject(found.text);
    };
    const admitted = async (which: typeof first | typeof second): Promise<string> => {
      const object = await request(which);
      const begun = Date.now();
      const verdict = verdictIn(await asked(site, 'attest', { request: object }));
      if (verdict.decision !== 'approve') throw new Error(`${verdict.reason}: ${verdict.message ?? ''}`);
      const answer = await asked(site, 'sign', object);
      if (answer.outcome !== 'issued')
        throw new Error(`${answer.outcome ?? answer.status} ${answer.text.slice(0, 300)}`);
      const { subject } = certificateIn(answer);
      if (!subject.includes(`CN=system:node:${nodeName}`)) throw new Error(subject);
      return `${verdict.annotations?.['countersign.dev/identity'] ?? ''}, in ${Date.now() - begun} ms`;
    };
    await site.check('the first instance gets a certificate for the node name', () => admitted(first), 'instances');
    await site.check(
      'refused: the second instance, for the same node name',
      async () => {
        const verdict = verdictIn(await asked(site, 'attest', { request: await request(second) }));
        if (verdict.reason !== 'TofuNodeTaken') throw new Error(`${verdict.decision} ${verdict.reason}`);
        return verdict.reason;
      },
      'instances',
    );
    await site.check('the first instance is terminated', async () => {
      const begun = Date.now();
      await terminateMachines(site, [started[first]?.InstanceId ?? '']);
      return `in ${Math.round((Date.now() - begun) / 1_000)} s`;
    });
    await site.check('the node name passes on to the second instance', () => admitted(second), 'instances');
  },
};

interface Verdict {
  readonly decision: string;
  readonly reason: string;
  readonly message?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

function verdictIn({ outcome, status, text }: Answer): Verdict {
  if (outcome !== 'verdict') throw new Error(`${outcome ?? status} ${text.slice(0, 300)}`);
  return JSON.parse(text) as Verdict;
}

/** Asks again while the answer is busy, as the relay does. */
async function asked(site: Site, path: 'attest' | 'sign', body: object): Promise<Answer> {
  const { plan } = site;
  const url = `${endpointOf(site, plan.api, 'SignUrl')}/${path}`;
  const authorize = await callerOf(site, plan.api);
  let last: Answer | undefined;
  const answer = await eventually(site, 2, async () => {
    last = await withDoor(site, authorize, (fetch) => post(fetch, url, body));
    return last.outcome === 'busy' ? undefined : last;
  });
  if (answer === undefined) throw new Error(`still busy: ${last?.text.slice(0, 300) ?? ''}`);
  return answer;
}

/** As the API server has the request of a node with a bootstrap token, approved. */
function requestObject(request: string): object {
  const condition = { type: 'Approved', status: 'True', reason: 'Acceptance', message: 'by the acceptance run' };
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'node-csr-acceptance', uid: randomUUID() },
    spec: {
      request: Buffer.from(request, 'utf8').toString('base64'),
      signerName: nodeSigner,
      usages: ['digital signature', 'client auth'],
      username: 'system:bootstrap:accept',
      groups: ['system:bootstrappers', 'system:authenticated'],
    },
    status: { conditions: [condition] },
  };
}
