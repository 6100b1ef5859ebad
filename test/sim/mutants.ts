/**
 * Mistakes that the simulator must find. All but those of the stores (test/sim) are in the code that is shipped.
 */
import { changesOf } from '../harness/mutants/mutant.ts';
import type { Change } from '../harness/mutants/mutant.ts';

/** By subject; `breaks` names one on the command line (`--mutant`). */
export const mutants: Readonly<
  Record<'profile' | 'ledger' | 'first use' | 'retirement' | 'machine objects' | 'audit' | 'relay', readonly Change[]>
> = {
  profile: [
    ...changesOf(
      'core/policy/custom-rules.ts',
      ['any DNS name fits any pattern', 'dnsMatchesAny(dns, value)', '(dns.length > 0 || value !== undefined)'],
      [
        'a required name is refused even where there is one',
        'hasNames(question.request.sans) || !rulesOf(question).sans.required,',
        '!rulesOf(question).sans.required,',
      ],
    ),
  ],
  ledger: [
    ...changesOf('core/issue.ts', [
      'the first CA of a cluster signs for all its profiles',
      'ports.authority(profile.ca),',
      "ports.authority([...cluster.cas.keys()][0] ?? ''),",
    ]),
    ...changesOf(
      'test/sim/ports/ledger.ts',
      [
        'open writes over what is there',
        "if (record !== undefined) return { kind: 'found', found: copy(record) };",
        "if (record !== undefined && record.state !== 'intent') return { kind: 'found', found: copy(record) };",
      ],
      [
        'complete lets the last one win',
        "if (record.state !== 'intent' || !holds(record))",
        "if (record.state === 'expired' || !holds(record))",
      ],
    ),
    ...changesOf(
      'core/sign-once.ts',
      [
        'a later attempt signs other bytes',
        'record: { ...found, attempt: found.attempt + 1, leaseUntil: plan.leaseUntil } }',
        "record: { ...plan, state: 'intent', attempt: found.attempt + 1 } }",
      ],
      [
        'a certificate is given out before it is recorded',
        'const completed = await ledger.complete(record.uid, certificate, signature.requestId);',
        "const completed = await ledger.complete(record.uid, certificate, signature.requestId).catch(() => ({ kind: 'written' }) as const);",
      ],
      ['what a CA began is signed by the one after it', 'found.caKeyId !== plan.caKeyId ||', ''],
      [
        'an intent is given up that could be finished',
        'if (isStale(found, plan)) {',
        'if (found.attempt > 2 || isStale(found, plan)) {',
      ],
    ),
  ],
  'first use': [
    ...changesOf(
      'test/sim/ports/attestations.ts',
      [
        'two first uses of a name both hold',
        "if (holder !== (write.kind === 'create' ? retired?.identity : identity)) return false;",
        "if (write.kind !== 'create' && holder !== identity) return false;",
      ],
      [
        'two machines claim one address at once',
        'newAddresses.every((address) => free.has(addresses.get(address)))',
        'newAddresses.length >= 0',
      ],
    ),
    ...changesOf(
      'core/attestation/second-look.ts',
      [
        'a name is taken from a machine that runs',
        "    case 'gone':\n      return undefined;\n    case 'running':\n",
        "    case 'gone':\n    case 'running':\n      return undefined;\n",
      ],
      [
        'a machine that was not started anew comes with another key',
        'if (startedAt === undefined || record.startedAt === undefined || !(startedAt > record.startedAt))',
        'if (startedAt === undefined)',
      ],
      [
        'one answer of the platform hands over a name',
        'if (now - holder.lastSeen <= unknownForMilliseconds)',
        'if (now - holder.lastSeen > unknownForMilliseconds) return undefined;\n      if (now - holder.lastSeen <= unknownForMilliseconds)',
      ],
    ),
    ...changesOf(
      'core/attestation/first-use.ts',
      [
        'any key renews a machine',
        "if (byNodeItself || provesHardware === true) return { kind: 'renewal', record };",
        "return { kind: 'renewal', record };",
      ],
      [
        'a machine without proof comes with another key',
        "  if (!secure)\n    return refuse(\n      violation('TofuReuse', 'this node is registered with another key, and its provider cannot prove a renewal'),\n    );",
        "  if (!secure) return { kind: 'repeat', record };",
      ],
    ),
    ...changesOf(
      'core/attestation/check-verdict.ts',
      ['a verdict counts for other bytes', 'if (verdict.requestDigest !== digest) return refuse(uidReused);', ''],
      ['a machine that was reset is signed for', 'if (ended !== undefined) return refuse(ended);', ''],
      ['a locked machine is signed for', 'if (lock !== undefined) return refuse(machineLocked);', ''],
    ),
    ...changesOf('core/issue.ts', [
      'a locked node is signed for',
      'if (locked !== undefined) return refused(locked);',
      '',
    ]),
    ...changesOf('core/attest.ts', [
      'a locked node is approved',
      'if (locked !== undefined) return deny([locked]);',
      '',
    ]),
    ...changesOf(
      'core/attestation/device.ts',
      [
        'an attestation key is taken that nothing activated',
        'if (activated || recorded?.akName === state.akName) return undefined;',
        'if (activated || recorded === undefined || recorded.akName === state.akName) return undefined;',
      ],
      [
        'another attestation key is taken that nothing activated',
        'if (activated || recorded?.akName === state.akName) return undefined;',
        'if (activated || recorded !== undefined) return undefined;',
      ],
      ['the clock of a TPM goes back', 'clock < recorded.clock', 'false'],
    ),
    ...changesOf(
      'core/attestation/admission.ts',
      ['the list of machines is not asked', 'if (examined.machines.length > 0 && !records.listed)', 'if (false)'],
      ['an entry may be removed before the claim', 'records.entry ?? machine.entry', 'machine.entry'],
      [
        'an address is not claimed',
        'const newAddresses = ranged.filter((address) => !holders.has(address) && !machine.addresses.includes(address));',
        'const newAddresses: string[] = [];',
      ],
    ),
    ...changesOf('core/attestation/serving-names.ts', [
      'an address of another machine is served',
      'isInRanges(addressRanges, address) && (holders.get(address) ?? machine.identity) === machine.identity;',
      'isInRanges(addressRanges, address);',
    ]),
  ],
  retirement: [
    ...changesOf(
      'core/attestation/retirement/look-at.ts',
      [
        'one look retires a machine',
        "return { kind: 'observe', record: nextRevision({ ...record, unknownSince: now }) };",
        "return { kind: 'retire', record };",
      ],
      [
        'a machine that its platform does not know is retired',
        "    case 'unknown':\n      return keep;",
        "    case 'unknown':\n      return lookAt(record, 'gone', now);",
      ],
    ),
    ...changesOf(
      'core/attestation/retirement/retire-gone.ts',
      [
        'a hint is believed',
        'await run.decide(record, async () => (await provider.describe(record.identity, ports.now())).kind);',
        "await run.decide(record, async () => 'gone');",
      ],
      ['the name of a retired machine is free at once', 'at + nameGrace;', 'at;'],
      ['the name of a retired machine is never free', 'at + nameGrace;', 'at + 1_000 * nameGrace;'],
    ),
    ...changesOf('core/attestation/check-verdict.ts', [
      'a retired machine is signed for',
      "if (record.state !== 'active')\n    return violation(",
      "if (record.state === 'active' && record.rev < 1)\n    return violation(",
    ]),
    ...changesOf('test/sim/ports/attestations.ts', [
      'a machine whose name is free again still holds it',
      'const holder = nameHolder(nodeName, retire === undefined ? now : undefined);',
      'const holder = nameHolder(nodeName);',
    ]),
  ],
  'machine objects': [
    ...changesOf(
      'core/attestation/cluster-api/check-objects.ts',
      [
        'the name of the Cluster is not compared',
        'if (namespace !== wanted.namespace || clusterName !== wanted.cluster)\n',
        'if (namespace !== wanted.namespace)\n',
      ],
      [
        'the namespace of the Cluster is not compared',
        'if (namespace !== wanted.namespace || clusterName !== wanted.cluster)\n',
        'if (clusterName !== wanted.cluster)\n',
      ],
      [
        'a machine whose object is being deleted is let in',
        "if (deleting) return refuse('MachineDeleting', `${object} is being deleted: its machine gets",
        "if (deleting && !bootstrapReady) return refuse('MachineDeleting', `${object} is being deleted: its machine gets",
      ],
      ['a machine without bootstrap data is let in', 'if (!bootstrapReady)', 'if (!bootstrapReady && deleting)'],
      ['one of two objects is taken', 'if (others.length > 0) {', 'if (others.length > 8) {'],
      [
        'a caller that did not look is believed',
        "if (context.clusterApi === undefined) return refuse('MachineNotFound', notLookedUp);",
        'if (context.clusterApi === undefined) return undefined;',
      ],
    ),
  ],
  audit: [
    ...changesOf('core/attestation/check-verdict.ts', [
      'what was only audited counts where proof is demanded',
      'return refuse(...(verdict.violations ?? [noIdentity]));',
      "return verdict.mode === 'audit' ? unattested : refuse(...(verdict.violations ?? [noIdentity]));",
    ]),
    ...changesOf(
      'core/attest.ts',
      [
        'what is demanded is only audited',
        "if (mode === 'audit') return { kind: 'approve'",
        "if (mode !== undefined) return { kind: 'approve'",
      ],
      [
        'auditing refuses',
        "if (mode === 'audit') return { kind: 'approve'",
        "if (mode === undefined) return { kind: 'approve'",
      ],
      [
        'auditing keeps no note of what it would refuse',
        "    const claim = admission.kind === 'admitted' ? admission.claim : nothingClaimed;",
        "    if (admission.kind === 'refused' && question.wanted.mode === 'audit') return unjudged;\n    const claim = admission.kind === 'admitted' ? admission.claim : nothingClaimed;",
      ],
    ),
  ],
  relay: [
    ...changesOf('lambdas/watch-relay/request/approval.ts', [
      'a no of the review is a yes',
      'if (answer.ok && answer.value) return',
      'if (answer.ok) return',
    ]),
    ...changesOf('lambdas/watch-relay/request/work.ts', [
      'a certificate goes to the request that has the name now',
      "    if (uidOf(answer.value) !== key.uid) return done('gone');\n",
      '',
    ]),
    ...changesOf('lambdas/watch-relay/objects/request-phase.ts', [
      'an object of any size is worked on',
      'bytes > maxRelayedBytes',
      'bytes > 2_000_000',
    ]),
    ...changesOf('lambdas/watch-relay/ending.ts', [
      'an answer that does not fit is tried as soon as any',
      "cause === 'ObjectTooLarge' ? tooLargeBackoff : requestBackoff",
      'requestBackoff',
    ]),
    ...changesOf('lambdas/watch-relay/schedule/queue.ts', [
      'what is seen while a worker has it is forgotten',
      "if (entry.update === 'seen' || entry.update === 'moved') requeue(entry);",
      'if (false as boolean) requeue(entry);',
    ]),
    ...changesOf('lambdas/watch-relay/cluster/reflector.ts', [
      'the watch goes on where its past is gone',
      "return ended(why === 'Expired' || why === 'Invalid' || why === 'NotFound' ? 'expired' : 'refused');",
      "return ended('refused');",
    ]),
  ],
};

export const allMutants: readonly Change[] = Object.values(mutants).flat();
