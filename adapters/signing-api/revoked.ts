/** The client of `GET …/revoked`: the list of revoked certificates of one cluster. */
import { decodeRevokedList } from '../../core/revocation/revoked-list.ts';
import type { RevokedList } from '../../core/revocation/revoked-list.ts';
import type { EndpointConnection } from './client.ts';
import { getDocument } from './get.ts';

export interface RevokedSource {
  /** Throws if there is no usable answer in time. */
  read(
    etag: string | undefined,
  ): Promise<'unchanged' | { readonly list: RevokedList; readonly etag: string | undefined }>;
}

/** Below the three seconds that the API server waits for the webhook. */
const timeoutMilliseconds = 2_500;

export function revokedSource(connection: EndpointConnection, cluster: string): RevokedSource {
  return {
    async read(etag) {
      const headers = etag === undefined ? {} : { 'if-none-match': etag };
      const { status, headers: received, body } = await getDocument(connection, { timeoutMilliseconds, headers });
      if (status === 304 && etag !== undefined) return 'unchanged';
      if (status !== 200) throw new Error(`the endpoint answered ${status}`);
      const list = decodeRevokedList(body, cluster);
      if (!list.ok) throw new Error(`the answer of the endpoint cannot be used: ${list.problem}`);
      return { list: list.value, etag: received.etag };
    },
  };
}
