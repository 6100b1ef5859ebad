/**
 * Puts every recorded request to our signer and says where its answer is not the recorded one of the reference.
 * Run as a program it prints that as JSON: so it can judge a changed copy of core/ in a process of its own.
 */
import { ourSigner } from './ask.ts';
import type { OurSigner } from './ask.ts';
import { clockOf, mismatches, readRecording, recordedAuthority, settings } from './reference.ts';
import type { RecordedCase, RecordedDefault, Recording, ReferenceAnswer, Setting } from './reference.ts';
import type { ProfileKind } from '../../core/profiles.ts';

export interface Replay {
  readonly asked: number;
  readonly problems: readonly string[];
}

export async function replay(recording: Recording): Promise<Replay> {
  const problems: string[] = [];
  for (const setting of Object.keys(settings) as Setting[]) {
    const authority = recordedAuthority(recording, setting);
    const ours = ourSigner(authority, { maxTtlSeconds: settings[setting].maxTtlSeconds });
    for (const [index, recorded] of recording.cases.entries()) {
      if (recorded.setting !== setting) continue;
      const answer = answerOf(recorded);
      const found = await attempt(
        ours,
        objectOf(recorded, index),
        clockOf(answer, recordedSeconds(recording)),
        (said) => mismatches(answer, said, authority.key),
      );
      problems.push(
        ...found.map((problem) => `${setting} ${index} ${recorded.signerName} ${recorded.decision}: ${problem}`),
      );
    }
    ours.close();
  }
  for (const [index, recorded] of recording.defaults.entries())
    problems.push(...(await defaultProblems(recording, recorded, index)));
  return { asked: recording.cases.length + recording.defaults.length, problems };
}

/** A signer that has only the profile of the right name knows the request if it gives it that name. */
async function defaultProblems(recording: Recording, recorded: RecordedDefault, index: number): Promise<string[]> {
  const kind = recorded.defaulted.replace('kubernetes.io/', '') as ProfileKind;
  const ours = ourSigner(recordedAuthority(recording, 'main'), {
    maxTtlSeconds: settings.main.maxTtlSeconds,
    kinds: [kind],
  });
  const problems = await attempt(ours, betaObjectOf(recorded, index), recordedSeconds(recording), (said) =>
    said.kind === 'left alone' ? [`not ${recorded.defaulted} to us: ${said.why}`] : [],
  );
  ours.close();
  return problems.map((problem) => `default ${index}: ${problem}`);
}

async function attempt(
  ours: OurSigner,
  object: unknown,
  seconds: number,
  judge: (said: Awaited<ReturnType<OurSigner['ask']>>) => string[],
): Promise<string[]> {
  try {
    return judge(await ours.ask(object, seconds));
  } catch (error) {
    return [`ours throws: ${error instanceof Error ? error.message : String(error)}`];
  }
}

function recordedSeconds({ provenance }: Recording): number {
  return Math.floor(Date.parse(String(provenance['recorded'])) / 1000);
}

export function answerOf(recorded: RecordedCase): ReferenceAnswer {
  if (recorded.certificate !== undefined)
    return { kind: 'issued', certificate: Buffer.from(recorded.certificate, 'base64') };
  if (recorded.decision === 'left alone') return { kind: 'left alone' };
  return { kind: 'refused', reason: 'SignerValidationFailure', message: recorded.decision };
}

/** As the API server would send it. */
export function objectOf(
  {
    signerName,
    request,
    usages,
    expirationSeconds,
    conditions,
  }: Omit<RecordedCase, 'setting' | 'keyKind' | 'decision'>,
  index: number,
): unknown {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: `recorded-${index}`, uid: `recorded-${index}` },
    spec: { signerName, request, usages, expirationSeconds, username: 'test-admin', groups: ['system:masters'] },
    status: { conditions: conditions.map((type) => ({ type, status: 'True' })) },
  };
}

function betaObjectOf({ request, usages }: RecordedDefault, index: number): unknown {
  return {
    apiVersion: 'certificates.k8s.io/v1beta1',
    kind: 'CertificateSigningRequest',
    metadata: { name: `defaulted-${index}`, uid: `defaulted-${index}` },
    spec: { request, usages, username: 'test-admin' },
    status: { conditions: [{ type: 'Approved' }] },
  };
}

if (process.argv[1] === import.meta.filename) process.stdout.write(JSON.stringify(await replay(readRecording())));
