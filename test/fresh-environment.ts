/** Unit test files share a process (vitest.config.ts). Each file begins with the environment variables of the process's start. */
const shared = globalThis as { environmentAtStart?: NodeJS.ProcessEnv };
shared.environmentAtStart ??= { ...process.env };
for (const name of Object.keys(process.env)) if (!(name in shared.environmentAtStart)) delete process.env[name];
Object.assign(process.env, shared.environmentAtStart);
