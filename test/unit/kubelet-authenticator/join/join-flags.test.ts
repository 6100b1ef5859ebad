import { expect, test } from 'vitest';
import { planOf } from '../../../../kubelet-authenticator/join/join-flags.ts';

test.each([
  [['10.0.0.1:6443', '--tokne', 'abcdef.0123456789abcdef'], 'there is no option --tokne'],
  [['10.0.0.1:6443', '-x'], 'there is no option -x'],
  // The value may be a token.
  [['10.0.0.1:6443', '--token'], "Option '--token <value>' argument missing"],
])('%j', (argv, message) => {
  const planned = planOf(argv, { program: '/usr/bin/kubelet-authenticator', hostname: () => 'n1' } as never);
  expect(planned).toMatchObject({ ok: false, problem: { message: expect.stringMatching(message) as unknown } });
  expect(JSON.stringify(planned)).not.toMatch(/positional|0123456789abcdef/);
});
