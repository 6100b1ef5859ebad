import { fc } from '../../../harness/determinism/properties.ts';
import { describe, expect, test } from 'vitest';
import { decodeList } from '../../../../adapters/kubernetes/list.ts';
import type { JsonObject } from '../../../../core/ports/kubernetes-api.ts';

const enough = 1_000_000;

async function* pieces(text: string | Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield new Uint8Array(bytes.subarray(at, at + size));
}

async function decoded(text: string | Uint8Array, size: number, maxBytes = enough) {
  const items: JsonObject[] = [];
  const sizes: number[] = [];
  const head = await decodeList(pieces(text, size), maxBytes, (item, bytes) => {
    items.push(item);
    sizes.push(bytes);
  });
  return { head, items, sizes };
}

describe('a list, piece by piece', () => {
  const lists = fc.record({
    kind: fc.constant('List'),
    metadata: fc.dictionary(fc.string(), fc.jsonValue()),
    items: fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { maxLength: 5 }),
    after: fc.jsonValue(),
  });

  test('is what JSON.parse makes of the whole, however it is cut', async () => {
    await fc.assert(
      fc.asyncProperty(lists, fc.integer({ min: 1, max: 90 }), fc.boolean(), async (list, size, pretty) => {
        const text = JSON.stringify(list, null, pretty ? 1 : 0);
        const { items, ...head } = JSON.parse(text) as { items: JsonObject[] };
        const found = await decoded(text, size);
        expect(found.items).toEqual(items);
        expect(found.head).toEqual({ ...head, items: [] });
        if (!pretty) expect(found.sizes).toEqual(items.map((item) => Buffer.byteLength(JSON.stringify(item))));
      }),
      { numRuns: 500, seed: 7 },
    );
  });

  // Longer than what is read byte by byte, with everything that could be taken for its end.
  const long = `${'A'.repeat(100)}\\${'B'.repeat(50)}"}],"items":[{${'\\'.repeat(70)}"${'é€😀'.repeat(30)}\\`;

  test('does not take what a string says for structure, wherever it is cut', async () => {
    const list = { metadata: { [long]: long, items: [{ a: [1] }] }, items: [{ [long]: long }, {}, { b: long }] };
    const text = JSON.stringify(list);
    for (const size of [1, 2, 3, 5, 7, 16, 31, 32, 33, 64, 101, 1_000, 10_000]) {
      const { head, items } = await decoded(text, size);
      expect(items, `pieces of ${size}`).toEqual(list.items);
      expect(head).toEqual({ metadata: list.metadata, items: [] });
    }
  });

  test.each([
    ['an escape', String.raw`{"\u0069tems":[{"a":1},{}],"after":1}`],
    ['an escape, and once more without', String.raw`{"\u0069te\u006ds" : [{"a":1}],"items":[{}],"after":1}`],
    ['no escape, and something like it before', String.raw`{"\",\"items":[{"b":2}],"items":[{"a":1},{}],"after":1}`],
  ])('knows its items, spelled with %s', async (_, text) => {
    for (const size of [1, 2, 3, 5, 7, 1_000]) {
      const { head, items } = await decoded(text, size);
      expect(items).toEqual([{ a: 1 }, {}]);
      expect(head).toMatchObject({ items: [], after: 1 });
    }
  });

  test.each([
    ['null', { items: null }],
    ['nothing', {}],
    ['an object', { items: { a: [{}] } }],
  ])('leaves %s for items to the caller', async (_, list) => {
    expect(await decoded(JSON.stringify(list), 3)).toEqual({ head: list, items: [], sizes: [] });
  });

  test.each([
    ['nothing', ''],
    ['a page', '<html>not here</html>'],
    ['an array', '[{"items":[]}]'],
    ['half a list', '{"metadata":{},"items":[{"a":1},{"b":'],
    ['a list without its end', '{"metadata":{},"items":[{"a":1}'],
    ['a list cut after its items', '{"metadata":{},"items":[{"a":1}]'],
    ['a broken item', '{"items":[{"a":x}]}'],
    ['a broken head', '{"metadata":x,"items":[]}'],
    ['an item that is a number', '{"items":[1]}'],
    ['an item that is a text', '{"items":["{}"]}'],
    ['an item that is an array', '{"items":[[]]}'],
    ['two items without a comma', '{"items":[{}{}]}'],
    ['two items with two commas', '{"items":[{}, ,{}]}'],
    ['a comma before the first', '{"items":[,{}]}'],
    ['a comma behind the last', '{"items":[{},]}'],
    ['a comma alone', '{"items":[,]}'],
    ['a key that cannot be read', '{"\\items":[{}]}'],
  ])('throws at %s', async (_, text) => {
    for (const size of [1, 1_000]) await expect(decoded(text, size)).rejects.toThrow();
  });

  test('reads no more than it may', async () => {
    let read = 0;
    async function* endless(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('{"items":[');
      for (;;) {
        read += 5;
        yield Buffer.from('{},{}');
        yield Buffer.from(',');
      }
    }
    let seen = 0;
    expect(await decodeList(endless(), 1_000, () => (seen += 1))).toBeUndefined();
    expect(read).toBeLessThan(1_000);
    expect(seen).toBeGreaterThan(300); // what came before is not lost
  });
});
