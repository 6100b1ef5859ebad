/**
 * The attest function by the calls it makes about an EC2 instance that joins: the ports of core/attest.ts in its order,
 * and nothing computed. A unit test holds this list to the real story, call by call, for every way in which a try can go.
 */
export type Concluded = 'approve' | 'deny';

/** As AttestationStore and AwsPorts, without the contents. */
export interface ProofPorts {
  recall(): Promise<Concluded | undefined>;
  findLock(): Promise<void>;
  /** Not a call: what is too old is refused before any call except of the store. */
  fresh(): boolean;
  lookup(): Promise<void>;
  callerIdentity(): Promise<void>;
  describeInstance(): Promise<void>;
  /** The verdict that stands, or that something it depends on has changed since the look; nothing where it was written. */
  claim(verdict: Concluded): Promise<Concluded | 'changed' | undefined>;
}

/** A stock kubelet's serving request: `lookup` finds the machine by its node name. */
export interface ServingPorts extends Pick<
  ProofPorts,
  'recall' | 'findLock' | 'lookup' | 'describeInstance' | 'claim'
> {
  /** Not a call: whether EC2 described the machine lately, by its record. */
  seen(): boolean;
}

const mostTries = 4;

/** Throws as attest() throws. */
export async function attestProof(ports: ProofPorts): Promise<Concluded> {
  const [, , before] = await Promise.all([
    // Of the key and of the node.
    ports.findLock(),
    ports.findLock(),
    ports.recall(),
  ]);
  if (before !== undefined) return before;
  const verdict = ports.fresh() ? 'approve' : 'deny';
  for (let tries = 0; tries < mostTries; tries += 1) {
    if (verdict === 'approve') {
      await ports.lookup();
      if (tries === 0) {
        await ports.callerIdentity();
        await ports.describeInstance();
      }
    }
    const other = await ports.claim(verdict);
    if (other === undefined) return verdict;
    if (other !== 'changed') return other;
  }
  throw new Error('others claim the same machine, name or address at once');
}

/** Throws as attest() throws. */
export async function attestServing(ports: ServingPorts): Promise<Concluded> {
  const [, , before] = await Promise.all([ports.findLock(), ports.findLock(), ports.recall()]);
  if (before !== undefined) return before;
  for (let tries = 0; tries < mostTries; tries += 1) {
    await ports.lookup();
    if (!ports.seen()) await ports.describeInstance();
    const other = await ports.claim('approve');
    if (other === undefined) return 'approve';
    if (other !== 'changed') return other;
  }
  throw new Error('others claim the same machine, name or address at once');
}
