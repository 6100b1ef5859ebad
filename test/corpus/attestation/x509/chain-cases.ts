/** From the certificate of the machine to a root of the configuration, and nowhere else. */
import * as der from '../../../harness/x509/der-writer.ts';
import { basicConstraints, keyIdentifiers, keyOf, keyUsage, name } from '../../../harness/x509/certificate-writer.ts';
import * as world from './machine.ts';
import type { Change } from './machine.ts';
import type { Case } from './judge.ts';

const invalid = (check: string) => ['AttestationInvalid', check] as const;
const noRoot = invalid('does not lead to a root of the configuration');
const cannot = invalid('the chain of certificates cannot be verified');
const { leaf, intermediate, root } = world.certificates;

/** A CA that signs the next lower one, `CA 1` under the root. */
function ca(number: number, change: Change = {}): Buffer {
  const signer = number === 1 ? keyOf('root') : keyOf(`ca ${number - 1}`);
  const issuer = number === 1 ? name('Root') : name(`CA ${number - 1}`);
  const extensions = [basicConstraints(true), keyUsage(5)];
  return world.intermediate({
    subject: name(`CA ${number}`),
    issuer,
    key: keyOf(`ca ${number}`),
    signer,
    extensions,
    ...change,
  });
}
const below = (number: number): Buffer => world.leaf({ issuer: name(`CA ${number}`), signer: keyOf(`ca ${number}`) });
const extensions = [basicConstraints(true), keyUsage(5)];

export const chainCases: readonly Case[] = [
  { name: 'with the root at its end', expect: 'accepted', chain: [leaf, intermediate, root] },
  {
    name: 'signed by the root itself',
    expect: 'accepted',
    chain: [world.leaf({ issuer: name('Root'), signer: keyOf('root') })],
  },
  {
    name: 'the intermediate of the configuration',
    expect: 'accepted',
    chain: [leaf],
    policy: { intermediates: [world.pem(intermediate)] },
  },
  { name: 'without the intermediate', expect: noRoot, chain: [leaf] },
  { name: 'intermediates in another order', expect: 'accepted', chain: [below(2), ca(1), ca(2)] },
  { name: 'a certificate that is not needed', expect: 'accepted', chain: [leaf, ca(1), intermediate] },

  // Another PKI.
  {
    name: 'a root in the evidence',
    expect: noRoot,
    chain: [leaf, intermediate, world.otherRoot],
    policy: { roots: [{ name: 'prod', certificates: [world.pem(world.otherRoot)] }] },
  },
  {
    name: 'another root of the same name',
    expect: noRoot,
    chain: [
      world.leaf({ signer: keyOf('other ca') }),
      world.intermediate({ key: keyOf('other ca'), signer: keyOf('other root') }),
      world.otherRoot,
    ],
  },
  {
    name: 'an intermediate of another key',
    expect: noRoot,
    chain: [leaf, world.intermediate({ key: keyOf('other ca') })],
  },
  {
    name: 'an intermediate that another root signed',
    expect: noRoot,
    chain: [leaf, world.intermediate({ signer: keyOf('other root') })],
  },
  {
    name: 'self-signed',
    expect: noRoot,
    chain: [world.leaf({ issuer: name([['2.5.4.10', 'Example']]), signer: keyOf('machine') })],
  },
  {
    name: 'signed by its own key in the name of the root',
    expect: noRoot,
    chain: [world.leaf({ issuer: name('Root'), signer: keyOf('machine') })],
  },
  {
    name: 'an intermediate of the configuration is no root',
    expect: noRoot,
    chain: [leaf],
    policy: {
      roots: [{ name: 'prod', certificates: [world.pem(world.otherRoot)] }],
      intermediates: [world.pem(intermediate)],
    },
  },
  {
    name: 'an intermediate as root',
    expect: 'accepted',
    chain: [leaf],
    policy: { roots: [{ name: 'prod', certificates: [world.pem(intermediate)] }] },
  },
  {
    name: 'an intermediate as root, whose own root is in the evidence',
    expect: 'accepted',
    chain: [leaf, intermediate, root],
    policy: { roots: [{ name: 'prod', certificates: [world.pem(intermediate)] }] },
  },
  {
    name: 'the root as machine',
    expect: invalid('the chain of certificates does not lead'),
    chain: [root],
    key: keyOf('root'),
  },

  // Names that only look alike.
  {
    name: 'an issuer whose name differs only in its encoding',
    expect: invalid('names another issuer than the CA that signed it'),
    chain: [world.leaf({ issuer: printableName('Intermediate') }), intermediate],
  },

  // Rotation.
  {
    name: 'a new root beside the old one, under one name',
    expect: 'accepted',
    policy: { roots: [{ name: 'prod', certificates: [world.pem(world.otherRoot), world.pem(root)] }] },
  },
  {
    name: 'an expired root beside a new one of the same key',
    expect: 'accepted',
    policy: {
      roots: [
        { name: 'prod', certificates: [world.pem(world.root({ notAfter: world.now - 1_000 })), world.pem(root)] },
      ],
    },
  },
  {
    name: 'a root that is not valid yet beside one of the same key',
    expect: 'accepted',
    policy: {
      roots: [
        { name: 'prod', certificates: [world.pem(world.root({ notBefore: world.now + 1_000 })), world.pem(root)] },
      ],
    },
  },
  {
    name: 'an expired intermediate beside a new one of the same key',
    expect: 'accepted',
    chain: [leaf, world.intermediate({ notAfter: world.now - 1_000 }), intermediate],
  },
  {
    name: 'key identifiers that tell two CAs of one name apart',
    expect: 'accepted',
    chain: [
      world.leaf({
        extensions: [...Object.values(world.leafExtensions), ...keyIdentifiers(Buffer.from('m'), Buffer.from('b'))],
      }),
      world.intermediate({ key: keyOf('other ca'), extensions: [...extensions, ...keyIdentifiers(Buffer.from('a'))] }),
      world.intermediate({ extensions: [basicConstraints(true, 0), keyUsage(5), ...keyIdentifiers(Buffer.from('b'))] }),
    ],
  },

  // Long and round.
  { name: 'four intermediates', expect: 'accepted', chain: [below(4), ca(4), ca(3), ca(2), ca(1)] },
  {
    name: 'five intermediates',
    expect: invalid('the chain of certificates is longer than 6'),
    chain: [below(5), ca(5), ca(4), ca(3), ca(2), ca(1)],
  },
  {
    name: 'an intermediate that permits no further CA',
    expect: invalid('certificate "CN=CA 1" does not permit so many CAs below it'),
    chain: [below(2), ca(2), ca(1, { extensions: [basicConstraints(true, 0), keyUsage(5)] })],
  },
  {
    name: 'an intermediate that permits one further CA',
    expect: 'accepted',
    chain: [below(2), ca(2), ca(1, { extensions: [basicConstraints(true, 1), keyUsage(5)] })],
  },
  {
    name: 'two CAs that sign each other',
    expect: cannot,
    chain: [below(2), ca(2), ca(1, { issuer: name('CA 2'), signer: keyOf('ca 2') })],
  },
];

function printableName(text: string): Buffer {
  return der.sequence(der.set(der.sequence(der.oid('2.5.4.3'), der.printable(text))));
}
