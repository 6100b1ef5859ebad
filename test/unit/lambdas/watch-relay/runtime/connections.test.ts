import { EventEmitter } from 'node:events';
import type { Server } from 'node:net';
import { expect, test } from 'vitest';
import { boundConnections } from '../../../../../lambdas/watch-relay/runtime/connections.ts';

/** Sockets of any address, which one machine has not. */
function setUp(total: number, perAddress: number, { later = false } = {}) {
  const server = new EventEmitter();
  const connections = boundConnections(server as Server, { total, perAddress });
  const open = new Set<string>();
  const ends: (() => void)[] = [];
  let ports = 1_000;
  function connect(remoteAddress: string | undefined, name = `${remoteAddress}/${ports}`) {
    const socket = Object.assign(new EventEmitter(), {
      remoteAddress,
      remotePort: (ports += 1),
      destroy() {
        if (!open.delete(name)) return;
        const end = () => void socket.emit('close');
        if (later) ends.push(end);
        else end();
      },
    });
    open.add(name);
    server.emit('connection', socket);
    return socket;
  }
  const tellEnds = (): void => ends.splice(0).forEach((end) => end());
  return { connections, open, connect, tellEnds };
}

test('finding 20: of one address so many strangers, and the oldest of them goes', () => {
  const { open, connect } = setUp(10, 3);
  for (const name of ['a', 'b', 'c', 'd', 'e']) connect('10.0.0.1', name);
  connect('10.0.0.2', 'other');
  expect([...open]).toEqual(['c', 'd', 'e', 'other']);
});

test('finding 20: in all so many, and one of the address that has most goes', () => {
  const { open, connect } = setUp(4, 3);
  connect('10.0.0.1', 'first');
  for (const name of ['a', 'b', 'c']) connect('10.0.0.2', name);
  connect('10.0.0.3', 'late');
  expect([...open]).toEqual(['first', 'b', 'c', 'late']);
  connect('10.0.0.4', 'later');
  expect([...open]).toEqual(['first', 'c', 'late', 'later']);
});

test('finding 20: who is known is never closed for others, however many come', () => {
  const { connections, open, connect } = setUp(4, 2);
  for (const name of ['known 1', 'known 2', 'known 3']) connections.keep(connect('10.0.0.1', name));
  for (let number = 0; number < 100; number += 1) connect(`10.0.${number}.1`);
  expect(open.size).toBe(4);
  expect([...open].slice(0, 3)).toEqual(['known 1', 'known 2', 'known 3']);
  // And of its address strangers have the same room.
  connect('10.0.0.1', 'stranger');
  expect([...open]).toEqual(['known 1', 'known 2', 'known 3', 'stranger']);
});

test('where only the known have room, a new one goes at once, and has room when one of them has gone', () => {
  const { connections, open, connect } = setUp(2, 2);
  const first = connect('10.0.0.1', 'known 1');
  connections.keep(first);
  connections.keep(connect('10.0.0.1', 'known 2'));
  connect('10.0.0.2', 'new');
  expect([...open]).toEqual(['known 1', 'known 2']);
  first.destroy();
  connect('10.0.0.2', 'newer');
  expect([...open]).toEqual(['known 2', 'newer']);
});

test('of connections that come together each closes another one, though their ends are told later', () => {
  for (const [total, perAddress, addresses] of [
    [10, 3, ['10.0.0.1']],
    [3, 10, ['10.0.0.1', '10.0.0.2']],
  ] as const) {
    const { open, connect, tellEnds } = setUp(total, perAddress, { later: true });
    for (let number = 0; number < 12; number += 1) connect(addresses[number % addresses.length], String(number));
    expect(open.size).toBe(3);
    tellEnds();
    connect('10.0.0.1', 'next');
    expect(open.size).toBe(3);
    expect(open).toContain('next');
  }
});

test('one that has gone before it is looked at counts for nothing', () => {
  const { open, connect } = setUp(2, 2);
  for (let number = 0; number < 5; number += 1) connect(undefined);
  connect('10.0.0.1', 'a');
  connect('10.0.0.2', 'b');
  expect([...open]).toEqual(['a', 'b']);
});
