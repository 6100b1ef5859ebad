/** `csr list --watch`: the table, then the row of each request that is new or changed. */
import type { RequestView } from './request-view.ts';
import { requestsTable } from './request-text.ts';

/** Each look is one list of the requests, in pages. */
const betweenLooks = 2_000;

interface Watch {
  /** The requests that the operator wants to see, the oldest first. */
  readonly look: () => Promise<readonly RequestView[]>;
  readonly print: (text: string) => void;
  readonly now: () => number;
  readonly wide: boolean;
  /** Milliseconds. Throws when the operator stops the command. */
  readonly pause: (milliseconds: number) => Promise<void>;
}

/** Ends only by an error of `look` or `pause`. */
export async function watchRequests({ look, print, now, wide, pause }: Watch): Promise<never> {
  let known: ReadonlyMap<string, string> | undefined;
  for (;;) {
    const requests = await look();
    const [head = '', ...rows] = requestsTable(requests, wide, now()).split('\n');
    const current = new Map(requests.map((request) => [request.uid, JSON.stringify(request)]));
    const changed = rows.filter((_, index) => {
      const uid = requests[index]?.uid;
      return uid !== undefined && known?.get(uid) !== current.get(uid);
    });
    if (known === undefined) print(`${head}\n`);
    // The columns fit the whole list, so that the rows of one look are aligned with those before it.
    print(changed.map((row) => `${row}\n`).join(''));
    known = current;
    await pause(betweenLooks);
  }
}
