/** What Lambda's runtime takes by itself. */
export async function handler(): Promise<Record<string, never>> {
  return {};
}
