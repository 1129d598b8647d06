import type { OpenDns, OpenDnsOptions } from './open-dns.js';

/** DNS next to HTTP, where `--dns` asks for it. @throws {ConfigError} as `openDns` does */
export async function listenerFor(
  options: Omit<OpenDnsOptions, 'listen' | 'label'>,
): Promise<OpenDns | undefined> {
  const { dns: listen } = options.settings;
  if (listen === undefined) return undefined;
  const { openDns } = await import('./open-dns.js');
  return openDns({ ...options, listen, label: '--dns' });
}
