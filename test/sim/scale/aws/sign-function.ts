/**
 * The sign function by the calls it makes: the ports of core/issue.ts in its order, and nothing computed. A unit test
 * holds this list to the real story, call by call, for every way in which a try can go.
 */
export interface Deed {
  state: 'intent' | 'issued';
  attempt: number;
  leaseUntil: number;
}

/** As CertificateLedger and Signer, without the contents. */
export interface DeedPorts {
  open(leaseUntil: number): Promise<Deed | undefined>;
  takeOver(attempt: number, leaseUntil: number): Promise<Deed | undefined>;
  release(attempt: number): Promise<void>;
  complete(): Promise<Deed | undefined>;
  sign(): Promise<void>;
  now(): number;
}

export const leaseMilliseconds = 30_000;

/** Throws as issue() throws. */
export async function signDeed(ports: DeedPorts): Promise<'issued' | 'inProgress'> {
  const begunAt = ports.now();
  const leaseUntil = begunAt + leaseMilliseconds;
  const found = await ports.open(leaseUntil);
  let attempt = 1;
  if (found !== undefined) {
    if (found.state === 'issued') return 'issued';
    if (found.leaseUntil > begunAt) return 'inProgress';
    const other = await ports.takeOver(found.attempt, leaseUntil);
    if (other !== undefined) return other.state === 'issued' ? 'issued' : 'inProgress';
    attempt = found.attempt + 1;
  }
  try {
    await ports.sign();
    const other = await ports.complete();
    return other === undefined || other.state === 'issued' ? 'issued' : 'inProgress';
  } catch (error) {
    await ports.release(attempt).catch(() => {});
    throw error;
  }
}
