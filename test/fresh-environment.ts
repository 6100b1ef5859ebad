/** Unit test files share a process (vitest.config.ts). Each file begins with the environment variables of the process's start. */
import { afterAll } from 'vitest';

const shared = globalThis as { environmentAtStart?: NodeJS.ProcessEnv; processEnvironment?: NodeJS.ProcessEnv };
shared.environmentAtStart ??= { ...process.env };
shared.processEnvironment ??= process.env;
for (const name of Object.keys(process.env)) if (!(name in shared.environmentAtStart)) delete process.env[name];
Object.assign(process.env, shared.environmentAtStart);

// vi.stubEnv keeps the object of the process's start: with another one, the files after this one cannot undo what they stub.
afterAll(() => {
  if (process.env !== shared.processEnvironment)
    throw new Error('this file put another object in place of process.env');
});
