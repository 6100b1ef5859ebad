/**
 * Who may cause an event of sign, attest, ca or authorizer, in all templates: a principal that may invoke a function can make up
 * the whole event, the caller in it included.
 */
import { describe, expect, test } from 'vitest';
import { routesOf } from '../../../lib/front-door.ts';
import { clusters } from './clusters.ts';
import { configuration, ofType, plain, statementsOf, synthesise } from './synthesis.ts';
import type { Statement } from './synthesis.ts';

const synthesis = synthesise(clusters);
const configured = configuration(clusters);
const actions = ['lambda:InvokeFunction', 'lambda:InvokeFunctionUrl', 'lambda:InvokeAsync', 'execute-api:Invoke'];

/** Patterns of IAM: `*` any characters, `?` one; without regard to case. */
function covers(pattern: string, action: string): boolean {
  const source = pattern
    .replaceAll(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`, 'i').test(action);
}

const invokes = ({ Effect, Action, NotAction }: Statement & { readonly NotAction?: unknown }): boolean =>
  Effect === 'Allow' &&
  (NotAction !== undefined || [Action].flat().some((each) => actions.some((action) => covers(each, action))));

describe('finding 2: who may invoke the functions, by any template', () => {
  const identity = [...synthesis.templates].flatMap(([stack, of]) =>
    ['AWS::IAM::Policy', 'AWS::IAM::ManagedPolicy']
      .flatMap((type) => ofType(of, type))
      .flatMap((policy) => statementsOf(policy[1]).map((statement) => ({ stack, statement }))),
  );

  test('are named in policies of their own: no role has one inside it, or one of AWS', () => {
    const inside = [...synthesis.templates].flatMap(([stack, of]) =>
      ofType(of, 'AWS::IAM::Role')
        .filter(([, { Properties }]) => 'Policies' in Properties || 'ManagedPolicyArns' in Properties)
        .map(([id]) => `${stack} ${id}`),
    );
    expect(inside).toEqual([]);
  });

  test('are, by identity, sign for attest alone, and the caller role past no front door', () => {
    const found = identity
      .filter(({ statement }) => invokes(statement))
      .map(({ stack, statement }) => plain({ stack, ...statement }, synthesis) as Record<string, unknown>);
    const sids = found.map(({ stack, Sid }) => `${String(stack)} ${String(Sid)}`).toSorted();
    expect(sids).toEqual([
      'countersign-api CallOwnEndpoint',
      'countersign-first AskAttest',
      'countersign-first CallOwnUrl',
      'countersign-first OnlyByUrl',
      'countersign-metal AskAttest',
      'countersign-metal CallOwnEndpoint',
      'countersign-proof AskAttest',
      'countersign-proof CallOwnEndpoint',
      'countersign-url CallOwnUrl',
      'countersign-url OnlyByUrl',
    ]);
    for (const { Sid, Action, Resource, Condition } of found)
      switch (Sid) {
        case 'AskAttest':
          expect([Action, Resource, Condition]).toEqual(['lambda:InvokeFunction', '<Attest.Arn>', undefined]);
          break;
        case 'OnlyByUrl':
          expect([Action, Condition]).toEqual([
            'lambda:InvokeFunction',
            { Bool: { 'lambda:InvokedViaFunctionUrl': 'true' } },
          ]);
          break;
        case 'CallOwnUrl':
          expect([Action, Condition]).toEqual([
            'lambda:InvokeFunctionUrl',
            { StringEquals: { 'lambda:FunctionUrlAuthType': 'AWS_IAM' } },
          ]);
          break;
        default:
          expect(Action).toBe('execute-api:Invoke');
          // Each route by its own path: no wildcard anywhere.
          expect(JSON.stringify(Resource)).not.toContain('*');
      }
  });

  test('are, by the functions’ own policies, our APIs route by route and the schedules of ca and attest', () => {
    const broad: string[] = [];
    for (const [stack, of] of synthesis.templates) {
      const cluster = configured.clusters.get(/^countersign-(.+?)(-state)?$/.exec(stack)?.[1] ?? '')!;
      const paths = routesOf(cluster).map(({ path }) => path);
      for (const [id, { Properties }] of ofType(of, 'AWS::Lambda::Permission')) {
        const { Principal, SourceArn, FunctionUrlAuthType } = plain(Properties, synthesis) as Record<string, unknown>;
        const source = String(SourceArn);
        const ours =
          Principal === 'events.amazonaws.com'
            ? source === '<CaStatus.Arn>' || source === '<RetireTerminated.Arn>'
            : Principal === 'apigateway.amazonaws.com' &&
              (paths.some((path) => new RegExp(`:<(Iam|Jwt)Api>/\\*/\\*${path}$`).test(source)) ||
                /:<JwtApi>\/authorizers\/<\w+>$/.test(source));
        if (!ours || FunctionUrlAuthType !== undefined) broad.push(`${stack} ${id} ${String(Principal)} ${source}`);
      }
    }
    expect(broad).toEqual([]);
  });

  test('would be found in other words', () => {
    for (const action of [
      '*',
      'lambda:*',
      'lambda:Invoke*',
      'LAMBDA:invokefunction',
      'execute-api:*',
      'lambda:InvokeFunctio?',
    ])
      expect(invokes({ Effect: 'Allow', Action: action })).toBe(true);
    expect(invokes({ Effect: 'Allow', NotAction: 'iam:*' } as never)).toBe(true);
    expect(invokes({ Effect: 'Allow', Action: ['dynamodb:GetItem', 'lambda:GetFunction'] } as never)).toBe(false);
    expect(invokes({ Effect: 'Deny', Action: '*' })).toBe(false);
  });
});
