import type { AttestContext } from '../../core/attestation/attest-question.ts';

export type DecodedContext =
  { readonly ok: true; readonly context: AttestContext } | { readonly ok: false; readonly message: string };

/** A Machine has a handful of addresses; a caller who sends more wants something else. */
const maxAddresses = 100;
const maxLength = 512;

/** Closed: a key we do not know could mean to narrow further than we would obey. */
export function decodeContext(json: unknown): DecodedContext {
  if (json === undefined) return { ok: true, context: {} };
  const context = asRecord(json, ['machine']);
  if (context === undefined) return wrong('context is not an object of machine');
  if (context['machine'] === undefined) return { ok: true, context: {} };
  const machine = asRecord(context['machine'], ['nodeName', 'providerId', 'addresses']);
  if (machine === undefined) return wrong('context.machine is not an object of nodeName, providerId, addresses');
  const { nodeName, providerId, addresses } = machine;
  if (!isOptionalText(nodeName)) return wrong('context.machine.nodeName is not a text');
  if (!isOptionalText(providerId)) return wrong('context.machine.providerId is not a text');
  if (addresses !== undefined && !isTexts(addresses)) return wrong('context.machine.addresses is not a list of texts');
  return {
    ok: true,
    context: {
      machine: {
        ...(nodeName === undefined ? {} : { nodeName }),
        ...(providerId === undefined ? {} : { providerId }),
        ...(addresses === undefined ? {} : { addresses }),
      },
    },
  };
}

function wrong(message: string): DecodedContext {
  return { ok: false, message };
}

function asRecord(value: unknown, keys: readonly string[]): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.keys(value).every((key) => keys.includes(key)) ? (value as Record<string, unknown>) : undefined;
}

function isOptionalText(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === 'string' && value.length <= maxLength);
}

function isTexts(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) &&
    value.length <= maxAddresses &&
    value.every((item) => typeof item === 'string' && item.length <= maxLength)
  );
}
