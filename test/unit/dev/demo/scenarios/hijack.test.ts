/** The story of the two machines, and that it can end badly: with each part of the platform lying, and each part of ours failing. */
import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { embeddedSigner } from '../../../../../adapters/embedded/signer.ts';
import type { AwsPorts, StsAnswer, StsRequest } from '../../../../../core/attestation/aws/endpoints.ts';
import type { InstanceDescription } from '../../../../../core/attestation/aws/instance.ts';
import { main } from '../../../../../dev/demo.ts';
import type { DemoOverrides } from '../../../../../dev/demo.ts';
import { createStandInAws } from '../../../../../dev/aws/stand-in-aws.ts';
import { createTerminal } from '../../../../../dev/demo/terminal.ts';

/** `printed`: the text so far. */
type Planted = (printed: () => string) => DemoOverrides;

async function play(planted: Planted = () => ({})): Promise<{ code: number; text: string }> {
  let text = '';
  const terminal = createTerminal((more) => (text += more), false);
  return { code: await main(['hijack'], { terminal, ...planted(() => text) }), text };
}

describe('the hijack demo', () => {
  test('denies each attempt with its reason, gives each machine its own name, and says so', async () => {
    const { code, text } = await play();
    expect(code).toBe(0);
    expect([...text.matchAll(/^ {2}(Denied|Approved) +(\w+)$/gm)].map(([, end, reason]) => `${end} ${reason}`)).toEqual(
      [
        'Denied AttestationInvalid',
        'Approved AutoApproved',
        'Denied IdentityNotAllowed',
        'Denied TofuNodeTaken',
        'Denied AttestationInvalid',
        'Approved AutoApproved',
        'Approved AutoApproved',
      ],
    );
    expect(text).toContain('the STS token is not a signature over this request');
    expect(text).toContain('this machine may not be called "demo-node-1"');
    expect(text).toContain('this proof was used before, by another request');
    expect(text.match(/✓ no certificate, and none from the sign endpoint/g)).toHaveLength(4);
    expect(text.match(/✓ /g)).toHaveLength(4 + 5 + 2);
    expect(text).not.toContain('✗');
    expect(text).toMatch(/, by system:node:demo-node-1$/m);
    expect(text).toMatch(/\nok: one token, two machines, .* \d+\.\d s\n$/);
    expect(Math.max(...text.split('\n').map(({ length }) => length))).toBeLessThan(140);
    expect(text).not.toMatch(/k8s-aws-v1|X-Amz|BEGIN/);
  });

  const wrapAws =
    (change: (aws: AwsPorts, printed: () => string) => Partial<AwsPorts>, more: DemoOverrides = {}): Planted =>
    (printed) => ({ wrapAws: (aws) => ({ ...aws, ...change(aws, printed) }), ...more });
  /** For requests that are never answered. */
  const impatient = { patienceMilliseconds: 2_500 };
  /** A changed answer of EC2. */
  const lying = (lie: (instance: InstanceDescription, calls: number) => InstanceDescription | 'notFound') =>
    wrapAws(({ ec2 }) => {
      let calls = 0;
      return {
        ec2: {
          async describeInstance(place, id) {
            const found = await ec2.describeInstance(place, id);
            calls += 1;
            return found === 'notFound' ? found : lie(found, calls);
          },
        },
      };
    });

  test.concurrent.each<[string, Planted, RegExp]>([
    [
      'an STS that looks at no signature: the copied evidence is good for any key',
      wrapAws((_, printed) => ({ sts: async () => callerIs(/demo-node-1 +(i-\w+)/.exec(printed())?.[1] ?? '') })),
      /a request that should be denied \(AttestationInvalid\) got a certificate/,
    ],
    [
      'an STS that knows no caller',
      wrapAws(({ sts }) => ({ sts: async (request) => ({ ...(await sts(request)), status: 403 }) })),
      /the request was refused: AttestationInvalid/,
    ],
    [
      'an STS that is away',
      wrapAws(() => ({ sts: () => Promise.reject(new Error('no STS today')) }), impatient),
      /not answered in time[^]*EndpointFailing/,
    ],
    [
      'an EC2 that calls every machine as it likes to be called',
      lying((instance) => ({ ...instance, tags: new Map(instance.tags).set('Name', 'demo-node-1') })),
      /should be denied for IdentityNotAllowed: TofuNodeTaken/,
    ],
    [
      'an EC2 that takes the first machine for terminated: its name passes on',
      lying((instance, calls) => (calls > 1 && instance.addresses.includes('10.0.0.1') ? ended(instance) : instance)),
      /a request that should be denied \(TofuNodeTaken\) got a certificate/,
    ],
    [
      'an EC2 that knows no tag of the cluster',
      lying((instance) => ({ ...instance, tags: new Map([['Name', 'demo-node-1']]) })),
      /the request was refused: IdentityNotAllowed/,
    ],
    [
      'an EC2 that answers of another account',
      lying((instance) => ({ ...instance, ownerId: '999988887777' })),
      /the request was refused: AttestationInvalid/,
    ],
    [
      'a key that signs for another CA',
      () => ({
        wrapAuthority: (authority) => ({
          ...authority,
          signer: { ...authority.signer, sign: (tbs) => otherKey.sign(tbs) },
        }),
        ...impatient,
      }),
      /not answered in time/,
    ],
  ])('ends with 1 with %s', async (_, planted, reason) => {
    const { code, text } = await play(planted);
    expect(text).toMatch(reason);
    expect(text).toContain('\nfailed: ');
    expect(text).not.toContain('\nok');
    expect(code).toBe(1);
  });

  const otherKey = embeddedSigner(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey);

  test('is not for a real cluster', async () => {
    let text = '';
    const terminal = createTerminal((more) => (text += more), false);
    expect(await main(['hijack', '--kubeconfig', '/etc/hostname'], { terminal })).toBe(2);
    expect(text).toContain('"hijack" plays on this machine only');
  });
});

