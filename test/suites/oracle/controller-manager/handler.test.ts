/**
 * The recorded answers of the reference, legacy-unknown and v1beta1 among them, put to the sign handler: what a client
 * of the signing API gets is what kube-controller-manager would have written.
 */
import { expect, test } from 'vitest';
import { handlerSigner } from '../../../corpus/ask-handler.ts';
import { readRecording } from '../../../corpus/reference.ts';
import { replay } from '../../../corpus/replay.ts';
import { legacyUnknown } from '../../../corpus/requests/legacy.ts';

test('the sign handler answers every recorded request as the reference did', async () => {
  const recording = readRecording();
  const { asked, problems } = await replay(recording, { signer: handlerSigner });
  expect(problems).toEqual([]);
  expect(asked).toBeGreaterThanOrEqual(recording.cases.length + recording.defaults.length);
});

test('what is recorded covers the signers that no version of the API still creates', () => {
  const { cases, defaults } = readRecording();
  expect(cases.filter(({ signerName }) => signerName === legacyUnknown).length).toBeGreaterThanOrEqual(20);
  expect(new Set(defaults.map(({ defaulted }) => defaulted)).size).toBe(3);
});
