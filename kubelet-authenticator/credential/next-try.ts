/** What the next request does differently after a refusal, by the reason of the refusal. */
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { newKey } from '../request/request.ts';
import type { Attempt } from './attempt.ts';
import { challengeIn, supportedVersions } from './decision.ts';
import type { WorkState } from './work.ts';

/** Requests sent at once after a refusal, with other evidence or another key. Then the node backs off. */
export const maxRetries = 3;
/** Challenges in a row that a node answers at once: the first may come too late or be changed on its way. */
const maxChallenges = 3;
/** The approver accepts an answer for two minutes. What is left is for the TPM and the way. */
const challengeMilliseconds = 90_000;
const minute = 60_000;
const hour = 60 * minute;

/** The change of the state. undefined if an operator must act: another request would be refused too. */
export function nextTry(attempt: Attempt, reason: string, object: JsonObject): Partial<WorkState> | undefined {
  const { spec, state, cached, login } = attempt;
  if (reason === 'AttestationChallenge') return answerNext(attempt, object);
  if (state.retries >= maxRetries) return undefined;
  switch (reason) {
    // The evidence expired before the approver or the signer saw it, for example during an outage.
    case 'AttestationInvalid':
    case 'IntentExpired':
      return {};
    case 'AttestationVersion': {
      const evidenceVersion = otherVersion(attempt, object);
      return evidenceVersion === undefined ? undefined : { evidenceVersion };
    }
    case 'KeyReused': {
      // With a bootstrap token a new key would count as another machine (docs/attestation.md, Trust on first use).
      const mayChangeKey = login.as === 'node' && spec.provider.renews && state.keysGivenUp < maxRetries;
      return mayChangeKey ? { keyPem: newKey(spec.settings.keyKind), keysGivenUp: state.keysGivenUp + 1 } : undefined;
    }
    case 'TofuReuse': {
      // The certificate expired during a renewal: the machine is registered with one of the two keys.
      const { oldKeyPem } = cached;
      if (attempt.triedOldKey || oldKeyPem === undefined || oldKeyPem === state.keyPem) return undefined;
      attempt.triedOldKey = true;
      return { keyPem: oldKeyPem };
    }
    default:
      return undefined;
  }
}

/** A challenge is part of the first use of a machine, so it counts neither as a refusal nor as a retry. */
function answerNext({ spec, state }: Attempt, object: JsonObject): Partial<WorkState> | undefined {
  const challenge = spec.provider.answersChallenges === true ? challengeIn(object) : undefined;
  if (challenge === undefined)
    spec.dependencies.log('the approver demands an answer to a challenge that this node cannot read');
  if (challenge === undefined || state.challenges >= maxChallenges) return undefined;
  const until = spec.dependencies.now() + challengeMilliseconds;
  return { challenge: { ...challenge, until }, challenges: state.challenges + 1, retries: state.retries };
}

/**
 * After which time the next request is sent: 1, 2, 4 … 60 minutes. A management cluster usually lists a machine within minutes after
 * its start, so a node that waits for its Machine asks ten times a minute apart, then after 2, 4, 8 and each further 10 minutes.
 */
export function waitAfter(reason: string | undefined, refusals: number): number {
  const waits = reason === 'MachineNotFound' || reason === 'MachineNotReady';
  return waits
    ? Math.min(10 * minute, minute * 2 ** Math.max(0, refusals - 10))
    : Math.min(hour, minute * 2 ** (refusals - 1));
}

/** The version of evidence to send. */
export function versionOf({ spec: { provider }, state }: Attempt): string {
  return provider.versions.find((known) => known === state.evidenceVersion) ?? provider.versions[0];
}

/**
 * The newest version in the approver's list of supported ones. A refusal by the signer (condition Failed) has no such list:
 * then the next older version.
 */
function otherVersion(attempt: Attempt, object: JsonObject): string | undefined {
  const { versions } = attempt.spec.provider;
  const refused = versionOf(attempt);
  const supported = supportedVersions(object);
  if (supported.length > 0) return versions.find((known) => known !== refused && supported.includes(known));
  return versions[versions.indexOf(refused) + 1];
}
