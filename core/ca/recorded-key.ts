/** A CA key that leaves a record of each signature, so that auditors can tell what each signature of KMS was for. */
import { sha256 } from '../encoding/digest.ts';
import { ulid } from '../attestation/records/ulid.ts';
import type { SignatureLog, SignatureRecord } from '../ports/signature-log.ts';
import type { CaKey } from './authority.ts';
import type { CaOrigin } from './make-ca-certificate.ts';

export interface RecordingPorts {
  readonly signatures: SignatureLog;
  readonly origin: () => CaOrigin;
}

export function recordedKey(
  key: CaKey,
  about: Pick<SignatureRecord, 'ca' | 'action'>,
  { signatures, origin }: RecordingPorts,
): CaKey {
  return {
    keyId: key.keyId,
    publicKey: () => key.publicKey(),
    signer(algorithm) {
      const signer = key.signer(algorithm);
      return {
        keyId: signer.keyId,
        algorithm,
        async sign(tbs) {
          const { now, randomBytes } = origin();
          const tbsSha256 = sha256(tbs).toString('hex');
          const record = { ...about, id: ulid(now, randomBytes(10)), caKeyId: signer.keyId, tbsSha256, at: now };
          await signatures.put(record);
          // Now the record exists and nothing is signed. After a crash here or below it explains the signature, if there is one.
          const signature = await signer.sign(tbs);
          if (signature.requestId !== undefined) await signatures.put({ ...record, kmsRequestId: signature.requestId });
          return signature;
        },
      };
    },
  };
}
