/** Puts every recorded request to our signer and reports where its answer is not the recorded one of the reference. */
import type { ProfileKind } from '../../core/policy/profile.ts';
import { ourSigner } from './ask.ts';
import type { OurSigner } from './ask.ts';
import { derivedKey } from './authority.ts';
import { clockOf, mismatches, recordedAuthority, settings } from './reference.ts';
import type { RecordedCase, RecordedDefault, Recording, ReferenceAnswer, Setting } from './reference.ts';
import { deviations } from './requests/deviations.ts';
import { namesOfNoNode } from './requests/names.ts';

export interface Replay {
  readonly asked: number;
  readonly problems: readonly string[];
}

export interface ReplayOptions {
  /** Whether there is a problem at all is enough to know. */
  readonly stopAtFirst?: boolean;
  /** Who is asked; core/issue.ts by default. */
  readonly signer?: typeof ourSigner;
}

export async function replay(
  recording: Recording,
  { stopAtFirst = false, signer = ourSigner }: ReplayOptions = {},
): Promise<Replay> {
  const problems: string[] = [];
  let asked = 0;
  for (const questions of [recordedAnswers, recordedDefaults, deviatingAnswers, forgery]) {
    for await (const found of questions(recording, signer)) {
      asked += 1;
      problems.push(...found);
      if (stopAtFirst && problems.length > 0) return { asked, problems };
    }
  }
  return { asked, problems };
}

/** What is wrong with each answer in turn. */
type Problems = AsyncGenerator<readonly string[], void, undefined>;

async function* recordedAnswers(recording: Recording, signerOf: typeof ourSigner): Problems {
  for (const setting of Object.keys(settings) as Setting[]) {
    const authority = recordedAuthority(recording, setting);
    const ours = signerOf(authority, { ...settings[setting], allowReservedSans: namesOfNoNode });
    for (const [index, recorded] of recording.cases.entries()) {
      if (recorded.setting !== setting) continue;
      const answer = answerOf(recorded);
      const clock = clockOf(answer, recordedSeconds(recording));
      yield attempt(ours, objectOf(recorded, index), clock, (said) =>
        mismatches(answer, said, authority.key).map(
          (problem) => `${setting} ${index} ${recorded.signerName} ${recorded.decision}: ${problem}`,
        ),
      );
    }
    ours.close();
  }
}

/** A signer that has only the profile of the right name knows the request if it gives it that name. */
async function* recordedDefaults(recording: Recording, signerOf: typeof ourSigner): Problems {
  for (const [index, recorded] of recording.defaults.entries()) {
    const kind = recorded.defaulted.replace('kubernetes.io/', '') as ProfileKind;
    const ours = signerOf(recordedAuthority(recording, 'main'), {
      ...settings.main,
      kinds: [kind],
      allowReservedSans: namesOfNoNode,
    });
    yield attempt(ours, betaObjectOf(recorded, index), recordedSeconds(recording), (said) => {
      // Deviation 7: the reference issues all of these; we keep names of nodes to the kubelet signers.
      const reserved = said.kind === 'refused' && said.codes.every((code) => code === 'NameReserved');
      const fine = said.kind === 'issued' || reserved;
      return fine ? [] : [`default ${index}, ${recorded.defaulted}: ${JSON.stringify(said)}`];
    });
    ours.close();
  }
}

/** What we do otherwise than the reference, and on purpose. */
async function* deviatingAnswers(recording: Recording, signerOf: typeof ourSigner): Problems {
  const ours = signerOf(recordedAuthority(recording, 'main'), settings.main);
  for (const [index, deviation] of deviations().entries()) {
    const { number, what, usages = ['client auth'], conditions, ours: expected } = deviation;
    const request = deviation.request.toString('base64');
    const object = objectOf({ ...deviation, request, usages, conditions: ['Approved'] }, `deviation-${index}`);
    const status = conditions === undefined ? {} : { status: { conditions } };
    yield attempt(ours, { ...object, ...status }, recordedSeconds(recording), (said) => {
      const fine =
        'ignores' in expected
          ? said.kind === 'left alone' && said.why === expected.ignores
          : said.kind === 'refused' && said.codes[0] === expected.code && said.message.includes(expected.says);
      return fine ? [] : [`deviation ${number}, ${what}: ${JSON.stringify(said).slice(0, 200)}`];
    });
  }
  ours.close();
}

/** A CA whose key is not the one in its certificate: whatever it signs, our own check must keep it in. */
async function* forgery(recording: Recording, signerOf: typeof ourSigner): Problems {
  const authority = { ...recordedAuthority(recording, 'main'), key: derivedKey('P-256', 'another') };
  const ours = signerOf(authority, settings.main);
  const issued = recording.cases.find(({ certificate, setting }) => certificate !== undefined && setting === 'main');
  if (issued === undefined) throw new Error('nothing is recorded');
  const kept = await attempt(ours, objectOf(issued, 'forged'), recordedSeconds(recording), () => []);
  yield kept.some((problem) => problem.includes('CertificateDefectError')) ? [] : ['a wrong signature leaves us'];
  ours.close();
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
    return [`ours throws ${String(error)}`];
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
  name: number | string,
): object {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: `replayed-${name}`, uid: `replayed-${name}` },
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
