/** `countersign machines pcrs`: what it prints is a policy that a configuration takes, and that the same boot satisfies. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { bootEvents, eventLog, startupLocality } from '../../../harness/tpm/event-log.ts';
import { run } from '../run.ts';

const log = eventLog(bootEvents());
const pcrs = (bytes: Buffer, ...argv: readonly string[]) =>
  run(['machines', 'pcrs', 'log', ...argv], { files: { log: bytes } });

interface Printed {
  readonly bank: string;
  readonly values: Readonly<Record<string, readonly string[]>>;
  readonly events: Readonly<Record<string, readonly (readonly string[])[]>>;
}

const configurationOf = (policy: Printed) =>
  JSON.stringify({
    version: 1,
    clusters: {
      demo: {
        cas: { ca: { subject: { commonName: 'CA' } } },
        profiles: { 'cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm': { attestation: { pcrs: policy } } },
        attestation: { audience: 'demo', tpm: {} },
        approval: { 'cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm': 'approve' },
      },
    },
  });

describe('the log of a boot', () => {
  test('gives values and events, in YAML and in JSON', async () => {
    const { code, out, err } = await pcrs(log);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const policy = parse(out) as Printed;
    expect(JSON.parse((await pcrs(log, '-o', 'json')).out)).toEqual(policy);
    expect(Object.keys(policy.values)).toEqual(['0', '2', '4', '7']);
    expect(policy.events['7']?.[0]?.map((event) => event.slice(65))).toEqual([
      'EV_EFI_VARIABLE_DRIVER_CONFIG SecureBoot',
      'EV_EFI_VARIABLE_DRIVER_CONFIG PK',
      'EV_SEPARATOR',
    ]);
    expect(policy.events['4']?.[0]?.map((event) => event.slice(65))).toEqual([
      'EV_EFI_ACTION Calling EFI Application from Boot Option',
      'EV_SEPARATOR',
      'EV_EFI_BOOT_SERVICES_APPLICATION',
    ]);
    // SHA-256 of the first value of the PCR, 32 zeros, and the digest of a separator, four zeros.
    expect(policy.values['2']).toEqual(['3d458cfe55cc03ea1f443f1562beec8df51c75e14a9fcf9a7234a13f198e7969']);
  });

  test('is a policy that a configuration takes, also of a machine that was measured before its first event', async () => {
    for (const bytes of [log, eventLog([startupLocality(3), ...bootEvents()])]) {
      const policy = parse((await pcrs(bytes)).out) as Printed;
      const validated = await run(['config', 'validate', 'c.yaml'], { files: { 'c.yaml': configurationOf(policy) } });
      expect(validated).toMatchObject({ code: 0 });
    }
    const values = async (bytes: Buffer) => (parse((await pcrs(bytes)).out) as Printed).values;
    const [ordinary, early] = [await values(log), await values(eventLog([startupLocality(3), ...bootEvents()]))];
    // From 31 zeros and the number of the locality, the digests of `firmware` and of a separator.
    expect(early['0']).toEqual(['98902c44f9545d0aa2b068689c9466344145cb9b42544930580fff89a6b22763']);
    expect(early['0']).not.toEqual(ordinary['0']);
    expect({ ...early, 0: [] }).toEqual({ ...ordinary, 0: [] });
  });

  test('of the PCRs that are wanted', async () => {
    const { out } = await pcrs(log, '--pcrs', '7,5');
    expect(Object.keys((parse(out) as Printed).values)).toEqual(['5', '7']);
  });
});

test('examples/bare-metal.yaml is a right configuration, and has a policy as the command prints it', async () => {
  const text = readFileSync(join(import.meta.dirname, '../../../../examples/bare-metal.yaml'), 'utf8');
  const validated = await run(['config', 'validate', 'c.yaml'], { files: { 'c.yaml': text } });
  expect(validated).toMatchObject({ code: 0, err: '' });
  const { bank: _, ...printed } = parse((await pcrs(log, '--pcrs', '7')).out) as Printed;
  const profiles = Object.values((parse(text) as Example).clusters.edge.profiles);
  expect(profiles.map(({ attestation }) => attestation.pcrs)).toEqual([printed, { values: printed.values }]);
});

interface Example {
  readonly clusters: { readonly edge: { readonly profiles: Readonly<Record<string, AttestedProfile>> } };
}
interface AttestedProfile {
  readonly attestation: { readonly pcrs: unknown };
}

test.for([
  [['--pcrs', '8'], 2, '"8" is not a PCR from 0 to 7'],
  [['--pcrs', '07'], 2, '"07" is not a PCR from 0 to 7'],
] as const)('refuses %j', async ([argv, code, message]) => {
  const refused = await pcrs(log, ...argv);
  expect(refused).toMatchObject({ code, out: '' });
  expect(refused.err).toContain(message);
});

test('refuses what is no log, and a log without a wanted PCR', async () => {
  const cut = await pcrs(log.subarray(0, -1));
  expect(cut).toMatchObject({ code: 1, out: '' });
  expect(cut.err).toContain('log: the event log ends inside an event');
  const one = await pcrs(eventLog(bootEvents().filter(({ pcr }) => pcr !== 2)));
  expect(one.err).toContain('log has no event of PCR 2');
});
