/**
 * The provider for machines that have a certificate of a PKI of the operator (docs/attestation/x509.md): a SPIFFE SVID, or a
 * certificate of a factory, of Puppet or of a Windows CA. The key of that certificate signs the binding digest. The chain leads to a
 * root of the configuration, and a rule says which machine the certificate names.
 */
import type { X509Attestation } from '../../configuration/providers/x509.ts';
import { violated } from '../../outcome/outcome.ts';
import type { Violations } from '../../outcome/outcome.ts';
import { success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { AttestationProvider, Evidence, Examined } from '../evidence/provider.ts';
import {
  checkIssuerPurposes,
  checkSigner,
  limitsNames,
  readAnchors,
  verifyChain,
} from '../../x509/chain/verify-chain.ts';
import type { Anchors } from '../../x509/chain/verify-chain.ts';
import { readX509Evidence, signatureLife, x509Facts } from './evidence.ts';
import { describeIdentity, matchRules } from './rules.ts';
import { algorithmsByKey, isSigned, proofId, signedContent } from './signature.ts';

/** Throws if a certificate of the configuration cannot be read. */
export function x509Provider(policy: X509Attestation): AttestationProvider {
  const anchors = readAnchors('attestation.x509', policy);
  return {
    ...x509Facts,
    examine: (evidence) => examine(policy, anchors, evidence),
    describe(identity) {
      // No platform can say whether such a machine still exists, so its name stays taken until an operator resets it.
      const machine = describeIdentity(policy.rules, identity);
      return Promise.resolve(
        machine === undefined ? { kind: 'stopped' } : { kind: 'running', machine, violations: [] },
      );
    },
  };
}

async function examine(
  { rules }: X509Attestation,
  anchors: Anchors,
  { data, binding, now }: Evidence,
): Promise<Result<Examined, Violations>> {
  const sent = readX509Evidence(data, now);
  if (!sent.ok) return invalid(sent.problem);
  const { leaf, intermediates, signature, algorithm, nonce, signedAt } = sent.value;
  if (algorithm !== algorithmsByKey[leaf.key.kind])
    return invalid('the attestation data has another algorithm than that of the key');
  // The nonce holds the time and is part of what is signed.
  const content = signedContent(binding(nonce));
  if (!isSigned(content, leaf.key, signature))
    return invalid('the signature is not by the key of the certificate, over this request');

  const verified = await verifyChain(leaf, intermediates, anchors, now);
  if (!verified.ok) return invalid(verified.problem);
  const { root, certificates } = verified.value;
  const unfit = checkSigner(leaf);
  if (unfit !== undefined) return invalid(`the certificate of the machine ${unfit}`);
  const matched = matchRules(rules, root, leaf.names);
  if (!matched.ok) return violated('IdentityNotAllowed', matched.problem);
  const { rule, identity, machine } = matched.value;
  // A CA with such limits may not be able to give a name as URI or DNS name, and give it as common name instead.
  if (rule.kind === 'cn' && limitsNames(certificates))
    return invalid(
      'a CA of the chain has name constraints, which do not limit common names: use a rule with uri or dns',
    );
  const { extKeyUsage: purpose } = rule;
  if (purpose !== undefined && leaf.extKeyUsage?.includes(purpose) !== true)
    return invalid(`the certificate of the machine is not for ${purpose} (extKeyUsage)`);
  const narrow = purpose === undefined ? undefined : checkIssuerPurposes(certificates, purpose);
  if (narrow !== undefined) return invalid(narrow);
  return success({
    identity,
    once: [{ kind: 'x509', id: proofId(content, leaf.key), expiresAt: signedAt + signatureLife }],
    machines: [],
    verify: () => Promise.resolve(success(machine)),
  });
}

function invalid(message: string): Result<never, Violations> {
  return violated('AttestationInvalid', message);
}