describe('the stand-in for AWS', () => {
  const id = 'csr-attest/v1/demo/0123';
  async function asked(change: (request: StsRequest) => StsRequest = (request) => request) {
    const aws = createStandInAws('tag');
    const machine = aws.launch('n1');
    const url = Buffer.from(machine.signToken(id).slice('k8s-aws-v1.'.length), 'base64url').toString();
    const host = `sts.${aws.region}.amazonaws.com`;
    const request = { host, path: url.slice(`https://${host}`.length), headers: { 'x-k8s-aws-id': id } };
    return { machine, answer: await aws.ports.sts(change(request)) };
  }

  test('knows a machine by its signature', async () => {
    const { answer, machine } = await asked();
    expect(answer.status).toBe(200);
    expect(answer.body).toContain(`assumed-role/aws:ec2-instance/${machine.instanceId}"`);
  });

  test.each<[string, (request: StsRequest) => StsRequest]>([
    ['another id', (request) => ({ ...request, headers: { 'x-k8s-aws-id': `${id}4` } })],
    ['no id', (request) => ({ ...request, headers: {} })],
    ['another host', (request) => ({ ...request, host: 'sts.us-east-1.amazonaws.com' })],
    ['another action', (request) => change(request, 'GetCallerIdentity', 'GetSessionToken')],
    ['a parameter more', (request) => ({ ...request, path: `${request.path}&a=b` })],
    ['another key', (request) => change(request, 'Credential=ASIA', 'Credential=ASIB')],
    ['another session token', (request) => change(request, 'Security-Token=', 'Security-Token=A')],
    [
      'another signature',
      (request) => ({ ...request, path: request.path.replace(/.$/, (end) => (end === '0' ? '1' : '0')) }),
    ],
  ])('refuses %s', async (_, altered) => {
    expect((await asked(altered)).answer.status).toBe(403);
  });

  function change(request: StsRequest, from: string, to: string): StsRequest {
    expect(request.path).toContain(from);
    return { ...request, path: request.path.replace(from, to) };
  }
});

/** What STS answers about an instance's own credentials. */
function callerIs(instanceId: string): StsAnswer {
  const account = '000011112222';
  const result = {
    Account: account,
    Arn: `arn:aws:sts::${account}:assumed-role/aws:ec2-instance/${instanceId}`,
    UserId: `${account}:aws:ec2-instance:${instanceId}`,
  };
  const body = { GetCallerIdentityResult: result, ResponseMetadata: { RequestId: 'x' } };
  return {
    status: 200,
    contentType: 'application/json',
    body: JSON.stringify({ GetCallerIdentityResponse: body }),
  };
}

function ended({ instanceId, ownerId, availabilityZone, launchTime }: InstanceDescription): InstanceDescription {
  const none = { primaryAddresses: [], primaryDnsNames: [], addresses: [], dnsNames: [] };
  const nothing = { tags: new Map<string, string>(), ...none };
  return { instanceId, ownerId, availabilityZone, launchTime, state: 'terminated', ...nothing };
}
