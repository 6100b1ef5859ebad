import { describe, expect, test } from 'vitest';
import { readEvidence, readJsonObject } from '../../../../core/encoding/strict-json.ts';
import { failure, success } from '../../../../core/outcome/result.ts';

const read = (text: string | Uint8Array) => readJsonObject(Buffer.from(text as string));

describe('readJsonObject', () => {
  test.for(['{}', ' {"a":1}\n', '{"a":{"a":1},"b":[{"a":1},{"a":2}]}', '{"a":"\\"a\\":","b":"{}"}', '{"__proto__":1}'])(
    'takes %s',
    (text) => {
      expect(read(text)).toEqual(success(JSON.parse(text) as unknown));
    },
  );

  test.for([
    '{"a":1,"a":1}',
    '{"a":1,"b":{},"a":2}',
    '{"a":1,"\\u0061":2}',
    '{"b":[{"a":1,"a" : 2}]}',
    '{"x":{"a":1},"y":"}","x":2}',
    '{"\\"":1,"\\"":2}',
    '{"__proto__":1,"__proto__":2}',
  ])('refuses %s: a key twice', (text) => {
    expect(read(text)).toEqual(failure('has a key twice'));
  });

  test.for(['', '{', '{"a":01}', '{} {}', '{"a":1,}', "{'a':1}", '\ufeff{}', '{"a":"\t"}'])(
    'refuses %j: not JSON',
    (text) => {
      expect(read(text)).toEqual(failure('is not JSON'));
    },
  );

  test.for(['[]', 'null', '"{}"', '1', 'true'])('refuses %s: no object', (text) => {
    expect(read(text)).toEqual(failure('is not a JSON object'));
  });

  test('refuses what is not UTF-8, and what is nested without end', () => {
    expect(readJsonObject(Buffer.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d))).toEqual(failure('is not JSON'));
    expect(read(`{"a":${'['.repeat(20_000)}`)).toEqual(failure('is not JSON'));
  });
});

describe('readEvidence', () => {
  const schema = { required: ['v', 'proof'], optional: ['nonce'] } as const;
  const evidence = (value: unknown) => readEvidence(Buffer.from(JSON.stringify(value)), schema);

  test('gives the fields', () => {
    expect(evidence({ v: 1, proof: 'x' })).toEqual(success({ v: 1, proof: 'x' }));
    expect(evidence({ v: 1, proof: 'x', nonce: 'n' })).toEqual(success({ v: 1, proof: 'x', nonce: 'n' }));
  });

  test('knows every key', () => {
    expect(evidence({ v: 1, proof: 'x', Nonce: 'n' })).toEqual(failure('has an unknown key'));
    expect(evidence({ v: 1, proof: 'x', constructor: 'n' })).toEqual(failure('has an unknown key'));
  });

  test('wants those that are required', () => {
    expect(evidence({ v: 1 })).toEqual(failure('lacks one of v, proof'));
    expect(evidence({})).toEqual(failure('lacks one of v, proof'));
  });
});
