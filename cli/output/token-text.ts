/** A bootstrap token as commands show it: everything except its secret. */
import { rfc3339 } from '../../core/kubernetes/bootstrap-token.ts';
import type { TokenRecord } from '../../core/kubernetes/bootstrap-token.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { spanText } from './output.ts';

export function shownToken({ expires, usages, groups, description, owner }: TokenRecord, now: Instant) {
  const left = expires === undefined ? undefined : Math.floor((expires - now) / 1_000);
  return {
    ttl: left === undefined ? '<forever>' : left <= 0 ? '<expired>' : spanText(left),
    ...(expires === undefined ? {} : { expires: rfc3339(expires) }),
    usages,
    groups,
    description,
    ...(owner === undefined ? {} : { owner: `${owner.kind} ${owner.namespace}/${owner.name}` }),
  };
}
