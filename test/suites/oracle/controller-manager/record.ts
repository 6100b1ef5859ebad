import type { CorpusAuthority } from '../../../corpus/authority.ts';
import { writeRecording } from '../../../corpus/reference.ts';
import type { RecordedCase, RecordedDefault, Setting } from '../../../corpus/reference.ts';
import type { CorpusCase } from '../../../corpus/requests/cases.ts';
import type { NamelessRequest } from '../../../corpus/requests/legacy.ts';
import type { ReferenceRun } from './reference-cluster.ts';

interface RecordedRound {
  readonly setting: Setting;
  readonly cases: readonly CorpusCase[];
  readonly authority: CorpusAuthority;
  readonly run: ReferenceRun;
}

/** As much of a run as a fast check needs: keys on curves are short, and there is one RSA key of each size. */
export function record(seed: number, rounds: readonly RecordedRound[], nameless: readonly NamelessRequest[]): void {
  const [first] = rounds;
  if (first === undefined) throw new Error('nothing to record');
  const authorityOf = (setting: Setting): string =>
    rounds.find((round) => round.setting === setting)!.authority.certificate.toString('base64');
  const cases = rounds.flatMap(recordedCases);
  writeRecording({
    provenance: {
      what: 'requests and what kube-controller-manager made of them',
      version: 'v1.36.3, built from k8s.io/kubernetes as test/tools/kubernetes/go.mod pins it',
      how: 'COUNTERSIGN_CORPUS_RECORD=yes npm test -- test/suites/oracle/controller-manager/oracle.test.ts',
      seed,
      recorded: new Date().toISOString(),
    },
    authorities: { main: authorityOf('main'), short: authorityOf('short'), long: authorityOf('long') },
    cases,
    defaults: nameless.map(({ name, keyKind, request, usages }): RecordedDefault => ({
      defaulted: first.run.of(name).before.spec.signerName,
      keyKind,
      request: request.toString('base64'),
      ...(usages === undefined ? {} : { usages }),
    })),
  });
}

function recordedCases({ setting, cases, run }: RecordedRound): RecordedCase[] {
  const perGroup = new Map<string, number>();
  return cases.flatMap(({ name, signerName, keyKind, decision, request, usages, expirationSeconds }) => {
    const rsa = keyKind.startsWith('RSA');
    const group = rsa ? `${keyKind} ${decision === 'issued'}` : `${signerName} ${decision}`;
    const count = (perGroup.get(group) ?? 0) + 1;
    perGroup.set(group, count);
    if (count > (rsa ? 1 : setting === 'main' ? 24 : 8)) return [];

    const { before, answer } = run.of(name);
    const recorded: RecordedCase = {
      setting,
      signerName,
      keyKind,
      decision: answer.kind === 'refused' ? answer.message : decision,
      request: request.toString('base64'),
      usages,
      ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
      conditions: (before.status.conditions ?? []).map(({ type }) => type),
      ...(answer.kind === 'issued' ? { certificate: answer.certificate.toString('base64') } : {}),
    };
    return [recorded];
  });
}
