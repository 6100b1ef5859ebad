/** For each trouble the log lines with which the functions report it, written by their own code. */
import { noRevocations } from '../../../harness/stack/no-crls.ts';
import { signAnswer, verdictAnswer } from '../../../../adapters/lambda/answers.ts';
import { refuseCaller } from '../../../../adapters/lambda/caller.ts';
import type { Answered } from '../../../../adapters/lambda/log.ts';
import { busyAfter, logEntry } from '../../../../adapters/lambda/log.ts';
import { serveOrRefuse } from '../../../../adapters/lambda/misconfigured.ts';
import type { CaConfiguration } from '../../../../core/configuration/model/cluster.ts';
import type { JwtAccess } from '../../../../core/configuration/model/deployment.ts';
import { isRefusalCode, refused, violation } from '../../../../core/outcome/outcome.ts';
import type { RefusalCode } from '../../../../core/outcome/outcome.ts';
import type { Trouble } from '../../../../core/outcome/trouble.ts';
import { MisconfigurationError, ThrottledError } from '../../../../core/ports/errors.ts';
import { createAuthorizer } from '../../../../lambdas/authorizer/authorizer.ts';
import type { AuthorizerEvent } from '../../../../lambdas/authorizer/authorizer.ts';
import { createCaHandler } from '../../../../lambdas/ca/handler.ts';
import type { CaPorts } from '../../../../lambdas/ca/actions/ports.ts';

/** A line, and the function in whose log it is. */
export type WrittenLine = readonly [service: 'Sign' | 'Attest' | 'Authorizer' | 'Ca', line: object];

export interface TroubledCluster {
  readonly name: string;
  readonly cas: ReadonlyMap<string, CaConfiguration>;
  readonly jwt: JwtAccess;
}

const line = ([answer, fields]: Answered): object => logEntry(answer, 5, fields);

export async function linesOf(trouble: Trouble, cluster: TroubledCluster): Promise<readonly WrittenLine[]> {
  const code = trouble.replace(/^refused-/, '');
  if (isRefusalCode(code)) return refusalLines(code);
  switch (trouble as Exclude<Trouble, `refused-${string}`>) {
    case 'internal':
      return [
        ...inBoth(() => busyLine(new MisconfigurationError('the key cannot be used'))),
        ...inBoth(() => busyLine(new TypeError('a defect'))),
        ...(await misconfiguredLines()),
      ];
    case 'unavailable':
      return inBoth(() => busyLine(new Error('no answer')));
    case 'throttled':
      return inBoth(() => busyLine(new ThrottledError('slow down')));
    case 'retirement-fails':
      return [
        ['Attest', scheduledLine(new Error('no answer'))],
        ['Attest', scheduledLine(new ThrottledError('slow down'))],
      ];
    case 'callers-refused':
      return inBoth(() => line(refuseCaller(stranger, 'c')));
    case 'authorizer-faults':
      return authorizerLines(undefined, {});
    case 'authorizer-keys':
      return authorizerLines(cluster, { authorization: `Bearer ${jwtHeader}.e30.AA` });
    case 'ca-faults':
      return [
        ...(await caLines(cluster, async () => undefined)),
        ...(await caLines(cluster, () => Promise.reject(new Error('away')))),
      ];
  }
}

const stranger = {
  kind: 'refused',
  caller: 'arn:aws:sts::111122223333:assumed-role/deployer/alice',
  principal: 'arn:aws:sts::111122223333:assumed-role/deployer',
} as const;

const inBoth = (make: () => object): readonly WrittenLine[] => [
  ['Sign', make()],
  ['Attest', make()],
];

function scheduledLine(error: unknown): object {
  const outcome = busyAfter(error, (count) => new Uint8Array(count));
  return line([signAnswer(outcome, undefined), { look: 'scheduled', why: outcome.why, error }]);
}

function busyLine(error: unknown): object {
  const outcome = busyAfter(error, (count) => new Uint8Array(count));
  return line([signAnswer(outcome, undefined), { why: outcome.why, error }]);
}

/** Another violation follows: the first one decides. */
function refusalLines(code: RefusalCode): readonly WrittenLine[] {
  const violations = [violation(code, 'm'), violation('RequestMalformed', 'm')] as const;
  const codes = violations.map((each) => each.code);
  const denied = { kind: 'deny', violations, annotations: {}, repeat: false } as const;
  return [
    ['Sign', line([signAnswer(refused(...violations), undefined), { codes }])],
    ['Attest', line([verdictAnswer(denied), { decision: 'deny', repeat: false, codes }])],
  ];
}

/** What a function that cannot start writes to its standard output. */
async function misconfiguredLines(): Promise<readonly WrittenLine[]> {
  const written: string[] = [];
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = (text) => written.push(String(text)) > 0;
  try {
    const handler = serveOrRefuse<never>(() => {
      throw new Error('no table');
    });
    // It looks at no part of the event.
    await handler({} as Parameters<typeof handler>[0], undefined);
  } finally {
    process.stdout.write = write;
  }
  return written.map((text) => ['Sign', JSON.parse(text) as object]);
}

const jwtHeader = Buffer.from(JSON.stringify({ alg: 'ES256', kid: 'k' })).toString('base64url');

export async function authorizerLines(
  cluster: TroubledCluster | undefined,
  headers: NonNullable<AuthorizerEvent['headers']>,
): Promise<readonly WrittenLine[]> {
  const lines: WrittenLine[] = [];
  const authorize = createAuthorizer(cluster && { cluster: cluster.name, jwt: cluster.jwt }, {
    now: () => 0,
    fetchJwks: () => Promise.reject(new Error('away')),
    log: (entry) => lines.push(['Authorizer', entry]),
  });
  await authorize({ version: '2.0', type: 'REQUEST', rawPath: `/v1/clusters/${cluster?.name}/sign`, headers });
  return lines;
}

async function caLines(
  { name, cas }: TroubledCluster,
  find: CaPorts['store']['find'],
): Promise<readonly WrittenLine[]> {
  const lines: WrittenLine[] = [];
  const handler = createCaHandler({
    connect: () => ({
      ...noRevocations,
      cluster: name,
      cas,
      profiles: new Map(),
      key: () => {
        throw new Error('no key');
      },
      store: { find, add: async () => false },
      origin: () => ({ now: 0, randomBytes: (count) => new Uint8Array(count) }),
    }),
    respond: async () => undefined,
    wait: async () => undefined,
    log: (entry) => lines.push(['Ca', entry]),
  });
  await handler({ action: 'show' }).catch(() => undefined);
  return lines;
}
