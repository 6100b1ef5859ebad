import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** A process and all it has started, while they run. */
export function processFamily(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(processFamily)];
}

/** `address:port` of every TCP socket a process listens at, as the kernel has them (proc(5), /proc/net/tcp). */
export function listeners(pid: number): string[] {
  const inodes = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch {
        return []; // closed meanwhile
      }
    }),
  );
  return ['tcp', 'tcp6'].flatMap((family) =>
    readFileSync(`/proc/${pid}/net/${family}`, 'utf8')
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode]) => state === listening && inodes.has(inode ?? ''))
      .map(([, local = '']) => readable(local)),
  );
}

const listening = '0A';

/** IPv4 addresses stand there as one little-endian number; any other stays as it is. */
function readable(local: string): string {
  const [address = '', port = ''] = local.split(':');
  const text = address.length === 8 ? [...Buffer.from(address, 'hex')].toReversed().join('.') : address;
  return `${text}:${Number.parseInt(port, 16)}`;
}
