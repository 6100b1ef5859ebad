/**
 * Mistakes that the simulator must find: each is one change of text in one file, planted when the module is loaded. Of the
 * ledger and its discipline, of first use and verdicts, of audit mode, and of the relay. All but those of the stores are in
 * the code that is shipped.
 */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export interface Mutant {
  readonly name: string;
  readonly of: 'ledger' | 'first use' | 'audit' | 'relay' | 'profile';
  readonly file: string;
  /** Stands in the file exactly once. */
  readonly text: string;
  readonly instead: string;
}

export const mutants: readonly Mutant[] = [
  {
    name: 'any DNS name fits any pattern',
    of: 'profile',
    file: 'core/policy/custom-rules.ts',
    text: 'dnsMatchesAny(dns, value)',
    instead: '(dns.length > 0 || value !== undefined)',
  },
  {
    name: 'a required name is refused even where there is one',
    of: 'profile',
    file: 'core/policy/custom-rules.ts',
    text: 'violationUnless(present || !rulesOf(question).sans.required,',
    instead: 'violationUnless(!rulesOf(question).sans.required,',
  },
  {
    name: 'open writes over what is there',
    of: 'ledger',
    file: 'test/sim/ledger.ts',
    text: 'if (record !== undefined) return { written: false, found: copy(record) };',
    instead: "if (record !== undefined && record.state !== 'intent') return { written: false, found: copy(record) };",
  },
  {
    name: 'complete lets the last one win',
    of: 'ledger',
    file: 'test/sim/ledger.ts',
    text: "if (record.state !== 'intent' || !holds(record))",
    instead: "if (record.state === 'expired' || !holds(record))",
  },
  {
    name: 'whoever takes over signs bytes of his own',
    of: 'ledger',
    file: 'core/issue.ts',
    text: 'record: { ...found, attempt: found.attempt + 1, leaseUntil } }',
    instead: "record: { ...plan, state: 'intent', attempt: found.attempt + 1, leaseUntil } }",
  },
  {
    name: 'a certificate is given out before it is recorded',
    of: 'ledger',
    file: 'core/issue.ts',
    text: 'const completed = await ports.ledger.complete(record.uid, certificate, signature.requestId);',
    instead:
      'const completed = await ports.ledger.complete(record.uid, certificate, signature.requestId).catch(() => ({ written: true }) as const);',
  },
  {
    name: 'two first uses of a name both hold',
    of: 'first use',
    file: 'test/sim/attestations.ts',
    text: "if (names.get(nodeName) !== (write.kind === 'create' ? retired?.identity : identity)) return false;",
    instead: "if (write.kind !== 'create' && names.get(nodeName) !== identity) return false;",
  },
  {
    name: 'a name is taken from a machine that runs',
    of: 'first use',
    file: 'core/attestation/second-look.ts',
    text: "      const refused = { kind: 'refused', violation: nameTaken(holder) } as const;",
    instead: "      const refused = { kind: 'allowed' } as const;",
  },
  {
    name: 'any key renews a machine',
    of: 'first use',
    file: 'core/attestation/first-use.ts',
    text: "if (byNodeItself) return { kind: 'renewal', record };",
    instead: "return { kind: 'renewal', record };",
  },
  {
    name: 'a verdict counts for other bytes',
    of: 'first use',
    file: 'core/attestation/check-verdict.ts',
    text: 'if (verdict.requestDigest !== digest) return refused(uidReused);',
    instead: '',
  },
  {
    name: 'a machine that was reset is signed for',
    of: 'first use',
    file: 'core/attestation/check-verdict.ts',
    text: 'if (ended !== undefined) return refused(ended);',
    instead: '',
  },
  {
    name: 'a locked node is signed for',
    of: 'first use',
    file: 'core/issue.ts',
    text: 'if (locked !== undefined) return refused(locked);',
    instead: '',
  },
  {
    name: 'a locked machine is signed for',
    of: 'first use',
    file: 'core/attestation/check-verdict.ts',
    text: 'if (lock !== undefined) return refused(machineLocked);',
    instead: '',
  },
  {
    name: 'a locked node is approved',
    of: 'first use',
    file: 'core/attest.ts',
    text: 'if (locked !== undefined) return deny([locked]);',
    instead: '',
  },
  {
    name: 'what a CA began is signed by the one after it',
    of: 'ledger',
    file: 'core/issue.ts',
    text: 'found.caKeyId !== authority.signer.keyId ||',
    instead: '',
  },
  {
    name: 'an intent is given up that could be finished',
    of: 'ledger',
    file: 'core/issue.ts',
    text: 'if (isStale(found, plan, authority)) {',
    instead: 'if (found.attempt > 2 || isStale(found, plan, authority)) {',
  },
  {
    name: 'the list of machines is not asked',
    of: 'first use',
    file: 'core/attestation/admission.ts',
    text: 'if (machines.length > 0 && !seen.listed)',
    instead: 'if (false)',
  },
  {
    name: 'an address is not claimed',
    of: 'first use',
    file: 'core/attestation/admission.ts',
    text: 'const newAddresses = ranged.filter((address) => !holders.has(address) && !machine.addresses.includes(address));',
    instead: 'const newAddresses: string[] = [];',
  },
  {
    name: 'two machines claim one address at once',
    of: 'first use',
    file: 'test/sim/attestations.ts',
    text: 'newAddresses.every((address) => free.has(addresses.get(address)))',
    instead: 'newAddresses.length >= 0',
  },
  {
    name: 'an address of another machine is served',
    of: 'first use',
    file: 'core/attestation/serving-names.ts',
    text: 'isInRanges(addressRanges, address) && (holders.get(address) ?? machine.identity) === machine.identity;',
    instead: 'isInRanges(addressRanges, address);',
  },
  {
    name: 'a machine that was not started anew comes with another key',
    of: 'first use',
    file: 'core/attestation/second-look.ts',
    text: 'if (startedAt === undefined || record.startedAt === undefined || !(startedAt > record.startedAt))',
    instead: 'if (startedAt === undefined)',
  },
  {
    name: 'one answer of the platform hands over a name',
    of: 'first use',
    file: 'core/attestation/second-look.ts',
    text: 'if (now - holder.lastSeen <= unknownForMilliseconds)',
    instead:
      'if (now - holder.lastSeen > unknownForMilliseconds) return allowed;\n      if (now - holder.lastSeen <= unknownForMilliseconds)',
  },
  {
    name: 'whoever proves nothing comes with another key',
    of: 'first use',
    file: 'core/attestation/first-use.ts',
    text: "  if (!secure)\n    return violation('TofuReuse', 'this node is registered with another key, and its provider cannot prove a renewal');",
    instead: "  if (!secure) return { kind: 'repeat', record };",
  },
  {
    name: 'what was only audited counts where proof is demanded',
    of: 'audit',
    file: 'core/attestation/check-verdict.ts',
    text: 'return { ok: false, violations: verdict.violations ?? [noIdentity] };',
    instead:
      "return verdict.mode === 'audit' ? unattested : { ok: false, violations: verdict.violations ?? [noIdentity] };",
  },
  {
    name: 'what is demanded is only audited',
    of: 'audit',
    file: 'core/attest.ts',
    text: "if (mode === 'audit') return { kind: 'approve'",
    instead: "if (mode !== undefined) return { kind: 'approve'",
  },
  {
    name: 'auditing refuses',
    of: 'audit',
    file: 'core/attest.ts',
    text: "if (mode === 'audit') return { kind: 'approve'",
    instead: "if (mode === undefined) return { kind: 'approve'",
  },
  {
    name: 'auditing keeps no note of what it would refuse',
    of: 'audit',
    file: 'core/attest.ts',
    text: '    const claim = admission.admitted ? admission.claim : nothingClaimed;',
    instead:
      "    if (!admission.admitted && question.wanted.mode === 'audit') return unjudged;\n    const claim = admission.admitted ? admission.claim : nothingClaimed;",
  },
  {
    name: 'a no of the review is a yes',
    of: 'relay',
    file: 'lambdas/watch-relay/request/approval.ts',
    text: 'if (answer.ok && answer.value) return',
    instead: 'if (answer.ok) return',
  },
  {
    name: 'a certificate goes to whoever has the name now',
    of: 'relay',
    file: 'lambdas/watch-relay/request/work.ts',
    text: "    if (answer.ok && uidOf(answer.value) !== key.uid) return done('gone');\n",
    instead: '',
  },
  {
    name: 'an object of any size is worked on',
    of: 'relay',
    file: 'lambdas/watch-relay/objects/request-phase.ts',
    text: 'bytes > maxRelayedBytes',
    instead: 'bytes > 2_000_000',
  },
  {
    name: 'an answer that does not fit is tried as soon as any',
    of: 'relay',
    file: 'lambdas/watch-relay/ending.ts',
    text: "cause === 'ObjectTooLarge' ? tooLargeBackoff : requestBackoff",
    instead: 'requestBackoff',
  },
  {
    name: 'what is seen while a worker has it is forgotten',
    of: 'relay',
    file: 'lambdas/watch-relay/schedule/queue.ts',
    text: "if (entry.update === 'seen' || entry.update === 'moved') requeue(entry);",
    instead: 'if (false as boolean) requeue(entry);',
  },
  {
    name: 'the watch goes on where its past is gone',
    of: 'relay',
    file: 'lambdas/watch-relay/cluster/reflector.ts',
    text: "return ended(why === 'Expired' || why === 'Invalid' ? 'expired' : 'refused');",
    instead: "return ended('refused');",
  },
];

const root = join(import.meta.dirname, '../..');

/** From now on that file is loaded with the mistake in it. */
export function plant({ file, text, instead }: Mutant): void {
  const parts = readFileSync(join(root, file), 'utf8').split(text);
  if (parts.length !== 2) throw new Error(`${file} has the text of its mutant ${parts.length - 1} times`);
  const url = pathToFileURL(join(root, file)).href;
  registerHooks({
    load(asked, context, next) {
      const loaded = next(asked, context);
      return asked === url ? { ...loaded, source: parts.join(instead) } : loaded;
    },
  });
}
