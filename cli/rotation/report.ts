/** The state of a rotation for people and for programs. */

import type { Finding, Phase, Rotation } from '../../core/rotation/phase.ts';
import type { JudgedConsumer } from '../../core/rotation/consumers.ts';
import type { RotatingCa } from '../../core/rotation/deployment.ts';
import { certificateFacts } from '../../core/x509/read-certificate.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { instantText } from '../output/tofu-text.ts';
import { table } from '../output/output.ts';
import { nextSteps } from './next-steps.ts';
import type { ReportContext } from './next-steps.ts';

export interface ShownRotation {
  readonly cluster: string;
  readonly phase: Phase;
  readonly old: ShownCa;
  readonly new?: ShownCa;
  readonly profiles: readonly { readonly signerName: string; readonly ca: string }[];
  readonly issuedCas: readonly string[];
  readonly consumers: readonly ShownConsumer[];
  readonly certificates: {
    readonly count: number;
    readonly last?: string;
    readonly revoked: number;
    readonly until: string;
    readonly signers: readonly { readonly signerName: string; readonly count: number; readonly last: string }[];
    readonly holders: readonly {
      readonly signerName: string;
      readonly holder: string;
      readonly node: boolean;
      readonly count: number;
      readonly serial: string;
      readonly notAfter: string;
      readonly renewed: boolean;
    }[];
    readonly more: boolean;
  };
  readonly findings: readonly Finding[];
  readonly next: readonly string[];
}

interface ShownCa {
  readonly name: string;
  readonly configured: boolean;
  readonly inForce: boolean;
  readonly fault?: string;
  readonly keyId?: string;
  readonly subject?: string;
  readonly notAfter?: string;
  readonly fingerprintSha256?: string;
}

interface ShownConsumer {
  readonly name: string;
  readonly place: string;
  /** `notOld`: it does not trust the old CA, and no new one is known. `hidden`: no object of the cluster tells. `unread`: this login may not read it. */
  readonly state: 'both' | 'oldOnly' | 'newOnly' | 'neither' | 'notOld' | 'hidden' | 'unread';
  readonly keepsOld: boolean;
  readonly change: string;
}

export function shownRotation(rotation: Rotation, context: ReportContext): ShownRotation {
  const { phase, old, next, profiles, issued, consumers, leaves, findings } = rotation;
  const { cluster, until } = context;
  return {
    cluster,
    phase,
    old: shownCa(old),
    ...(next === undefined ? {} : { new: shownCa(next) }),
    profiles: profiles.map(({ signerName, ca }) => ({ signerName, ca })),
    issuedCas: issued,
    consumers: consumers.map((consumer) => shownConsumer(consumer, next !== undefined)),
    certificates: {
      count: leaves.certificates,
      ...(leaves.last === undefined ? {} : { last: instantText(leaves.last) }),
      revoked: leaves.revoked,
      until: instantText(until),
      signers: leaves.signers.map(({ signerName, certificates, last }) => ({
        signerName,
        count: certificates,
        last: instantText(last),
      })),
      holders: leaves.holders.map(({ certificates, notAfter, ...holder }) => ({
        ...holder,
        count: certificates,
        notAfter: instantText(notAfter),
      })),
      more: leaves.more,
    },
    findings,
    next: nextSteps(rotation, context),
  };
}

function shownCa({ name, configuration, record, fault }: RotatingCa): ShownCa {
  const known = { name, configured: configuration !== undefined, inForce: record !== undefined };
  if (record === undefined) return fault === undefined ? known : { ...known, fault };
  const { subject, notAfter, fingerprintSha256 } = certificateFacts(record.certificate);
  return { ...known, keyId: record.keyId, subject, notAfter: instantText(notAfter), fingerprintSha256 };
}

function shownConsumer(consumer: JudgedConsumer, replaced: boolean): ShownConsumer {
  const { name, place, change, trusts } = consumer;
  return { name, place, state: stateOf(consumer, replaced), keepsOld: trusts?.keepsOld === true, change };
}

function stateOf({ trusts, unread }: JudgedConsumer, replaced: boolean): ShownConsumer['state'] {
  if (trusts === undefined) return unread === undefined ? 'hidden' : 'unread';
  if (trusts.old) return trusts.new ? 'both' : 'oldOnly';
  if (!replaced) return 'notOld';
  return trusts.new ? 'newOnly' : 'neither';
}

const phaseTexts: Readonly<Record<Phase, string>> = {
  noSuccessor: '0 of 5: no CA replaces it',
  notInForce: '1 of 5: the new CA is configured, and not in force',
  trust: '1 of 5: the new CA is in force, and not trusted everywhere',
  switch: '2 of 5: the new CA is trusted, and the old one still signs',
  drain: '3 of 5: the new CA signs, and certificates of the old one are in use',
  retire: '4 of 5: nothing needs the old CA any more',
  done: '5 of 5: the old CA is configured nowhere, and nothing that can be seen trusts it',
};

const stateTexts: Readonly<Record<ShownConsumer['state'], string>> = {
  both: 'trusts both',
  oldOnly: 'trusts the old CA only',
  newOnly: 'trusts the new CA only',
  neither: 'trusts neither',
  notOld: 'does not trust the old CA',
  hidden: 'not shown by the API',
  unread: 'NOT READ',
};

export function rotationText(shown: ShownRotation): string {
  const { cluster, phase, profiles, consumers, certificates, findings, next } = shown;
  const lines = [
    table([
      ['cluster', cluster],
      ['old CA', caText(shown.old)],
      ['new CA', shown.new === undefined ? '-' : caText(shown.new)],
      ['phase', phaseTexts[phase]],
      ...profiles.map(({ signerName, ca }, index) => [index === 0 ? 'profiles' : '', `${signerName}: ca: ${ca}`]),
    ]),
  ];
  if (consumers.length > 0)
    lines.push(
      table([
        ['TRUST', 'WHERE', 'STATE'],
        ...consumers.map(({ name, place, state }) => [printable(name), printable(place), stateTexts[state]]),
      ]),
    );
  if (certificates.count > 0) {
    const { count, last, revoked, signers, holders, more } = certificates;
    const withdrawn = revoked === 0 ? '' : `; ${revoked} revoked`;
    lines.push(
      `${count} certificates of the old CA are in use${withdrawn}; the last ends at ${last}\n`,
      table([
        ['SIGNER', 'CERTIFICATES', 'LAST ENDS'],
        ...signers.map((signer) => [printable(signer.signerName), String(signer.count), signer.last]),
      ]),
      table([
        ['HOLDER', 'SIGNER', 'ENDS', 'RENEWED', 'SERIAL'],
        ...holders.map(({ holder, signerName, notAfter, renewed, serial }) => [
          printable(holder),
          printable(signerName),
          notAfter,
          renewed ? 'yes' : 'NO',
          serial,
        ]),
      ]),
      ...(more ? ['There are more holders: --limit shows more, countersign cert find searches.\n'] : []),
    );
  }
  for (const { code, message } of findings) lines.push(`WRONG: ${code}: ${printable(message)}\n`);
  lines.push(`Next:\n${next.map((line) => `  ${line.replaceAll('\n', '\n  ')}\n`).join('')}`);
  return lines.join('\n');
}

function caText({ name, subject, notAfter, configured, fault }: ShownCa): string {
  const words = [
    name,
    subject === undefined ? printable(fault ?? 'not in force') : printable(subject),
    ...(notAfter === undefined ? [] : [`ends ${notAfter}`]),
    ...(configured ? [] : ['not in countersign.yaml any more']),
  ];
  return words.join(', ');
}
