/**
 * Puts every case to the provider as it is, and then without each check: `node try-removals.ts <part> <of>` prints what
 * came out as JSON. A process of its own, because each removal is one more copy of the modules, made as Node loads them:
 * no file is written.
 */
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import type { AttestationProvider } from '../../../core/attestation/evidence/provider.ts';
import type { AwsPorts } from '../../../core/attestation/aws/endpoints.ts';
import type { InstanceDescription } from '../../../core/attestation/aws/instance.ts';
import type { AwsAttestation } from '../../../core/configuration/model/attestation.ts';
import * as world from '../../corpus/attestation/aws-machine.ts';
import { casesBySubject } from '../../corpus/attestation/cases.ts';
import { createRegionKey } from '../../corpus/attestation/cms-writer.ts';
import { dataOf, judge } from '../../corpus/attestation/judge.ts';
import type { Removal } from '../../harness/removals/check-removals.ts';
import { findRemovals } from './removals.ts';

/** Outcome of every question, in order; without a check, only those that differ. */
export interface Tried {
  readonly asItIs: Readonly<Record<string, string>>;
  readonly without: readonly { readonly removal: Removal; readonly changed: Readonly<Record<string, string>> }[];
}

type ProviderOf = (policy: AwsAttestation, ports: AwsPorts) => AttestationProvider;

const folder = pathToFileURL(join(import.meta.dirname, '../../../core')).href;
const removals = findRemovals();
const marker = '?without=';

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    const number = context.parentURL?.split(marker)[1];
    return number !== undefined && resolved.url.startsWith(`${folder}/`)
      ? { ...resolved, url: `${resolved.url}${marker}${number}` }
      : resolved;
  },
  load(url, context, next) {
    const [plain = '', number] = url.split(marker);
    const loaded = next(plain, context);
    const removal = number === undefined ? undefined : removals[Number(number)];
    if (removal === undefined || plain !== `${folder}/${removal.file}`) return loaded;
    const text = Buffer.from(loaded.source as Uint8Array).toString();
    return { ...loaded, source: text.slice(0, removal.start) + removal.instead + text.slice(removal.end) };
  },
});

const identity = `aws#aws/${world.account}/${world.region}/${world.instanceId}`;
/** What `describe` is asked, for each state and for what it must not ask EC2 about. */
const described: readonly (readonly [
  name: string,
  identity: string,
  instance: Partial<InstanceDescription> | 'notFound',
])[] = [
  ['running', identity, {}],
  ['running, and somewhere else', identity, { availabilityZone: 'us-east-1a' }],
  ['not known', identity, 'notFound'],
  ['of another account', identity.replace(world.account, world.otherAccount), {}],
  ['of another region', identity.replace(world.region, 'us-east-1'), {}],
];

const cases = Object.entries(casesBySubject).flatMap(([subject, list]) =>
  list.map((one) => ({ name: `${subject}: ${one.name}`, one, data: dataOf(one) })),
);

/** Certificates that must not be pinned. */
const unfit = [
  ['an RSA key of 1024 bits', createRegionKey({ bits: 1024 }).certificate],
  ['an RSA key for PSS alone', createRegionKey({ kind: 'rsa-pss' }).certificate],
  ['an elliptic curve', createRegionKey({ kind: 'ec' }).certificate],
] as const;

async function outcomes(provider: ProviderOf): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const { name, one, data } of cases) {
    const { outcome, machine } = await judge(provider, one, data);
    found[name] = outcome.startsWith('crash')
      ? 'crash'
      : outcome + (machine === undefined ? '' : JSON.stringify(machine));
  }
  for (const [name, of, instance] of described) found[`describe: ${name}`] = await describe(provider, of, instance);
  for (const [name, der] of unfit) found[`certificate: ${name}`] = pin(provider, der);
  return found;
}

function pin(provider: ProviderOf, der: Uint8Array): string {
  const ec2 = { describeInstance: () => Promise.resolve('notFound' as const) };
  try {
    provider(world.policy, { sts: world.noSts, ec2, regionCertificates: new Map([[world.region, [der]]]) });
    return 'accepted';
  } catch {
    return 'refused';
  }
}

async function describe(
  provider: ProviderOf,
  of: string,
  instance: Partial<InstanceDescription> | 'notFound',
): Promise<string> {
  const describeInstance = () =>
    Promise.resolve(instance === 'notFound' ? instance : { ...world.instance, ...instance });
  const ports = { sts: world.noSts, ec2: { describeInstance }, regionCertificates: world.regionCertificates };
  try {
    const state: unknown = await provider(world.policy, ports).describe(of, world.now);
    return state === undefined ? 'nothing' : JSON.stringify(state);
  } catch {
    return 'crash';
  }
}

async function load(number: number | undefined): Promise<ProviderOf> {
  const query = number === undefined ? '' : `${marker}${number}`;
  return ((await import(`${folder}/attestation/aws/provider.ts${query}`)) as { awsProvider: ProviderOf }).awsProvider;
}

const [part = 0, of = 1] = process.argv.slice(2).map(Number);
const asItIs = await outcomes(await load(undefined));
const without: Tried['without'][number][] = [];
for (const [number, removal] of removals.entries()) {
  if (number % of !== part) continue;
  const found = await outcomes(await load(number));
  const changed = Object.fromEntries(Object.entries(found).filter(([name, outcome]) => asItIs[name] !== outcome));
  without.push({ removal, changed });
}
process.stdout.write(JSON.stringify({ asItIs, without } satisfies Tried));
