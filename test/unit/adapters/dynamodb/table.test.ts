import { expect, test } from 'vitest';
import { expiryPartition, itemKey, tableError } from '../../../../adapters/dynamodb/table.ts';
import { MisconfigurationError, ThrottledError } from '../../../../core/ports/errors.ts';

test('no two values make one key', () => {
  expect(itemKey('uid', 'd3b07384-d113-4ec6-a7d2-3b1f6a8e9c55')).toBe('uid#d3b07384-d113-4ec6-a7d2-3b1f6a8e9c55');
  expect(itemKey('ca', 'nodes', 'ab12')).toBe('ca#nodes#ab12');
  expect(itemKey('uid', 'a#b%23')).toBe('uid#a%23b%2523');
  const values = [['a#b'], ['a', 'b'], ['a%23b'], ['a%2523b'], ['a', '%b'], ['a%', 'b'], ['a#', 'b'], ['a', '#b']];
  expect(new Set(values.map((parts) => itemKey('ca', ...parts))).size).toBe(values.length);
});

test('a day’s certificates are spread by the last digit of their serial', () => {
  expect(expiryPartition(Date.parse('2026-06-01T23:59:59.999Z'), '0123abcf')).toBe('2026-06-01#f');
  expect(expiryPartition(Date.parse('2026-06-02T00:00:00Z'), '00')).toBe('2026-06-02#0');
});

test.each([
  ['ThrottlingException', 400, ThrottledError],
  ['ProvisionedThroughputExceededException', 400, ThrottledError],
  ['RequestLimitExceeded', 400, ThrottledError],
  ['AccessDeniedException', 400, MisconfigurationError],
  ['ResourceNotFoundException', 400, MisconfigurationError],
  ['ValidationException', 400, MisconfigurationError],
] as const)('%s', (name, httpStatusCode, kind) => {
  const error = Object.assign(new Error('said by AWS'), { name, $metadata: { httpStatusCode } });
  const told = tableError(error);
  expect(told).toBeInstanceOf(kind);
  expect(told).toMatchObject({ cause: error });
});

test.each([
  ['ConditionalCheckFailedException', 400],
  ['TransactionCanceledException', 400],
  ['TransactionConflictException', 400],
  ['InternalServerError', 500],
  ['ServiceUnavailable', 503],
  ['TimeoutError', undefined],
] as const)('%s is passed on as it is', (name, httpStatusCode) => {
  const error = Object.assign(new Error('said by AWS'), { name, $metadata: { httpStatusCode } });
  expect(tableError(error)).toBe(error);
});
