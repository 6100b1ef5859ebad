/** An empty handler: the time of Lambda's runtime itself. */
export async function handler(): Promise<Record<string, never>> {
  return {};
}
