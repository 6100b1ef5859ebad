/**
 * Mistakes that the simulator must find: each is one change of text in one file, planted when the module is loaded. Of the
 * ledger and its discipline, of first use and verdicts, and of the relay. All but those of the stores are in the code
 * that is shipped.
 */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export interface Mutant {
  readonly name: string;
  readonly of: 'ledger' | 'first use' | 'relay';
  readonly file: string;
  /** Stands in the file exactly once. */
  readonly text: string;
  readonly instead: string;
}

export const mutants: readonly Mutant[] = [
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
    file: 'core/tofu.ts',
    text: "    case 'running':\n    case 'stopped':\n      return taken(holder.nodeName, holder);",
    instead: "    case 'running':\n    case 'stopped':\n      return undefined;",
  },
  {
    name: 'any key renews a machine',
    of: 'first use',
    file: 'core/tofu.ts',
    text: "if (byNodeItself) return { kind: 'renewal', record };",
    instead: "return { kind: 'renewal', record };",
  },
  {
    name: 'a verdict counts for other bytes',
    of: 'first use',
    file: 'core/verdict-check.ts',
    text: 'if (verdict.requestDigest !== digest) return refused(uidReused);',
    instead: '',
  },
  {
    name: 'a machine that was revoked is signed for',
    of: 'first use',
    file: 'core/verdict-check.ts',
    text: 'if (revoked !== undefined) return refused(revoked);',
    instead: '',
  },
  {
    name: 'a certificate goes to whoever has the name now',
    of: 'relay',
    file: 'lambdas/watch-relay/work.ts',
    text: "uidOf(answer.value) === key.uid ? { kind: 'object', object: answer.value } : done('gone')",
    instead: "{ kind: 'object', object: answer.value }",
  },
  {
    name: 'what is seen while a worker has it is forgotten',
    of: 'relay',
    file: 'lambdas/watch-relay/queue.ts',
    text: "const again = entry.meanwhile === 'seen' || entry.meanwhile === 'moved on';",
    instead: 'const again = false;',
  },
  {
    name: 'the watch goes on where its past is gone',
    of: 'relay',
    file: 'lambdas/watch-relay/reflector.ts',
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
