/**
 * Decides what one look at a recorded machine means for its record. A machine is retired after two looks, minutes apart, at which
 * its platform reported it as terminated. docs/attestation.md, Machines that end.
 */
import type { IdentityRecord } from '../../ports/attestation-store.ts';
import type { Instant } from '../../ports/instant.ts';
import type { MachineState } from '../evidence/provider.ts';
import { firstLookCounts, nextRevision, secondLookAfter } from '../second-look.ts';

export type Look =
  /** The record stays as it is. */
  | { readonly kind: 'keep' }
  /** `record`: to be written with AttestationStore.observe. */
  | { readonly kind: 'observe'; readonly record: IdentityRecord }
  /** `record`: as it was read, for AttestationStore.retire. */
  | { readonly kind: 'retire'; readonly record: IdentityRecord };

export function lookAt(record: IdentityRecord, state: MachineState['kind'], now: Instant): Look {
  if (record.state === 'retired') return keep;
  const { unknownSince, ...unmarked } = record;
  switch (state) {
    case 'gone':
      if (!firstLookCounts(unknownSince, now))
        return { kind: 'observe', record: nextRevision({ ...record, unknownSince: now }) };
      return now - unknownSince < secondLookAfter ? keep : { kind: 'retire', record };
    case 'running':
    case 'stopped':
      return unknownSince === undefined ? keep : { kind: 'observe', record: nextRevision(unmarked) };
    // A platform forgets terminated machines, but also reports `unknown` if the wrong account is asked. An operator decides about
    // such a machine (`countersign machines prune`), or another machine that has its node name.
    case 'unknown':
      return keep;
  }
}

const keep = { kind: 'keep' } as const;
