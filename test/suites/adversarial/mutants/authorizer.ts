/** Mistakes in the authorizer, each of which admits a caller that it must refuse. */
import { join } from 'node:path';
import type { Subject } from '../../../harness/mutants/subject.ts';

const strictJson = '../../core/encoding/strict-json.ts';
const tokenHeader = '../../core/jwt/token-header.ts';
const keySource = '../../core/jwt/key-source.ts';
const mutants: readonly (readonly [breaks: string, file: string, find: string, instead: string])[] = [
  ['any issuer', 'token.ts', '      issuer: access.issuer,\n', ''],
  ['any audience', 'token.ts', 'if (only !== audience)', 'if (only === undefined)'],
  [
    'several audiences',
    'token.ts',
    'Array.isArray(aud) && aud.length === 1 ? aud[0] : aud',
    '[aud].flat().find((a) => a === audience)',
  ],
  ['any subject', 'token.ts', 'if (!subjects.includes(sub))', 'if (subjects.length === 0)'],
  ['a subject by its beginning', 'token.ts', '!subjects.includes(sub)', '!subjects.some((s) => sub.startsWith(s))'],
  ['any time', 'token.ts', 'clockTolerance: leewaySeconds', 'clockTolerance: 1e9'],
  ['a long leeway', 'token.ts', 'const leewaySeconds = 30;', 'const leewaySeconds = 300;'],
  ['any lifetime', 'token.ts', '(exp ?? 0) - (iat ?? 0) > maxLifetimeSeconds', 'exp === iat'],
  ['a second more', 'token.ts', '(iat ?? 0) > maxLifetimeSeconds', '(iat ?? 0) > maxLifetimeSeconds + 1'],
  ['a token of later', 'token.ts', '      maxTokenAge: maxLifetimeSeconds,\n', ''],
  ['no exp', 'token.ts', '!Number.isSafeInteger(exp)', 'false'],
  ['no nbf', 'token.ts', '!Number.isSafeInteger(nbf)', 'false'],
  ['half a second', 'token.ts', '!Number.isSafeInteger(iat)', 'false'],
  ['more algorithms', 'token.ts', "['RS256', 'ES256']", "['RS256', 'ES256', 'RS512', 'PS256']"],
  ['any header', tokenHeader, '!Object.keys(header).every((name) => headerMembers.has(name))', 'false'],
  ['two algorithms in the header', tokenHeader, 'hasDuplicateKeys(tokenPart(token, 0)) || ', ''],
  ['claims twice', 'token.ts', 'if (hasDuplicateKeys(tokenPart(token, 1)))', 'if (token === "")'],
  ['keys inside twice', strictJson, 'open.push(new Set())', 'open.push(open.length === 0 ? new Set() : undefined)'],
  ['two spellings of a key', strictJson, 'JSON.parse(token.slice(0, -colon.length))', 'token'],
  ['no kid', tokenHeader, "typeof kid !== 'string' || kid === ''", 'false'],
  ['tokens of any length', 'token.ts', 'const maxTokenLength = 8_192;', 'const maxTokenLength = 81_920;'],
  ['a token of two', 'token.ts', '/^Bearer (', '/^Bearer (?:.*,Bearer )?('],
  [
    'a signature by any key',
    'token.ts',
    'return failure({ reason: reasonOf(error) });',
    'return checkClaims(token, JSON.parse(tokenPart(token, 1)), access);',
  ],
  ['private keys in the set', keySource, "['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']", "['k']"],
  ['shared keys in the set', keySource, "'oth', 'k']", "'oth']"],
  ['any cluster', 'authorizer.ts', 'if (cluster !== access.cluster)', "if (cluster === '')"],
  ['any path', 'call-path.ts', '{1,2}$/', '*/'],
  ['a path with something before it', 'call-path.ts', '/^\\/v1', '/\\/v1'],
  ['any kind of event', 'authorizer.ts', "event.version !== '2.0' || event.type !== 'REQUEST'", 'false'],
];

export const subject: Subject = {
  module: import.meta.filename,
  changes: mutants.map(([breaks, file, find, instead]) => ({
    file: join('lambdas/authorizer', file),
    breaks,
    find,
    instead,
  })),
  cases: ['test/suites/adversarial/mutants/authorizer-cases.ts'],
};
