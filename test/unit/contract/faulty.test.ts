import { describe, expect, test } from 'vitest';
import { createFaults, visitEveryFault } from '../../contract/faulty.ts';
import type { VisitedPlan } from '../../contract/faulty.ts';

/** A store of one number, and a worker that reads it, adds one and writes it, trying again once. */
function counter() {
  let value = 0;
  return {
    name: 'counter',
    read: async () => value,
    write: async (next: number) => {
      value = next;
    },
    value: () => value,
  };
}

async function addOne(port: { read(): Promise<number>; write(next: number): Promise<void> }): Promise<void> {
  await port.write((await port.read()) + 1);
}

describe('createFaults', () => {
  test('without a plan passes everything through and counts the calls of all ports together', async () => {
    const [a, b] = [counter(), counter()];
    const faults = createFaults();
    await addOne(faults.wrap('a', a));
    await addOne(faults.wrap('b', b));
    expect([a.value(), b.value()]).toEqual([1, 1]);
    expect(faults.wrap('a', a).name).toBe('counter');
    expect(faults.calls).toEqual([
      { number: 1, port: 'a', method: 'read' },
      { number: 2, port: 'a', method: 'write' },
      { number: 3, port: 'b', method: 'read' },
      { number: 4, port: 'b', method: 'write' },
    ]);
    expect(faults.injected).toEqual([]);
  });

  test('before: the call has no effect; after: it has, and the caller is told otherwise', async () => {
    for (const [time, value] of [
      ['before', 0],
      ['after', 1],
    ] as const) {
      const store = counter();
      const faults = createFaults({ call: 2, time, kind: 'once' });
      await expect(addOne(faults.wrap('store', store))).rejects.toThrow(`injected: ${time} call 2, store.write`);
      expect(store.value()).toBe(value);
      await addOne(faults.wrap('store', store));
      expect(store.value()).toBe(value + 1);
    }
  });

  test('a crash ends every later call too, and what was under way is never heard of', async () => {
    const store = counter();
    const faults = createFaults();
    faults.failAt(2, 'after', 'crash');
    const port = faults.wrap('store', store);
    const slow = faults.wrap('slow', { wait: () => new Promise<void>((done) => setTimeout(done, 20)) }).wait();
    await expect(port.write(7)).rejects.toThrow('injected: after call 2');
    expect(faults.crashed).toBe(true);
    await expect(port.write(8)).rejects.toThrow('dead before call 3');
    await expect(slow).rejects.toThrow('dead after call 1');
    expect(store.value()).toBe(7);
    expect(faults.injected).toEqual([{ number: 2, port: 'store', method: 'write' }]);
  });
});

describe('visitEveryFault', () => {
  /** Runs `addOne`, once more if it fails, and tells what was visited and which value each run left. */
  async function visit(options: { depth?: number }) {
    const values: number[] = [];
    const visited = await visitEveryFault(async (faults) => {
      const store = counter();
      const port = faults.wrap('store', store);
      await addOne(port).catch(() => addOne(port).catch(() => {}));
      values.push(store.value());
    }, options);
    return { values, plans: visited.map((plan) => plan.map(describeFault).join(', ')) };
  }
  const describeFault = ({ call, time, kind, method }: VisitedPlan[number]) => `${kind} ${time} ${call} ${method}`;

  test('visits each call of the run before and after, as a failure and as a crash', async () => {
    const { values, plans } = await visit({});
    expect(plans).toEqual([
      'once before 1 read',
      'once before 2 write',
      'once after 1 read',
      'once after 2 write',
      'crash before 1 read',
      'crash before 2 write',
      'crash after 1 read',
      'crash after 2 write',
    ]);
    // The first run is undisturbed, and each row ends with one whose fault is not reached: 1. A write whose answer was
    // lost counts twice (this worker is not idempotent); a crash ends it.
    expect(values.join(' ')).toBe(['1', '1 1 1', '1 2 1', '0 0 1', '0 1 1'].join(' '));
  });

  test('with two faults a run also visits the calls of the retry', async () => {
    const { plans } = await visit({ depth: 2 });
    expect(plans).toContain('once before 1 read, once before 2 read');
    expect(plans).toContain('once after 2 write, crash after 4 write');
    expect(plans.filter((plan) => plan.includes(', '))).toHaveLength(2 * 4 * 2 * 2);
    expect(new Set(plans).size).toBe(plans.length);
  });

  test('a scenario that calls nothing, and one that never ends, are mistakes of the test', async () => {
    await expect(visitEveryFault(async () => {})).rejects.toThrow(/made no call/);
    const endless = visitEveryFault(
      async (faults) => {
        const port = faults.wrap('store', counter());
        for (let i = 0; i < 30; i++) await port.read().catch(() => {});
      },
      { callLimit: 20 },
    );
    await expect(endless).rejects.toThrow(/does not end/);
  });
});
