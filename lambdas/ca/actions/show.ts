/**
 * The CAs as they are, each checked against its key, and how long their CRLs are valid. The schedule of the stack calls it every six
 * hours, for the alarms about their ends.
 */
import { loadAuthority } from '../../../core/ca/authority.ts';
import type { Instant } from '../../../core/ports/instant.ts';
import type { CaAction } from './action.ts';
import { answerAbout, decodeCasRequest, logOfCas } from './cas.ts';
import type { CasRequest, OperatorAnswer } from './cas.ts';

export interface ShowAnswer extends OperatorAnswer {
  /** By the name of the CA, when its latest CRL ends. A CA without a CRL is not in it. */
  readonly crlEnds: Readonly<Record<string, Instant>>;
}

const day = 86_400_000;
/** A new one is issued each day and is valid for seven (renew-crl.ts): with so few left the schedule has failed for two days or more. */
const fewestDays = 4;

export const show: CaAction<CasRequest, ShowAnswer> = {
  decode: decodeCasRequest,
  async run(request, ports) {
    const answer = await answerAbout(request, ports, async (ca) => ({
      created: false,
      // A root outside of Countersign may end before the CA below it.
      chain: (await ports.store.find(ca.name))?.chain,
      ...(await loadAuthority(ca, ports.key(ca.name), ports.store)),
    }));
    const heads = await Promise.all(
      answer.cas.map(async (ca) => [ca.name, ca.ok ? await ports.crls.findHead(ca.keyId) : undefined] as const),
    );
    const ends = heads.flatMap(([name, head]) => (head === undefined ? [] : [[name, head.nextUpdate] as const]));
    return { ...answer, crlEnds: Object.fromEntries(ends) };
  },
  logged(answer, ports) {
    const { now } = ports.origin();
    const log = logOfCas(answer, ports);
    const left = Object.entries(answer.crlEnds).map(([name, end]) => [name, Math.floor((end - now) / day)] as const);
    const failed = log.failed || left.some(([, days]) => days < fewestDays);
    return { ...log, failed, crlDaysLeft: Object.fromEntries(left) };
  },
};
